// The values of a checkpoint's floating tensors, with the scales of 8-bit ones multiplied in.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/checkpoint.h"
#include "eckart/model/logical_tensors.h"

#include <string>
#include <vector>

namespace eckart {

/// Why the values can't be read as numbers: packed integers, a dtype without a widening. Empty when
/// they can: F64, F32, F16, BF16, every F8, and F8 with scale tensors (one for all, one a row, one a
/// block).
std::string why_unreadable(const LogicalTensor& tensor);

/// Throws FormatError, naming the first, when an F8 matrix of a checkpoint has no scale beside it
/// while others have one: its numbers alone are not its values.
void check_scales(const Checkpoint& checkpoint, const std::vector<LogicalTensor>& tensors);

/// Rows [first, first + n) of a tensor as float, n x (product of the axes after the first); a vector
/// is n x 1. Reads and widens only these. Throws ArgumentError when `why_unreadable` says something
/// or the rows are not the tensor's.
Tensor<float> load_weight_rows(const Checkpoint& checkpoint, const LogicalTensor& tensor,
                               Index first, Index n);

/// The whole tensor in its shape. Throws as `load_weight_rows`.
Tensor<float> load_weight(const Checkpoint& checkpoint, const LogicalTensor& tensor);

/// Gives the memory of these rows of the mapped file back to the system: a pass over a whole model
/// then holds no more than what it is at. The rows stay readable.
void release_weight_rows(const Checkpoint& checkpoint, const LogicalTensor& tensor, Index first,
                         Index n);

}  // namespace eckart

// The matrices that a model multiplies by, each for itself: fused ones split, experts apart.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/core/tensor.h"
#include "eckart/io/checkpoint.h"
#include "eckart/model/architecture.h"
#include "eckart/model/logical_tensors.h"

#include <cstdint>
#include <string>
#include <vector>

namespace eckart {

/// A matrix, or the part of a stored tensor that is one.
struct LogicalMatrix {
  /// The tensor's name; parts have theirs in brackets: `…qkv_proj.weight[q]`,
  /// `…gate_up_proj[expert 3, gate]`.
  std::string name;
  std::string tensor;  // the tensor's name alone
  /// Output x input, with the table's axis names where the architecture is known.
  Shape shape;
  Dtype dtype = Dtype::f32;
  /// Stored input x output (GPT-2's Conv1D, gpt-oss's experts).
  bool is_input_first = false;
  /// Where it stands in the tensor: a slab of stored_rows x stored_columns from element `begin` on,
  /// and of its output axis `repeats` runs of `run` positions, the first at `first`, `stride` apart.
  Index begin = 0;
  Index stored_rows = 0;
  Index stored_columns = 0;
  Index first = 0;
  Index run = 0;
  Index stride = 0;
  Index repeats = 1;
};

/// A tensor that is none of the matrices, and why.
struct LeftOut {
  std::string name;
  std::string reason;
  bool is_matrix = false;  // it is one, but can't be read
};

struct LogicalMatrices {
  std::vector<LogicalMatrix> matrices;
  std::vector<LeftOut> left_out;
};

/// The matrices among the tensors of a checkpoint, in their order. With an architecture, fused
/// queries, keys and values (also those fused head by head) and fused gate and up are split, and a
/// stored copy of a tied matrix is left out. A tensor of three axes is a matrix an expert when the
/// table or its name says so; other tensors of more than two axes (convolutions) are taken as output
/// x all the rest. Left out: vectors, biases, buffers; and, as matrices that can't be read, what is
/// quantized or of a dtype without a widening.
LogicalMatrices logical_matrices(const Checkpoint& checkpoint,
                                 const std::vector<LogicalTensor>& tensors,
                                 const Architecture* architecture = nullptr);

/// The elements of a matrix, widened to T (float or double) from the mapped file: output x input,
/// or input x output where `is_input_first`, without axis names. Memory: the result and one block of
/// rows. Throws ArgumentError as Checkpoint::bytes.
template <class T>
Tensor<T> load_matrix(const Checkpoint& checkpoint, const LogicalMatrix& matrix);

}  // namespace eckart

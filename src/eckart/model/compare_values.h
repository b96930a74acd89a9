// Two stored tensors subtracted, a block of rows at a time. Included by the library alone.
#pragma once

#include "eckart/model/checkpoint_difference.h"

namespace eckart::detail {

/// Whether all parts of both tensors have equal bytes, in an equal dtype.
bool has_same_bytes(const ComparedModel& a, const LogicalTensor& of_a, const ComparedModel& b,
                    const LogicalTensor& of_b);

/// Fills in what `result` says of the values of two readable tensors of one shape, and the spectrum
/// of their difference where there is to be one.
struct ComparedTensors {
  const ComparedModel* a = nullptr;
  const LogicalTensor* of_a = nullptr;
  const ComparedModel* b = nullptr;
  const LogicalTensor* of_b = nullptr;
};
void compare_values(const ComparedTensors& tensors, const CheckpointDifferenceOptions& options,
                    TensorDifference& result);

}  // namespace eckart::detail

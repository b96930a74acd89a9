// Counting a model of which nothing is known but its tensors.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/logical_tensors.h"

#include <string>
#include <vector>

namespace eckart {

struct TensorCount {
  Index parameters = 0;
  Index weights_bytes = 0;  // as stored, scales and zero points included
  /// Parameters of the matrices of repeated modules: those with a number in their names.
  Index layer_matrix_parameters = 0;
  /// Two FLOPs for each of them: exact for a dense model without its head; a model with experts
  /// uses only some of them.
  Index flops_linear_per_token = 0;
  Index lora_rank = 0;
  /// rank x (d_in + d_out) for each of these matrices, experts of one tensor apart; 0 without rank.
  Index lora_parameters = 0;
};

/// Counts tensors as they are named and shaped. Throws ArgumentError when a LoRA's rank is above
/// the smaller side of a matrix, naming it, or when a number is beyond 63 bits.
TensorCount count_tensors(const std::vector<LogicalTensor>& tensors, Index lora_rank = 0);

}  // namespace eckart

#include "eckart/model/count_tensors.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/checked.h"
#include "eckart/model/tensor_names.h"

#include <algorithm>

namespace eckart {
namespace {

Index lora_parameters(const LogicalTensor& tensor, Index rank) {
  const Index d_out = tensor.shape.size(-2);
  const Index d_in = tensor.shape.size(-1);
  if (rank > std::min(d_in, d_out)) {
    throw_argument_error("count: the LoRA's rank is " + std::to_string(rank) + ", but " +
                         printable(tensor.name) + " is " + to_string(tensor.shape) +
                         " and has no rank above " + std::to_string(std::min(d_in, d_out)));
  }
  const Index n_matrices = tensor.shape.count() / (d_in * d_out);
  return checked_product({n_matrices, rank, checked_sum({d_in, d_out}, "a LoRA")}, "a LoRA");
}

}  // namespace

TensorCount count_tensors(const std::vector<LogicalTensor>& tensors, Index lora_rank) {
  if (lora_rank < 0) {
    throw_argument_error("count: the LoRA's rank is " + std::to_string(lora_rank) +
                         ", but must be at least 1");
  }
  TensorCount count{.lora_rank = lora_rank};
  NameTemplate name;
  for (const LogicalTensor& tensor : tensors) {
    if (tensor.kind != TensorKind::parameter) continue;
    count.parameters = checked_sum({count.parameters, tensor.parameters}, "the parameters");
    count.weights_bytes =
        checked_sum({count.weights_bytes, static_cast<Index>(tensor.bytes)}, "the weights' bytes");
    const bool is_matrix = tensor.has_shape && tensor.shape.rank() >= 2 && tensor.shape.count() > 0;
    if (!is_matrix) continue;
    // `model.layers.3.mlp.up_proj.weight`: what stands in a layer has a number in its name.
    read_name_template(tensor.name, name);
    if (name.numbers.empty()) continue;
    count.layer_matrix_parameters += tensor.parameters;
    if (lora_rank > 0) {
      count.lora_parameters = checked_sum(
          {count.lora_parameters, lora_parameters(tensor, lora_rank)}, "the LoRA's parameters");
    }
  }
  count.flops_linear_per_token =
      checked_product({2, count.layer_matrix_parameters}, "FLOPs a token");
  return count;
}

}  // namespace eckart

// What the weights take: see count.h.
#include "eckart/core/errors.h"
#include "eckart/model/checked.h"
#include "eckart/model/count.h"

#include <algorithm>

namespace eckart {
namespace {

// How a method stores a matrix: so many bits a value, and beside each group along the input so many
// for scales and zero points.
struct Scheme {
  Index bits = 0;
  Index group = 0;  // 0: a whole row
  Index side_bits = 0;
  bool is_of_experts = false;  // the other matrices stay as they are
};

std::optional<Scheme> scheme_of(const Quantization& quantization) {
  const std::string& method = quantization.method;
  const Index bits = quantization.bits;
  const Index group = quantization.group_size;
  if (method == "mxfp4") return Scheme{4, 32, 8, true};
  // The scales of blocks of 128 x 128 are a 4,000th of the values.
  if (method == "fp8") return Scheme{8, 0, 0, false};
  if (bits < 1 || bits > 8) return std::nullopt;
  if (method == "gptq" || method == "awq") return Scheme{bits, group, 16 + bits, false};
  if (method == "compressed-tensors") return Scheme{bits, group, 16, false};
  if (method == "mlx") return Scheme{bits, group, 32, false};
  if (method == "bitsandbytes") return Scheme{bits, bits == 4 ? 64 : 0, 32, false};
  return std::nullopt;
}

// Bits of a line under a scheme.
Index bits_of(const TensorSpec& spec, const Scheme& scheme) {
  const std::string quantity = "the bits of " + spec.name;
  const Index elements = parameters(spec);
  const Index d_in = spec.shape.size(spec.input_first ? -2 : -1);
  if (d_in == 0) return 0;
  const Index group = scheme.group == 0 ? d_in : std::min(scheme.group, d_in);
  const Index n_groups = checked_product({elements / d_in, (d_in + group - 1) / group}, quantity);
  return checked_sum({checked_product({elements, scheme.bits}, quantity),
                      checked_product({n_groups, scheme.side_bits}, quantity)},
                     quantity);
}

}  // namespace

bool is_layer_matrix(const TensorSpec& spec) {
  const bool is_in_layer =
      spec.component == Component::attention || spec.component == Component::mlp ||
      spec.component == Component::experts || spec.component == Component::shared_experts;
  return is_in_layer && !spec.is_bias && spec.use == Use::per_token && spec.role != Role::router &&
         spec.shape.rank() >= 2;
}

Dtype trained_dtype(Dtype dtype) {
  return bits(dtype) >= 16 && is_floating(dtype) ? dtype : Dtype::bf16;
}

Dtype activation_dtype(const Architecture& arch) {
  return trained_dtype(arch.dtype.value_or(Dtype::bf16));
}

Dtype dtype_beside_narrow(const Architecture& arch) {
  const Dtype own = activation_dtype(arch);
  return bits(own) == 16 ? own : Dtype::bf16;
}

Index weight_bytes(const Architecture& arch, Dtype dtype) {
  Index narrow = 0;
  Index others = 0;
  for (const TensorSpec& spec : arch.tensors) {
    if (spec.is_extra) continue;
    Index& sum = bits(dtype) >= 16 || is_layer_matrix(spec) ? narrow : others;
    sum = checked_sum({sum, parameters(spec)}, "the number of parameters");
  }
  const std::string quantity = "the weights' bytes";
  return checked_sum({packed_bytes(narrow, dtype, quantity),
                      packed_bytes(others, dtype_beside_narrow(arch), quantity)},
                     quantity);
}

std::optional<Index> quantized_weight_bytes(const Architecture& arch,
                                            const Quantization& quantization) {
  const std::optional<Scheme> scheme = scheme_of(quantization);
  if (!scheme) return std::nullopt;
  Index all_bits = 0;
  Index others = 0;
  for (const TensorSpec& spec : arch.tensors) {
    if (spec.is_extra) continue;
    const bool is_quantized =
        is_layer_matrix(spec) && (!scheme->is_of_experts || spec.component == Component::experts);
    Index& sum = is_quantized ? all_bits : others;
    sum = checked_sum({sum, is_quantized ? bits_of(spec, *scheme) : parameters(spec)},
                      "the weights' bits");
  }
  return checked_sum({all_bits / 8 + (all_bits % 8 == 0 ? 0 : 1),
                      packed_bytes(others, activation_dtype(arch), "the weights' bytes")},
                     "the weights' bytes");
}

}  // namespace eckart

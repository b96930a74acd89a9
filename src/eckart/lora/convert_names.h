// Names, shapes and layouts of kohya's and MLX's files. Internal.
#pragma once

#include "eckart/io/safetensors.h"
#include "eckart/lora/adapter.h"

#include <string>
#include <vector>

namespace eckart::detail {

/// `lora_unet_` and the name with underscores for its dots.
std::string kohya_name(const std::string& module, const std::string& prefix);
/// lora_down: r x d_in, of a convolution with its kernel. lora_up: d_out x r, with as many axes.
Shape down_shape(const Adapter& adapter, const AdapterModule& module);
Shape up_shape(const Adapter& adapter, const AdapterModule& module);

/// What all modules of a file of MLX's share.
struct MlxPlan {
  Dtype dtype = Dtype::f32;
  double scale = 1;
  Index rank = 0;
};
std::vector<TensorPlan> mlx_tensors(const Adapter& adapter, const MlxPlan& plan);
/// Its adapter_config.json.
std::string mlx_config(const Adapter& adapter, const MlxPlan& plan);

/// Factors as MLX has them: a d_in x rank and b rank x d_out; of a table the same of its transpose
/// (entries x rank, rank x width); of one expert rank x d_in and d_out x rank. Padded with zeros to
/// `rank`.
struct MlxFactors {
  Tensor<float> a;
  Tensor<float> b;
};
MlxFactors mlx_factors(const AdapterFactors& factors, AdapterKind kind, Index rank);

}  // namespace eckart::detail

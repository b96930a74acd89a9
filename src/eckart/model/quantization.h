// What a config.json says about quantized storage.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/config.h"

#include <optional>
#include <string>

namespace eckart {

/// The settings that storage depends on; 0 or empty where the config has none.
struct Quantization {
  std::string method;    // `gptq`, `awq`, `bitsandbytes`, `compressed-tensors`, `fp8`, `mxfp4`,
                         // `modelopt`, `mlx`, or whatever stands there
  Index bits = 0;        // of one stored value
  Index group_size = 0;  // values that share a scale; 0 also where a whole row does
  std::string type;      // `nf4`, `fp4`, `NVFP4`: the number format, where it has a name
};

/// Reads `quantization_config` (transformers), `compression_config` (older compressed-tensors) or
/// `quantization` (MLX); nothing when there is none of them.
std::optional<Quantization> read_quantization(const Config& config);

}  // namespace eckart

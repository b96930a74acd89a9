// The same adapter under other names: PEFT's, kohya's, MLX's.
#pragma once

#include "eckart/io/dtype.h"
#include "eckart/lora/adapter.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace eckart {

struct ConvertOptions {
  AdapterNaming to = AdapterNaming::peft;
  /// Of kohya's names: `lora_unet`, `lora_te1`, …
  std::string prefix = "lora_unet";
  /// Of the factors: F32, F16 or BF16. None: as they are stored where all are in one of these, else
  /// F32.
  std::optional<Dtype> dtype = {};
  /// Called with the number of modules that are done and of all.
  std::function<void(Index done, Index all)> on_progress = {};
};

struct ConvertReport {
  Index n_modules = 0;
  Index n_saved = 0;  // tensors that replace the base's
  Dtype dtype = Dtype::f32;
  std::uint64_t bytes = 0;  // of the file with the tensors
  Index n_resumed = 0;      // modules that a run that was cut off had finished (PEFT)
  /// What MLX, which has one rank and one scale for all, made necessary: modules whose factors are
  /// padded with zeros to the largest rank, and whose scale is multiplied into lora_b.
  Index n_padded = 0;
  Index n_scaled = 0;
};

/// Writes `adapter` as a folder (PEFT, MLX: `adapters.safetensors`) or one file (kohya), whole or not
/// at all. Of a kohya adapter the names have to be resolved first (see `Adapter::resolve_names`).
///
/// The factors keep their numbers, and the scale goes where the target has it: alpha = scale * rank
/// for PEFT (use_rslora is not needed then) and for kohya, whose `.alpha` is F32, or F64 where F32
/// does not hold it exactly; the commonest scale for MLX. In the dtype in which they are stored the
/// factors are exact, but for those whose scale is multiplied into lora_b for MLX, which are rounded
/// once. Memory: one module.
///
/// Throws ArgumentError for what the target can't hold (DoRA in kohya's files, whose magnitude has
/// another axis; lora_bias, embeddings, experts and saved tensors there; biases, saved tensors and
/// convolutions in MLX's), when two names become one, when a number is too large for the dtype, and
/// for a dtype that is none of the three; FileError when the target exists or can't be written.
ConvertReport convert_adapter(const Adapter& adapter, const std::filesystem::path& target,
                              const ConvertOptions& options);

}  // namespace eckart

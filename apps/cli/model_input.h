// What a PATH of a model means: its config, its architecture, its checkpoint, whichever are there.
#pragma once

#include "eckart/io/checkpoint.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/logical_tensors.h"
#include "eckart/model/quantization.h"

#include <optional>
#include <string>
#include <vector>

namespace eckart::cli {

struct ModelInput {
  std::string name;  // of the folder, or of the file, as it is: printable where it is shown
  std::optional<Config> config;
  std::optional<Architecture> architecture;
  /// Why there is no architecture: no config.json, an unknown family, a config that can't be read.
  std::string no_architecture;
  std::string no_architecture_hint;
  /// The config is there and can't be used: an error, which is the reason above.
  bool is_config_broken = false;
  std::optional<Quantization> quantization;
  std::optional<Checkpoint> checkpoint;
  std::vector<LogicalTensor> tensors;  // of the checkpoint
};

/// Opens a config.json, a checkpoint file, an index or a folder. A folder needs a config or a
/// checkpoint, not both. The folder's config goes with a file only when the file is the folder's
/// whole checkpoint. Throws FileError and FormatError, but not for a config that can't be read
/// beside a checkpoint: see `no_architecture`.
ModelInput open_model(const std::string& path);

/// The same; a config.json stands for its folder, and one without a checkpoint throws FileError.
ModelInput open_model_with_checkpoint(const std::string& path);

/// `LlamaForCausalLM: 32 layers, d_model 4096, 32 heads x 128 on 8 KV heads, …`.
std::string architecture_line(const Architecture& architecture);

}  // namespace eckart::cli

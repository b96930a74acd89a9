// Small bases and adapters for the tests of merging, written to a folder of the test's own.
#pragma once

#include "eckart/core/errors.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/narrow.h"
#include "eckart/io/safetensors.h"
#include "eckart/lora/merge.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/quantization.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/scratch_folder.h"

namespace eckart::testing {

/// A tensor to be stored, from floats.
struct Values {
  std::string name;
  std::vector<Index> sizes;
  std::vector<float> values;
  Dtype dtype = Dtype::f32;
};

inline void save(const std::filesystem::path& path, const std::vector<Values>& tensors) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorBytes> stored;
  bytes.reserve(tensors.size());
  for (const Values& one : tensors) {
    bytes.emplace_back(one.values.size() * static_cast<std::size_t>(bits(one.dtype)) / 8);
    narrow(one.dtype, one.values, bytes.back());
    stored.push_back({{one.name, one.dtype, Shape(one.sizes)}, bytes.back()});
  }
  save_safetensors(path, stored, {{"format", "pt"}});
}

/// PEFT's names of the factors of a module.
inline Values lora_a(const std::string& module, std::vector<Index> sizes,
                     std::vector<float> values) {
  return {"base_model.model." + module + ".lora_A.weight", std::move(sizes), std::move(values)};
}
inline Values lora_b(const std::string& module, std::vector<Index> sizes,
                     std::vector<float> values) {
  return {"base_model.model." + module + ".lora_B.weight", std::move(sizes), std::move(values)};
}

/// A PEFT folder of rank and alpha 1; `more` are further fields of the config.
inline void save_adapter(const std::filesystem::path& folder, const std::vector<Values>& tensors,
                         const std::string& more = "") {
  std::filesystem::create_directories(folder);
  save(folder / "adapter_model.safetensors", tensors);
  put(folder / "adapter_config.json",
      R"({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["w", "v", "lm_head"])" +
          more + "}");
}

/// A base and adapters, opened as the command opens them.
class Case {
 public:
  Case(const std::filesystem::path& base, const std::vector<std::filesystem::path>& adapters)
      : checkpoint_(open_checkpoint(base)) {
    const std::filesystem::path file = checkpoint_.folder() / "config.json";
    if (std::filesystem::is_directory(base) && std::filesystem::exists(file)) {
      config_ = load_config(file);
      if (find_family(config_->model_type()) != nullptr)
        architecture_ = read_architecture(*config_);
    }
    tensors_ = logical_tensors(
        checkpoint_, config_ ? read_quantization(*config_) : std::optional<Quantization>());
    for (const std::filesystem::path& path : adapters) {
      adapters_.push_back(open_adapter(path));
      adapters_.back().resolve_names(
          mergeable_names(checkpoint_, tensors_, architecture(), config()));
    }
  }

  MergeSources sources() const {
    return {checkpoint_, tensors_, architecture(), config(), adapters_};
  }
  MergeReport merge(const std::filesystem::path& target, const MergeOptions& options = {}) const {
    return merge_adapters(sources(), target, options);
  }

 private:
  const Architecture* architecture() const { return architecture_ ? &*architecture_ : nullptr; }
  const Config* config() const { return config_ ? &*config_ : nullptr; }

  Checkpoint checkpoint_;
  std::optional<Config> config_;
  std::optional<Architecture> architecture_;
  std::vector<LogicalTensor> tensors_;
  std::vector<Adapter> adapters_;
};

/// The elements of a tensor of a checkpoint.
inline std::vector<float> elements(const std::filesystem::path& checkpoint,
                                   const std::string& name) {
  const Tensor<float> tensor = open_checkpoint(checkpoint).tensor<float>(name);
  return {tensor.data(), tensor.data() + tensor.count()};
}

}  // namespace eckart::testing

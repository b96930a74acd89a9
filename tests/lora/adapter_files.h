// Adapters for tests: those that PEFT made, and small ones made by hand.
#pragma once

#include "eckart/io/safetensors.h"
#include "eckart/io/widen.h"
#include "eckart/lora/adapter.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/io/safetensors_bytes.h"
#include "tests/io/scratch_folder.h"
#include "tests/thrown.h"

namespace eckart::testing {

/// A folder that tests/golden/lora/make_adapters.py made.
inline std::filesystem::path golden_adapter(std::string_view name) {
  return std::filesystem::path(ECKART_SOURCE_DIR) / "tests/golden/lora" / name;
}

/// A tensor of a file as float.
inline Tensor<float> load_floats(const SafetensorsFile& file, const StoredTensor& stored) {
  Tensor<float> values = Tensor<float>::uninitialized(stored.shape);
  widen(stored.dtype, file.bytes(stored),
        std::span<float>(values.data(), static_cast<std::size_t>(values.count())));
  return values;
}

/// Writes a file of F32 tensors: shape and elements by name.
struct HandTensor {
  Shape shape;
  std::vector<float> elements;
};
using HandTensors = std::map<std::string, HandTensor>;

inline void save_floats(const std::filesystem::path& path, const HandTensors& tensors) {
  std::vector<TensorBytes> list;
  for (const auto& [name, tensor] : tensors) {
    list.push_back({{name, Dtype::f32, tensor.shape}, std::as_bytes(std::span(tensor.elements))});
  }
  save_safetensors(path, list, {{"format", "pt"}});
}

/// An adapter folder of PEFT's; `config` is JSON whose quotes may be written as `'`.
inline void save_peft(const std::filesystem::path& folder, const HandTensors& tensors,
                      std::string_view config) {
  std::filesystem::create_directories(folder);
  save_floats(folder / "adapter_model.safetensors", tensors);
  put(folder / "adapter_config.json", in_quotes(config));
}

}  // namespace eckart::testing

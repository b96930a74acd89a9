// Adapters for tests: those that PEFT made, and small ones made by hand.
#pragma once

#include "eckart/io/safetensors.h"
#include "eckart/io/widen.h"
#include "eckart/lora/adapter.h"

#include <algorithm>
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
#include <gtest/gtest.h>

namespace eckart::testing {

/// A folder that tests/golden/lora/make_adapters.py made.
inline std::filesystem::path golden_adapter(std::string_view name) {
  return std::filesystem::path(ECKART_SOURCE_DIR) / "tests/golden/lora" / name;
}

/// Fails the test when there is none.
inline const AdapterModule& module_named(const Adapter& adapter, std::string_view name) {
  const auto& modules = adapter.modules();
  const auto found = std::find_if(modules.begin(), modules.end(),
                                  [&](const AdapterModule& module) { return module.name == name; });
  if (found == modules.end()) {
    ADD_FAILURE() << "no module " << name;
    return modules.front();
  }
  return *found;
}

/// scale * b a of one module (of one expert), in double.
inline Tensor<double> delta_of(const Adapter& adapter, const AdapterModule& module,
                               Index expert = 0) {
  const AdapterFactors factors = load_factors(adapter, module, expert);
  Tensor<double> delta(Shape{factors.b.size(0), factors.a.size(1)});
  for (Index i = 0; i < delta.size(0); ++i) {
    for (Index j = 0; j < delta.size(1); ++j) {
      for (Index k = 0; k < factors.a.size(0); ++k) {
        delta(i, j) += static_cast<double>(factors.b(i, k)) * static_cast<double>(factors.a(k, j));
      }
      delta(i, j) *= factors.scale;
    }
  }
  return delta;
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

/// PEFT's factors of a module, lora_A 2x3 and lora_B 4x2.
inline HandTensors peft_pair(const std::string& name) {
  const std::string module = "base_model.model." + name;
  return {{module + ".lora_A.weight", {{2, 3}, {1, 2, 3, 4, 5, 6}}},
          {module + ".lora_B.weight", {{4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}}};
}

/// kohya's, lora_down 1x2 and lora_up 2x1.
inline HandTensors kohya_pair(const std::string& name) {
  return {{name + ".lora_down.weight", {{1, 2}, {1, 2}}},
          {name + ".lora_up.weight", {{2, 1}, {3, 5}}}};
}

}  // namespace eckart::testing

// The small checkpoints of tests/golden/transformers and what transformers says of them.
#pragma once

#include "eckart/io/checkpoint.h"
#include "eckart/model/language_model.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace eckart::testing {

inline std::filesystem::path golden_models() {
  return std::filesystem::path(ECKART_SOURCE_DIR) / "tests/golden/transformers";
}

inline std::vector<std::string> golden_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_models())) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct GoldenModel {
  explicit GoldenModel(const std::string& name)
      : model(open_language_model(golden_models() / name)),
        expected(open_checkpoint(golden_models() / name / "expected.safetensors")) {
    for (const double id : values("ids")) sequence.ids.push_back(static_cast<Index>(id));
    for (const double is_token : values("mask")) sequence.mask.push_back(is_token != 0);
    if (expected.find("types") != nullptr) {
      for (const double type : values("types")) sequence.types.push_back(static_cast<Index>(type));
    }
  }

  std::vector<double> values(const std::string& name) const {
    const Tensor<double> tensor = expected.tensor<double>(name);
    return {tensor.data(), tensor.data() + tensor.count()};
  }

  bool is_padded() const {
    return std::find(sequence.mask.begin(), sequence.mask.end(), false) != sequence.mask.end();
  }

  LanguageModel model;
  Checkpoint expected;
  TokenSequence sequence;
};

}  // namespace eckart::testing

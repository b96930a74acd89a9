// The worked examples of tests/golden/worked_examples: what an operation is given and what it
// gives, with values that a reader can follow by hand.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/npy.h"

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace eckart::testing {

struct WorkedExample {
  std::string id;
  nlohmann::json inputs;
  nlohmann::json expect;  // "error" where the operation must refuse
  double tolerance = 0;   // largest absolute difference
};

inline const std::string worked_examples_folder =
    ECKART_SOURCE_DIR "/tests/golden/worked_examples/";

/// The examples of an operation, in the order of the file. Throws when it has none.
inline std::vector<WorkedExample> worked_examples(const std::string& operation) {
  std::ifstream file(worked_examples_folder + "worked_examples.json");
  std::vector<WorkedExample> examples;
  for (const nlohmann::json& one : nlohmann::json::parse(file)) {
    if (one.at("op") != operation) continue;
    const nlohmann::json& tolerance = one.at("tol");
    examples.push_back({one.at("id"), one.at("inputs"), one.at("expect"),
                        tolerance.is_number() ? tolerance.get<double>() : 0.0});
  }
  if (examples.empty()) throw std::invalid_argument("no worked example of " + operation);
  return examples;
}

/// A number, a list, a list of lists, or the name of an .npy file beside the examples, as a tensor
/// of rank 0, 1 or 2.
inline Tensor<double> tensor_of(const nlohmann::json& value) {
  if (value.is_string()) return load_npy<double>(worked_examples_folder + value.get<std::string>());
  if (value.is_number()) return Tensor<double>(Shape{}, value.get<double>());
  std::vector<double> elements;
  if (value.empty() || !value.front().is_array()) {
    for (const nlohmann::json& element : value) elements.push_back(element.get<double>());
    return Tensor<double>({static_cast<Index>(elements.size())}, elements);
  }
  for (const nlohmann::json& row : value) {
    for (const nlohmann::json& element : row) elements.push_back(element.get<double>());
  }
  return Tensor<double>(
      {static_cast<Index>(value.size()), static_cast<Index>(value.front().size())}, elements);
}

}  // namespace eckart::testing

// What `eckart inspect` has found, and its text.
#pragma once

#include "eckart/io/findings.h"
#include "eckart/io/scan.h"
#include "eckart/model/checkpoint_spectrum.h"
#include "eckart/model/cross_check.h"
#include "eckart/model/summary.h"

#include <optional>
#include <string>
#include <vector>

#include "model_input.h"

namespace eckart::cli {

struct TensorValues {
  const StoredTensor* tensor = nullptr;
  ValueScan scan;
};

/// A tensor that config.json ties to another, and that the file holds too.
struct TiedValues {
  const StoredTensor* tensor = nullptr;
  const StoredTensor* tied_to = nullptr;
  bool is_equal = false;
};

struct Inspection {
  ModelInput input;
  Summary summary = {};
  std::vector<Difference> differences = {};
  Index active_parameters = 0;
  std::optional<std::vector<TensorValues>> values = {};
  std::vector<TiedValues> tied = {};  // with the values
  std::optional<CheckpointSpectrum> spectra = {};
};

/// The whole report; `list_tensors` shows every tensor instead of the folded tree.
std::string inspection_text(const Inspection& inspection, bool list_tensors);

/// True when the sources contradict each other or a value is not finite.
bool has_errors(const Inspection& inspection);
/// Warnings of the formats that the cross-check does not tell already.
std::vector<Finding> other_warnings(const Inspection& inspection);

/// What is wrong with the values of a tensor, or empty: `3 NaN (first at [0, 17])`, `all zero`.
std::string describe_values(const TensorValues& values);
/// Position of element `at` of a row-major tensor: `[0, 17]`.
std::string position_text(const Shape& shape, std::uint64_t at);

}  // namespace eckart::cli

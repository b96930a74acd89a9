// What `eckart count` has counted, as text and as JSON.
#pragma once

#include "eckart/model/count.h"
#include "eckart/model/count_tensors.h"
#include "eckart/model/fit.h"

#include <optional>
#include <string>

#include "json_output.h"
#include "model_input.h"

namespace eckart::cli {

struct CountReport {
  std::string name;
  const Architecture* architecture = nullptr;
  Count count = {};
  FitPoint request = {};  // what the context and the batch take
  std::optional<Fit> fit = {};
};

std::string count_text(const CountReport& report);
/// Keys are the names of the structs' members.
Json to_json(const CountReport& report);

/// The same for a model whose family is unknown: what its tensors alone tell.
std::string tensor_count_text(const TensorCount& count, const ModelInput& input);
Json to_json(const TensorCount& count, const ModelInput& input);

}  // namespace eckart::cli

// What `eckart trace` found, as text and JSON.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/language_model.h"

#include <optional>
#include <string>
#include <vector>

#include "json_output.h"

namespace eckart::cli {

/// One intermediate in figures. Those of numbers leave NaN and infinity out.
struct TraceRow {
  std::string name;
  Shape shape;
  double mean = 0;
  double norm = 0;  // Frobenius
  double least = 0, largest = 0;
  Index n_nan = 0, n_infinite = 0;
  /// Where the first NaN or infinity stands, one position an axis.
  std::vector<Index> first_bad = {};
};
TraceRow trace_row(const Intermediate& one);

struct LensToken {
  Index id = 0;
  std::string label;
  double logit = 0;
  double probability = 0;
};
/// What the last token's state behind so many layers stands for; no tokens where it is no number.
struct LensRow {
  Index layer = 0;
  std::vector<LensToken> likeliest = {};
};

struct Traced {
  std::string name;
  std::string head;
  std::vector<Index> ids;
  std::vector<std::string> labels;
  std::vector<TraceRow> rows;
  std::vector<LensRow> lens;
};

std::string trace_text(const Traced& found);
Json trace_json(const Traced& found);

}  // namespace eckart::cli

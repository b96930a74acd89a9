// What `eckart attend` found, as text, JSON and a page.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/model/attention_patterns.h"

#include <string>
#include <vector>

#include "json_output.h"

namespace eckart::cli {

struct AttendedHead {
  Index layer = 0;
  HeadPattern pattern;
  Tensor<float> weights;  // query x key; empty where nothing shows them
};

struct Attended {
  std::string name;  // of the model
  std::string head;  // the line that says what it is
  std::vector<Index> ids;
  std::vector<std::string> labels;  // of the tokens, printable
  bool is_causal = true;
  std::vector<AttendedHead> heads;
};

/// The table of heads and the heads of each pattern; of a single head also its weights.
std::string attend_text(const Attended& found);
Json attend_json(const Attended& found);
/// One file, without a request to anywhere.
std::string attend_html(const Attended& found);

}  // namespace eckart::cli

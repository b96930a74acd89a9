// What `eckart diff` has found, as text and as JSON.
#pragma once

#include "eckart/model/checkpoint_difference.h"

#include <string>

#include "json_output.h"

namespace eckart::cli {

/// The counts, a table of what changed, and the rest folded over layers.
std::string difference_text(const std::string& head, const CheckpointDifference& found);
Json difference_json(const CheckpointDifference& found);

}  // namespace eckart::cli

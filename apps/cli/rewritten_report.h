// What became of an adapter's modules, as text and as JSON.
#pragma once

#include "eckart/lora/rewritten_adapter.h"

#include <string>

#include "json_output.h"

namespace eckart::cli {

/// A line a module, layers of equal figures folded, and the totals.
std::string rewritten_text(const std::string& output, const RewrittenAdapter& result);
Json rewritten_json(const std::string& output, const RewrittenAdapter& result);

}  // namespace eckart::cli

// What `eckart lora extract` prints.
#pragma once

#include "eckart/lora/extract.h"

#include <string>

namespace eckart::cli {

/// The adapter in a few lines, and a table of its matrices, largest errors first where there are
/// many.
std::string extract_text(const ExtractReport& report);
/// What would become of each tensor.
std::string preview_text(const ExtractReport& report);

}  // namespace eckart::cli

// Patterns for the names of tensors, as a shell has them for files.
#pragma once

#include <string_view>

namespace eckart {

/// Whether `*` (any letters, dots too) and `?` (any one letter) of the pattern can be replaced so
/// that it is the name. Every other letter stands for itself. Time: the product of the lengths at
/// worst.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace eckart

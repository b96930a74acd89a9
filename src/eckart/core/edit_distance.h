// How far two names are apart: hints say which one may have been meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace eckart {

/// The least number of inserted, dropped and replaced bytes from `a` to `b` (Levenshtein, 1966).
/// Cost: the product of both lengths.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace eckart

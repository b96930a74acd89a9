// Numbers and lists as a reader of messages wants them.
#pragma once

#include "eckart/core/shape.h"

#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// `30,522`: digits in groups of three.
std::string grouped_digits(Index number);
/// `1 layer`, `32 layers`, `2,048 entries` (`y` after a consonant becomes `ies`).
std::string count_of(Index count, std::string_view noun);
/// `0..31`, `0,2,4..31`, `5,6`: ascending numbers, three or more in a row as a range.
std::string number_ranges(const std::vector<Index>& ascending);
/// `a`, `a and b`, `a, b and c`.
std::string listed(const std::vector<std::string>& items, std::string_view last_word = "and");

}  // namespace eckart

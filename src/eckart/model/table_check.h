// The headers against the table that config.json implies. Included by the library alone.
#pragma once

#include "eckart/model/difference_list.h"

namespace eckart::detail {

/// `input` has an architecture, tensors and their matches.
void compare_table(const CrossCheckInput& input, DifferenceList& list);

}  // namespace eckart::detail

// The patterns and behaviours of tokenizer.json's sections. Internal.
#pragma once

#include "eckart/model/tokenizer/fields.h"
#include "eckart/model/tokenizer/pattern.h"

namespace eckart::detail {

/// `pattern` of a section: {"String": …} or {"Regex": …}. Throws FormatError when it is neither or
/// no expression.
Pattern read_pattern(const Fields& section);
/// `behavior` of a section.
SplitBehavior read_behavior(const Fields& section);

}  // namespace eckart::detail

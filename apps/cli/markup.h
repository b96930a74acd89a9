// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace eckart::cli {

/// The text with the characters that markup reads itself replaced, control characters by blanks, and
/// escapes, marks that change the direction of writing, bytes that are no UTF-8 and characters that
/// XML does not have by `\xNN`. Names come from files that anyone may have written.
std::string escaped(std::string_view text);

}  // namespace eckart::cli

// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace eckart::cli {

/// The text with the characters that markup reads itself replaced, control characters by blanks:
/// XML has none. Names come from files that anyone may have written.
std::string escaped(std::string_view text);

}  // namespace eckart::cli

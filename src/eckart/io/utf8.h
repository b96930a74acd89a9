// UTF-8, strictly: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eckart {

struct Utf8Character {
  std::size_t length = 1;  // in bytes; 1 where it is not valid
  char32_t code = 0;
  bool valid = false;
};

/// The character at the start of `text`, which isn't empty.
Utf8Character decode_utf8(std::string_view text);

/// Byte of the first character that is no UTF-8, or nothing. Eight bytes a step through ASCII.
std::optional<std::uint64_t> find_invalid_utf8(std::string_view text);

}  // namespace eckart

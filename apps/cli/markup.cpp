#include "markup.h"

#include "eckart/io/findings.h"

#include <algorithm>

namespace eckart::cli {
namespace {

// Zero width joiner and non-joiner, which scripts and emoji are written with.
bool is_joiner_at(std::string_view text, std::size_t at) {
  const std::string_view three = text.substr(at, 3);
  return three == "\u200c" || three == "\u200d";
}

// As on a terminal, but for joiners, and for blanks in the place of tabs and line ends.
std::string without_controls(std::string_view text) {
  std::string result;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const bool is_blank = static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\x1b';
    if (!is_blank && !is_joiner_at(text, i)) {
      ++i;
      continue;
    }
    const std::size_t length = is_blank ? 1 : 3;
    result += printable_path(text.substr(begin, i - begin));
    result += is_blank ? " " : text.substr(i, length);
    i += length;
    begin = i;
  }
  return result + printable_path(text.substr(begin));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : without_controls(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace eckart::cli

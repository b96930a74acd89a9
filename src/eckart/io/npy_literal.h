// The piece of Python's syntax that an .npy header is written in: a dict of strings, booleans,
// whole numbers, tuples and lists. It is parsed, never evaluated.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {

/// A value of a header.
struct NpyLiteral {
  enum class Kind { text, truth, number, tuple, list };

  Kind kind = Kind::text;
  std::string text;               // a string's characters; a number's sign and digits
  bool truth = false;             // True or False
  std::vector<NpyLiteral> items;  // of a tuple or a list
  std::string_view source;        // as written, in the parsed text
  std::size_t at = 0;             // where it begins, in bytes from the start of the parsed text
};

/// A dict with strings as keys, in the order written; or what is wrong with the text and where.
struct NpyDict {
  std::vector<std::pair<std::string, NpyLiteral>> entries;
  std::string error;  // empty: none
  std::size_t error_at = 0;
};

/// Parses the whole of `text`, which may end with white space. Values nested deeper than 16 are an
/// error. Time and memory are proportional to the text's length.
NpyDict parse_npy_dict(std::string_view text);

}  // namespace eckart

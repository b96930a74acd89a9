// Where a tokenizer's patterns match in a text. Internal.
#pragma once

#include "eckart/model/tokenizer/aligned_text.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// A regular expression in Oniguruma's syntax, as tokenizer.json has it, in that of PCRE2: `\s`,
/// `\w` and `\h` as Oniguruma means them, classes within classes spelled out, `^` and `$` at every
/// line. Throws ArgumentError for `&&`, negated classes within classes and `\W` or `\H` in a class.
std::string pcre2_syntax(const std::string& expression);

/// A text or an expression to be found. May be used by any number of threads at once.
class Pattern {
 public:
  static Pattern literal(std::string text);
  /// Throws ArgumentError when it is no regular expression.
  static Pattern regex(const std::string& expression);

  /// Calls `found` for every match, left to right; matches of no characters are passed over. `text`
  /// is valid UTF-8. Throws ArgumentError when one match takes more steps than the length of the
  /// text accounts for.
  template <class Found>
  void for_each_match(std::string_view text, const Found& found) const {
    ByteRange match;
    while (next(text, match.end, match)) found(match);
  }

 private:
  struct Code;
  struct Free {
    void operator()(Code* code) const;
  };

  bool next(std::string_view text, std::size_t from, ByteRange& match) const;
  bool next_of_regex(std::string_view text, std::size_t from, ByteRange& match) const;

  std::string text_;  // the literal, or the expression as the file has it
  std::unique_ptr<Code, Free> code_;
};

/// What becomes of the matches when a text is split there.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// A part of a text: a match, or what lies between two.
struct SplitPart {
  ByteRange range;
  bool is_match = false;
};

/// The words that parts, which lie side by side, become. Words of no bytes are left out.
void split_parts(const std::vector<SplitPart>& parts, SplitBehavior behavior,
                 std::vector<ByteRange>& words);

}  // namespace eckart::detail

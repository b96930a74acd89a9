#include "eckart/io/npy_literal.h"

#include "eckart/io/findings.h"

#include <utility>

namespace eckart {
namespace {

constexpr int max_depth = 16;            // a record of records of …; NumPy's own are 2 or 3 deep
constexpr std::size_t shown_bytes = 20;  // of the text in a message

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Recursive descent. After the first error every step is a no-op that returns false.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NpyDict dict() {
    NpyDict result;
    if (!parse_dict(result)) {
      result.entries.clear();
      result.error = error_;
      result.error_at = error_at_;
    }
    return result;
  }

 private:
  bool parse_dict(NpyDict& dict) {
    if (!expect('{', "a dict")) return false;
    while (!accept('}')) {
      NpyLiteral key;
      if (peek() != '\'' && peek() != '"') return fail("a key in quotes or }");
      if (!parse_string(key) || !expect(':', ": after the key")) return false;
      NpyLiteral value;
      if (!parse_value(value, 0)) return false;
      dict.entries.emplace_back(std::move(key.text), std::move(value));
      if (!accept(',') && peek() != '}') return fail(", or }");
    }
    skip_space();
    return at_ == text_.size() || fail("nothing but spaces after }");
  }

  bool parse_value(NpyLiteral& value, int depth) {
    skip_space();
    const std::size_t begin = at_;
    if (!parse_any(value, depth)) return false;
    value.at = begin;
    value.source = text_.substr(begin, at_ - begin);
    return true;
  }

  bool parse_any(NpyLiteral& value, int depth) {
    if (depth > max_depth) return fail("values nested at most 16 deep");
    const char c = peek();
    if (c == '\'' || c == '"') return parse_string(value);
    if (c == '(' || c == '[') return parse_items(value, depth);
    if (is_digit(c) || c == '-' || c == '+') return parse_number(value);
    if (accept_word("True")) {
      value.kind = NpyLiteral::Kind::truth;
      value.truth = true;
      return true;
    }
    if (accept_word("False")) {
      value.kind = NpyLiteral::Kind::truth;
      return true;
    }
    return fail("a string, True, False, a whole number, a tuple or a list");
  }

  bool parse_items(NpyLiteral& value, int depth) {
    const bool is_tuple = accept('(');
    if (!is_tuple) accept('[');
    const char close = is_tuple ? ')' : ']';
    value.kind = is_tuple ? NpyLiteral::Kind::tuple : NpyLiteral::Kind::list;
    bool comma = false;
    while (!accept(close)) {
      if (!parse_value(value.items.emplace_back(), depth + 1)) return false;
      comma = accept(',');
      if (!comma && peek() != close) return fail(is_tuple ? ", or )" : ", or ]");
    }
    // Python's (5) is the number 5 in brackets; only the comma makes it a tuple.
    if (is_tuple && value.items.size() == 1 && !comma) {
      NpyLiteral inner = std::move(value.items.front());
      value = std::move(inner);
    }
    return true;
  }

  bool parse_string(NpyLiteral& value) {
    const char quote = peek();
    value.kind = NpyLiteral::Kind::text;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return true;
      }
      if (c == '\n') break;
      value.text += c;
      // An escape stays as it is written: it can only stand in the name of a record's field.
      if (c == '\\' && at_ + 1 < text_.size()) value.text += text_[++at_];
    }
    return fail("the end of the string");
  }

  bool parse_number(NpyLiteral& value) {
    value.kind = NpyLiteral::Kind::number;
    if (text_[at_] == '-' || text_[at_] == '+') {
      if (text_[at_] == '-') value.text = '-';
      ++at_;
    }
    const std::size_t digits = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) value.text += text_[at_++];
    if (at_ == digits) return fail("digits");
    if (text_[digits] == '0' && at_ - digits > 1) {
      at_ = digits;
      return fail("a number without leading zeros");
    }
    if (at_ < text_.size() && (text_[at_] == 'L' || text_[at_] == 'l')) ++at_;  // Python 2's long
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.')) {
      return fail("a whole number");
    }
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  bool accept_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    const std::size_t end = at_ + word.size();
    if (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) return false;
    at_ = end;
    return true;
  }

  bool expect(char c, const char* what) { return accept(c) || fail(what); }

  bool fail(const std::string& wanted) {
    const std::string_view found = text_.substr(at_, shown_bytes);
    error_ = "expected " + wanted + ", found " +
             (found.empty() ? "the end of the header" : '"' + printable(found) + '"');
    error_at_ = at_;
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
  std::size_t error_at_ = 0;
};

}  // namespace

NpyDict parse_npy_dict(std::string_view text) { return Parser(text).dict(); }

}  // namespace eckart

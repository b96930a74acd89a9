#include "eckart/io/json_error.h"

#include "eckart/io/findings.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace eckart {
namespace {

// The parser takes a NUL byte for the end of its input.
constexpr std::string_view nul_byte = "a NUL byte";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_structural(char c) {
  return c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',';
}
bool is_number_part(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

// Where the parser is in the text. It follows strings, stops tokens that grow too long, and shows the parser one space of every run of them: the parser keeps
// what it reads since the last token, and padding can be long.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t max_token_bytes)
      : text_(text), max_token_bytes_(max_token_bytes) {}

  bool at_end() const { return position_ == text_.size() || token_bytes_ > max_token_bytes_; }
  char current() const { return text_[position_]; }
  std::uint64_t position() const { return position_; }
  bool in_string() const { return in_string_; }
  bool token_too_long() const { return token_bytes_ > max_token_bytes_; }

  void advance() {
    const char c = text_[position_++];
    if (in_string_) {
      ++token_bytes_;
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        token_bytes_ = 0;
      }
    } else if (is_space(c)) {
      token_bytes_ = 0;
      while (position_ < text_.size() && is_space(text_[position_])) ++position_;
    } else if (c == '"') {
      in_string_ = true;
      token_bytes_ = 0;
    } else if (is_structural(c)) {
      token_bytes_ = 0;
    } else {
      ++token_bytes_;
    }
  }

 private:
  std::string_view text_;
  std::size_t max_token_bytes_;
  std::size_t position_ = 0;
  std::size_t token_bytes_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

// An iterator as the parser wants it: any copy moves the one cursor.
class CursorIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  CursorIterator() = default;
  explicit CursorIterator(Cursor* cursor) : cursor_(cursor) {}

  char operator*() const { return cursor_->current(); }
  CursorIterator& operator++() {
    cursor_->advance();
    return *this;
  }
  friend bool operator==(const CursorIterator& a, const CursorIterator& b) {
    return a.is_end() == b.is_end();
  }
  friend bool operator!=(const CursorIterator& a, const CursorIterator& b) { return !(a == b); }

 private:
  bool is_end() const { return cursor_ == nullptr || cursor_->at_end(); }

  Cursor* cursor_ = nullptr;
};

// Follows the parser for its first error.
class Errors {
 public:
  Errors(std::string_view text, const JsonLimits& limits)
      : cursor(text, limits.max_token_bytes), text_(text), limits_(limits) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_unsigned(std::uint64_t) { return true; }
  bool number_integer(std::int64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool string(const std::string&) { return true; }
  bool binary(const nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return start(); }
  bool start_array(std::size_t) { return start(); }
  bool key(const std::string&) { return true; }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& exception) {
    const std::string_view why = reason(exception.what());
    if (cursor.token_too_long()) {
      fail(last(), fmt::format("a token of more than {} bytes", limits_.max_token_bytes));
    } else if (why.find("number") != std::string_view::npos) {
      fail(last_number(), why);
    } else if (why.find("end of input") == std::string_view::npos) {
      fail(last(), why);
    } else if (cursor.position() > 0 && text_[cursor.position() - 1] == '\0') {
      fail(last(), nul_byte);
    } else {
      fail(text_.size(), why);
    }
    return false;
  }

  void fail(std::uint64_t at, std::string_view why) { error = JsonError{at, printable(why)}; }

  Cursor cursor;
  std::optional<JsonError> error;

 private:
  // The byte read last, not counting a run of spaces after it.
  std::uint64_t last() const {
    std::uint64_t at = cursor.position();
    if (at == 0) return 0;
    do {
      --at;
    } while (at > 0 && !cursor.in_string() && is_space(text_[at]));
    return at;
  }

  bool start() {
    if (++depth_ <= limits_.max_depth) return true;
    fail(last(), fmt::format("arrays and objects nested more than {} deep", limits_.max_depth));
    return false;
  }

  bool end() {
    --depth_;
    return true;
  }

  // Where the number began that was read last. The parser sees a number's end only at the byte
  // behind it, except at the end of the text.
  std::uint64_t last_number() const {
    std::uint64_t begin = last() + 1;
    if (!is_number_part(text_[begin - 1])) --begin;
    while (begin > 0 && is_number_part(text_[begin - 1])) --begin;
    return begin;
  }

  // The sentence of the parser's message, without its codes, its count of lines and what it read.
  static std::string_view reason(std::string_view message) {
    constexpr std::string_view before = " - ";
    const std::size_t dash = message.find(before);
    if (dash != std::string_view::npos) {
      message.remove_prefix(dash + before.size());
    } else if (const std::size_t code = message.find("] "); code != std::string_view::npos) {
      message.remove_prefix(code + 2);
    }
    return message.substr(0, message.find("; last read"));
  }

  std::string_view text_;
  const JsonLimits& limits_;
  int depth_ = 0;
};

}  // namespace

std::optional<JsonError> find_json_error(std::string_view text, const JsonLimits& limits) {
  Errors errors(text, limits);
  const bool whole = nlohmann::json::sax_parse(CursorIterator(&errors.cursor), CursorIterator(),
                                               &errors, nlohmann::json::input_format_t::json);
  const std::uint64_t position = errors.cursor.position();
  if (whole && text[position - 1] == '\0') errors.fail(position - 1, nul_byte);
  return errors.error;
}

}  // namespace eckart

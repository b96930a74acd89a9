#include "eckart/io/json_events.h"

#include "eckart/io/findings.h"
#include "eckart/io/json_error.h"
#include "eckart/io/utf8.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

// The first byte from `position` on that is a quote, a backslash or a control character, or one in
// the last seven of the text: eight bytes at a time, by the test for a zero byte in a word.
std::size_t skip_plain(std::string_view text, std::size_t position) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t ones = 0x0101010101010101U;
  constexpr std::uint64_t highs = 0x8080808080808080U;
  const auto zeros = [](std::uint64_t word) { return (word - ones) & ~word & highs; };
  while (position + sizeof(std::uint64_t) <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + position, sizeof word);
    const std::uint64_t below_space = (word - ones * 0x20U) & ~word & highs;
    // A borrow marks bytes falsely, but only above a byte that is marked rightly.
    const std::uint64_t found =
        zeros(word ^ (ones * '"')) | zeros(word ^ (ones * '\\')) | below_space;
    if (found != 0) return position + static_cast<std::size_t>(std::countr_zero(found)) / 8;
    position += sizeof word;
  }
  return position;
}

// Sends the events of sound JSON and ends at the first byte that is not. What is wrong there is
// for find_json_error to say.
class Reader {
 public:
  Reader(std::string_view text, JsonHandler& handler, const JsonLimits& limits)
      : text_(text), handler_(handler), limits_(limits) {}

  /// False when the text is unsound; `has_enough()` when the handler ended the reading.
  bool read() {
    if (!value()) return false;
    while (!open_.empty()) {
      if (!next()) return false;
    }
    skip_spaces();
    return position_ == text_.size();
  }
  bool has_enough() const { return has_enough_; }
  std::uint64_t position() const { return position_; }

 private:
  bool at(char c) const { return position_ < text_.size() && text_[position_] == c; }
  void skip_spaces() {
    while (position_ < text_.size() && is_space(text_[position_])) ++position_;
  }
  // The handler's answer.
  bool sent(bool goes_on) {
    has_enough_ = !goes_on;
    return goes_on;
  }

  // One member or element of the innermost array or object, or its end.
  bool next() {
    skip_spaces();
    const bool in_object = open_.back() == JsonKind::object;
    if (at(in_object ? '}' : ']')) {
      open_.pop_back();
      is_first_ = false;
      return sent(handler_.close(++position_));
    }
    if (!is_first_) {
      if (!at(',')) return false;
      ++position_;
      skip_spaces();
    }
    if (in_object && !key()) return false;
    return value();
  }

  bool key() {
    const std::optional<JsonPlace> place = string();
    if (!place || !sent(handler_.key(decoded_, *place))) return false;
    skip_spaces();
    if (!at(':')) return false;
    ++position_;
    return true;
  }

  bool value() {
    skip_spaces();
    is_first_ = false;
    if (position_ == text_.size()) return false;
    switch (text_[position_]) {
      case '{':
        return open(JsonKind::object);
      case '[':
        return open(JsonKind::array);
      case '"': {
        const std::optional<JsonPlace> place = string();
        return place && sent(handler_.scalar({JsonKind::string, 0, decoded_}, *place));
      }
      case 't':
        return word("true", JsonKind::boolean);
      case 'f':
        return word("false", JsonKind::boolean);
      case 'n':
        return word("null", JsonKind::null);
      default:
        return number();
    }
  }

  bool open(JsonKind kind) {
    if (open_.size() == static_cast<std::size_t>(limits_.max_depth)) return false;
    open_.push_back(kind);
    is_first_ = true;
    return sent(handler_.open(kind, position_++));
  }

  bool word(std::string_view written, JsonKind kind) {
    if (text_.substr(position_, written.size()) != written) return false;
    const std::uint64_t begin = position_;
    position_ += written.size();
    return sent(handler_.scalar({kind, 0, written}, {begin, position_}));
  }

  std::size_t digits() {
    const std::size_t begin = position_;
    while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
    return position_ - begin;
  }

  bool number() {
    const std::size_t begin = position_;
    const bool is_negative = at('-');
    if (is_negative) ++position_;
    const bool begins_with_zero = at('0');
    const std::size_t n_digits = digits();
    if (n_digits == 0 || (begins_with_zero && n_digits > 1)) return false;
    JsonKind kind = is_negative ? JsonKind::negative : JsonKind::natural;
    if (at('.')) {
      kind = JsonKind::fraction;
      ++position_;
      if (digits() == 0) return false;
    }
    if (at('e') || at('E')) {
      kind = JsonKind::fraction;
      ++position_;
      if (at('+') || at('-')) ++position_;
      if (digits() == 0) return false;
    }
    const std::string_view written = text_.substr(begin, position_ - begin);
    if (written.size() > limits_.max_token_bytes) return false;
    JsonScalar scalar{kind, 0, written};
    if (kind == JsonKind::natural &&
        std::from_chars(written.data(), written.data() + written.size(), scalar.natural).ec !=
            std::errc()) {
      scalar.kind = JsonKind::large_integer;
    }
    // No number is too large for a double.
    if (scalar.kind != JsonKind::natural && !nlohmann::json::accept(written)) return false;
    return sent(handler_.scalar(scalar, {begin, position_}));
  }

  // Sets `decoded_`, which is a part of the text unless something in the string is escaped.
  std::optional<JsonPlace> string() {
    if (!at('"')) return std::nullopt;
    const std::size_t begin = position_++;
    bool has_escapes = false;
    while (true) {
      position_ = skip_plain(text_, position_);
      if (position_ >= text_.size() || is_control(text_[position_])) return std::nullopt;
      const char c = text_[position_++];
      if (c == '"') break;
      if (c == '\\') {
        has_escapes = true;
        ++position_;
      }
    }
    if (position_ - begin - 2 > limits_.max_token_bytes) return std::nullopt;
    decoded_ = text_.substr(begin + 1, position_ - begin - 2);
    if (has_escapes) {
      const auto parsed =
          nlohmann::json::parse(text_.substr(begin, position_ - begin), nullptr, false);
      if (!parsed.is_string()) return std::nullopt;
      unescaped_ = parsed.get<std::string>();
      decoded_ = unescaped_;
    }
    return JsonPlace{begin, position_};
  }

  std::string_view text_;
  JsonHandler& handler_;
  const JsonLimits& limits_;
  std::size_t position_ = 0;
  std::vector<JsonKind> open_;
  bool is_first_ = false;  // nothing stands yet in the innermost array or object
  bool has_enough_ = false;
  std::string_view decoded_;
  std::string unescaped_;
};

}  // namespace

std::optional<JsonError> read_json_events(std::string_view text, JsonHandler& handler,
                                          const JsonLimits& limits) {
  if (const std::optional<std::uint64_t> at = find_invalid_utf8(text)) {
    return JsonError{*at, "not UTF-8"};
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    return JsonError{0, "a byte order mark, which JSON does not have"};
  }
  Reader reader(text, handler, limits);
  if (reader.read() || reader.has_enough()) return std::nullopt;
  const std::optional<JsonError> error = find_json_error(text, limits);
  return error ? error : JsonError{reader.position(), "unexpected token"};
}

std::string describe(JsonKind kind) {
  switch (kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return "a boolean";
    case JsonKind::natural:
      return "an integer";
    case JsonKind::negative:
      return "a negative integer";
    case JsonKind::large_integer:
      return "an integer of more than 64 bits";
    case JsonKind::fraction:
      return "a number that is no plain integer";
    case JsonKind::string:
      return "a string";
    case JsonKind::array:
      return "an array";
    case JsonKind::object:
      return "an object";
  }
  return {};
}

std::string describe(const JsonScalar& value) {
  std::string text = printable(value.text, 60);
  switch (value.kind) {
    case JsonKind::natural:
      return "the integer " + text;
    case JsonKind::negative:
      return "the negative integer " + text;
    case JsonKind::large_integer:
      return "the integer " + text + " of more than 64 bits";
    case JsonKind::fraction:
      return "the number " + text + ", no plain integer";
    case JsonKind::string:
      return "the string \"" + text + "\"";
    default:
      return text;
  }
}

}  // namespace eckart

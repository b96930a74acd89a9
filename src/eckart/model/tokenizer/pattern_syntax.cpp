#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/tokenizer/pattern.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace eckart::detail {
namespace {

// Oniguruma's \p{Han} is a script, PCRE2's its extensions too.
constexpr std::array<std::string_view, 24> scripts = {
    "Arabic",   "Armenian", "Bengali",   "Bopomofo", "Cyrillic", "Devanagari",
    "Ethiopic", "Georgian", "Greek",     "Gujarati", "Gurmukhi", "Han",
    "Hangul",   "Hebrew",   "Hiragana",  "Kannada",  "Katakana", "Khmer",
    "Lao",      "Latin",    "Malayalam", "Tamil",    "Telugu",   "Thai"};

// One pass over an expression; classes may lie within classes.
class Translator {
 public:
  explicit Translator(const std::string& expression) : in_(expression) {}

  std::string translated() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        open_class();
      } else if (in_.compare(at_, 2, "(?") == 0) {
        group();
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw_argument_error('"' + printable(in_, 100) + "\" has " + what + " at byte " +
                         std::to_string(at_) +
                         ", but Eckart's regular expressions do not have that");
  }

  // An escape and what belongs to it.
  void escape(bool in_class) {
    if (at_ + 1 >= in_.size()) {
      out_ += in_[at_++];
      return;
    }
    const char c = in_[at_ + 1];
    if (in_class && (c == 'W' || c == 'H')) refuse(std::string("\\") + c + " in a class");
    if (c == 'p' || c == 'P') return property();
    const auto is = [&](char letter, std::string_view positive, std::string_view alone) {
      if (c != letter) return false;
      out_ += in_class ? positive : alone;
      at_ += 2;
      return true;
    };
    if (is('s', "\\p{White_Space}", "\\p{White_Space}") ||
        is('S', "\\P{White_Space}", "\\P{White_Space}") ||
        is('w', "\\p{Alphabetic}\\p{M}\\p{N}\\p{Pc}", "[\\p{Alphabetic}\\p{M}\\p{N}\\p{Pc}]") ||
        is('W', "", "[^\\p{Alphabetic}\\p{M}\\p{N}\\p{Pc}]") ||
        is('h', "0-9a-fA-F", "[0-9a-fA-F]") || is('H', "", "[^0-9a-fA-F]")) {
      return;
    }
    out_.append(in_, at_, 2);
    at_ += 2;
  }

  void property() {
    const std::size_t end = in_.compare(at_ + 2, 1, "{") == 0 ? in_.find('}', at_) : at_ + 2;
    if (end == std::string::npos) refuse("\\p{ without }");
    const std::string whole = in_.substr(at_, end + 1 - at_);
    const std::string name = whole.size() > 4 ? whole.substr(3, whole.size() - 4) : std::string();
    if (std::find(scripts.begin(), scripts.end(), name) != scripts.end()) {
      out_ += whole.substr(0, 3) + "sc:" + name + '}';
    } else {
      out_ += whole;
    }
    at_ = end + 1;
  }

  // `(?m` of Oniguruma lets a point match line ends, which is PCRE2's `(?s`.
  void group() {
    out_ += "(?";
    at_ += 2;
    while (at_ < in_.size() && std::string_view("imx-").find(in_[at_]) != std::string_view::npos) {
      out_ += in_[at_] == 'm' ? 's' : in_[at_];
      ++at_;
    }
  }

  void open_class() {
    out_ += '[';
    ++at_;
    if (at_ < in_.size() && in_[at_] == '^') {
      out_ += '^';
      ++at_;
    }
    // A bracket that comes first is itself.
    if (at_ < in_.size() && in_[at_] == ']') {
      out_ += "\\]";
      ++at_;
    }
    std::size_t depth = 1;
    while (depth > 0) {
      if (at_ >= in_.size()) refuse("a class without ]");
      class_part(depth);
    }
    out_ += ']';
  }

  void class_part(std::size_t& depth) {
    const char c = in_[at_];
    if (c == '\\') return escape(true);
    if (in_.compare(at_, 2, "&&") == 0) refuse("&& in a class");
    if (c == '[') {
      const std::size_t end =
          in_.compare(at_, 2, "[:") == 0 ? in_.find(":]", at_) : std::string::npos;
      if (end != std::string::npos) {
        out_.append(in_, at_, end + 2 - at_);
        at_ = end + 2;
        return;
      }
      if (in_.compare(at_, 2, "[^") == 0) refuse("a negated class in a class");
      ++depth;
    } else if (c == ']') {
      --depth;
    } else {
      out_ += c;
    }
    ++at_;
  }

  const std::string& in_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string pcre2_syntax(const std::string& expression) {
  return Translator(expression).translated();
}

}  // namespace eckart::detail

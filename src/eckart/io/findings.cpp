#include "eckart/io/findings.h"

#include "eckart/core/errors.h"
#include "eckart/io/utf8.h"

#include <algorithm>
#include <utility>

namespace eckart {
namespace {

// Characters that move the cursor, hide, or reorder what stands beside them, and those that are none.
bool is_unprintable(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
         (code >= 0xe0000 && code <= 0xe007f) || (code & 0xfffeU) == 0xfffe;
}

}  // namespace

void Findings::add(Finding finding) {
  ++(finding.severity == Severity::error ? errors_ : warnings_);
  std::size_t& made = made_[finding.rule + '\n' + finding.file];
  if (made++ < kept_per_rule) findings_.push_back(std::move(finding));
}

void Findings::append(const Findings& other) {
  findings_.insert(findings_.end(), other.findings_.begin(), other.findings_.end());
  for (const auto& [kind, made] : other.made_) made_[kind] += made;
  errors_ += other.errors_;
  warnings_ += other.warnings_;
}

const Finding* Findings::first_error() const {
  const auto found = std::find_if(findings_.begin(), findings_.end(), [](const Finding& finding) {
    return finding.severity == Severity::error;
  });
  return found == findings_.end() ? nullptr : &*found;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string result;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    std::string piece(text.substr(0, character.length));
    if (!character.valid || is_unprintable(character.code)) {
      std::string escaped;
      for (const char c : piece) {
        const auto byte = static_cast<unsigned char>(c);
        escaped += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
      }
      piece = std::move(escaped);
    }
    if (result.size() + piece.size() > max_bytes) return result + "…";
    result += piece;
    text.remove_prefix(character.length);
  }
  return result;
}

std::string printable_path(std::string_view path) {
  constexpr std::size_t longest_escape = 4;  // `\\xNN` for one byte
  return printable(path, path.size() * longest_escape);
}

void throw_first_error(const Findings& findings) {
  const Finding* const error = findings.first_error();
  if (error == nullptr) return;
  std::string message = printable_path(error->file) + ": ";
  if (!error->tensor.empty()) message += "tensor " + printable(error->tensor) + ": ";
  throw_format_error(error->file, error->begin, message + error->message, error->hint);
}

}  // namespace eckart

#include "eckart/lora/name_regex.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <array>
#include <cstdint>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace eckart::detail {
namespace {

constexpr std::uint32_t max_steps = 10'000'000;

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string in_quotes(std::string_view text) { return '"' + printable(text, 100) + '"'; }

std::string reason_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

// PCRE2's own type stays out of the header.
struct NameRegex::Code {
  pcre2_code* compiled = nullptr;
};

void NameRegex::Free::operator()(Code* code) const {
  pcre2_code_free(code->compiled);
  delete code;
}

NameRegex::NameRegex(const std::string& expression) : expression_(expression), code_(new Code) {
  int error = 0;
  PCRE2_SIZE at = 0;
  code_->compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C,
                    &error, &at, nullptr);
  if (code_->compiled != nullptr) return;
  throw_argument_error(in_quotes(expression) + " is not a regular expression: " + reason_of(error) +
                       " at byte " + std::to_string(at));
}

std::optional<std::string_view> NameRegex::first_group(std::string_view name) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create_from_pattern(code_->compiled, nullptr));
  const std::unique_ptr<pcre2_match_context, FreeMatch> limits(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(limits.get(), max_steps);
  const int found = pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(name.data()),
                                name.size(), 0, 0, match.get(), limits.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw_argument_error(in_quotes(expression_) + " can't be held against " + in_quotes(name) +
                         ": " + reason_of(found));
  }
  const PCRE2_SIZE* const places = pcre2_get_ovector_pointer(match.get());
  if (found < 2 || places[2] == PCRE2_UNSET) return std::string_view();
  return name.substr(places[2], places[3] - places[2]);
}

bool NameRegex::matches(std::string_view name) const { return first_group(name).has_value(); }

namespace {

bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
}

// The one name that a key such as `^model\.norm` fits, or nothing.
std::optional<std::string> whole_name(std::string_view key) {
  if (key.empty() || key.front() != '^') return std::nullopt;
  std::string name;
  for (std::size_t i = 1; i < key.size(); ++i) {
    if (is_word(key[i])) {
      name += key[i];
    } else if (key[i] == '\\' && i + 1 < key.size() && (key[i + 1] == '.' || key[i + 1] == '-')) {
      name += key[++i];
    } else {
      return std::nullopt;
    }
  }
  return name;
}

bool is_plain(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(),
                                     [](char letter) { return is_word(letter) || letter == '.'; });
}

// Whether a name ends with the key, behind a point or as a whole; a point of the key is any letter.
bool ends_with_plain(std::string_view name, std::string_view key) {
  if (name.size() < key.size()) return false;
  const std::size_t begin = name.size() - key.size();
  if (begin > 0 && name[begin - 1] != '.') return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] != name[begin + i] && key[i] != '.') return false;
  }
  return true;
}

bool is_ascii(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x80 && letter != '\n';
  });
}

}  // namespace

NamePatterns::NamePatterns(const std::vector<std::string>& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    if (const std::optional<std::string> name = whole_name(key)) {
      whole_.emplace(*name, i);
    } else if (is_plain(key)) {
      plain_[key.size()].emplace_back(i, key);
    } else {
      // By itself first, so that the message is about the key and brackets close within it.
      static_cast<void>(NameRegex(key));
      expressions_.emplace_back(i, NameRegex("(.*\\.)?(" + key + ")$"));
    }
  }
}

std::optional<std::size_t> NamePatterns::find(std::string_view name) const {
  std::optional<std::size_t> first;
  const auto take = [&](std::size_t at) { first = std::min(at, first.value_or(at)); };
  if (const auto found = whole_.find(std::string(name)); found != whole_.end()) take(found->second);
  // A point stands for one letter, which of others than ASCII is several bytes.
  const bool is_simple = is_ascii(name);
  for (const auto& [size, keys] : plain_) {
    if (size > name.size() && is_simple) break;
    if (is_simple && size < name.size() && name[name.size() - size - 1] != '.') continue;
    for (const auto& [at, key] : keys) {
      if (first && at > *first) break;
      if (is_simple ? ends_with_plain(name, key)
                    : NameRegex("(.*\\.)?(" + key + ")$").matches(name)) {
        take(at);
        break;
      }
    }
  }
  for (const auto& [at, expression] : expressions_) {
    if (first && at > *first) break;
    if (expression.matches(name)) take(at);
  }
  return first;
}

}  // namespace eckart::detail

#include "eckart/lora/name_regex.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

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

NamePatterns::NamePatterns(const std::vector<std::string>& keys) {
  expressions_.reserve(keys.size());
  for (const std::string& key : keys) {
    // By itself first, so that the message is about the key and brackets close within it.
    static_cast<void>(NameRegex(key));
    expressions_.emplace_back("(.*\\.)?(" + key + ")$");
  }
}

std::optional<std::size_t> NamePatterns::find(std::string_view name) const {
  for (std::size_t i = 0; i < expressions_.size(); ++i) {
    if (expressions_[i].matches(name)) return i;
  }
  return std::nullopt;
}

}  // namespace eckart::detail

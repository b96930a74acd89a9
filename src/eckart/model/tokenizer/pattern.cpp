#include "eckart/model/tokenizer/pattern.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace eckart::detail {
namespace {

// A pattern that backtracks takes more; those of real tokenizers take a few steps a byte.
constexpr std::uint64_t steps_at_least = 1'000'000;
constexpr std::uint64_t steps_per_byte = 100;
constexpr std::uint64_t steps_at_most = 1'000'000'000;

std::string reason_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

std::string in_quotes(std::string_view text) { return '"' + printable(text, 100) + '"'; }

// What a thread needs for matching, whatever the pattern: room for one pair of places, and a stack.
class MatchRoom {
 public:
  MatchRoom()
      : match_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(initial_stack, largest_stack, nullptr)) {
    pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  MatchRoom(const MatchRoom&) = delete;
  MatchRoom& operator=(const MatchRoom&) = delete;
  ~MatchRoom() {
    pcre2_match_data_free(match_);
    pcre2_match_context_free(context_);
    pcre2_jit_stack_free(stack_);
  }

  pcre2_match_data* match() { return match_; }
  pcre2_match_context* limited_to(std::size_t text_bytes) {
    const std::uint64_t steps =
        std::min(steps_at_most, steps_at_least + steps_per_byte * text_bytes);
    pcre2_set_match_limit(context_, static_cast<std::uint32_t>(steps));
    return context_;
  }

 private:
  static constexpr std::size_t initial_stack = std::size_t{32} << 10U;
  static constexpr std::size_t largest_stack = std::size_t{64} << 20U;

  pcre2_match_data* match_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
};

}  // namespace

// PCRE2's own type stays out of the header.
struct Pattern::Code {
  pcre2_code* compiled = nullptr;
};

void Pattern::Free::operator()(Code* code) const {
  pcre2_code_free(code->compiled);
  delete code;
}

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.text_ = std::move(text);
  return pattern;
}

Pattern Pattern::regex(const std::string& expression) {
  const std::string translated = pcre2_syntax(expression);
  Pattern pattern;
  pattern.text_ = expression;
  pattern.code_.reset(new Code);
  int error = 0;
  PCRE2_SIZE at = 0;
  pattern.code_->compiled = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (pattern.code_->compiled == nullptr) {
    throw_argument_error(in_quotes(expression) +
                         " is not a regular expression: " + reason_of(error) + " at byte " +
                         std::to_string(at) + " of " + in_quotes(translated));
  }
  // Where there is no just-in-time compiler it is matched without.
  static_cast<void>(pcre2_jit_compile(pattern.code_->compiled, PCRE2_JIT_COMPLETE));
  return pattern;
}

bool Pattern::next(std::string_view text, std::size_t from, ByteRange& match) const {
  if (code_ != nullptr) return next_of_regex(text, from, match);
  const std::size_t at = text_.empty() ? std::string_view::npos : text.find(text_, from);
  if (at == std::string_view::npos) return false;
  match = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + text_.size())};
  return true;
}

bool Pattern::next_of_regex(std::string_view text, std::size_t from, ByteRange& match) const {
  thread_local MatchRoom room;
  pcre2_match_context* const context = room.limited_to(text.size());
  const PCRE2_SIZE* const places = pcre2_get_ovector_pointer(room.match());
  while (from < text.size()) {
    // The text is known to be UTF-8; checking it at each match would cost its length each time.
    const int found =
        pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, room.match(), context);
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0) {
      throw_argument_error("encode: the tokenizer's pattern " + in_quotes(text_) +
                           " can't be held against the text from byte " + std::to_string(from) +
                           " on: " + reason_of(found));
    }
    match = {static_cast<std::uint32_t>(places[0]), static_cast<std::uint32_t>(places[1])};
    // `\K` can put the beginning behind the end.
    if (match.begin >= from && match.begin < match.end) return true;
    from = std::max<std::size_t>(from, match.end) + 1;
  }
  return false;
}

void split_parts(const std::vector<SplitPart>& parts, SplitBehavior behavior,
                 std::vector<ByteRange>& words) {
  const std::size_t first = words.size();
  bool previous = false;  // whether the part before, in the order of reading, was a match
  const auto joins = [&](bool is_match) {
    const bool has_one = words.size() > first;
    if (behavior == SplitBehavior::contiguous) return has_one && is_match == previous;
    if (behavior == SplitBehavior::merged_with_previous) return has_one && is_match && !previous;
    return false;
  };
  if (behavior == SplitBehavior::merged_with_next) {
    // From the right, so that a match joins what it goes before.
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->is_match && !previous && words.size() > first) {
        words.back().begin = part->range.begin;
      } else {
        words.push_back(part->range);
      }
      previous = part->is_match;
    }
    std::reverse(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
    return;
  }
  for (const SplitPart& part : parts) {
    if (behavior == SplitBehavior::removed && part.is_match) continue;
    if (joins(part.is_match)) {
      words.back().end = part.range.end;
    } else {
      words.push_back(part.range);
    }
    previous = part.is_match;
  }
}

}  // namespace eckart::detail

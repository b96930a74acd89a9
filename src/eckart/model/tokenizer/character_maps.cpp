#include "eckart/model/tokenizer/character_maps.h"

#include "eckart/core/errors.h"

#include <algorithm>

namespace eckart::detail {
namespace {

// A file whose replacements are long could make of a small text one that no memory holds.
void check_growth(const AlignedText& made, const AlignedText& text) {
  constexpr std::size_t always = std::size_t{1} << 20U;
  constexpr std::size_t factor = 64;
  constexpr std::size_t largest = std::size_t{1} << 31U;
  if (made.size() <= std::min(largest, always + factor * text.size())) return;
  throw_argument_error(
      "encode: the tokenizer's normalizer makes the text more than 64 times as long, but no "
      "normalizer does");
}

}  // namespace

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void make_lower(AlignedText& text) {
  bool same = true;
  for_each_character(text.text(),
                     [&](char32_t c, ByteRange) { same = same && lower_case(c).first == c; });
  if (same) return;
  AlignedText made;
  made.clear_to_build(text.size());
  for_each_character(text.text(), [&](char32_t c, ByteRange range) {
    const LowerCase lower = lower_case(c);
    made.append(lower.first, text.place(range));
    if (lower.second != 0) made.append(lower.second, text.place(range));
  });
  text = std::move(made);
}

void replace(AlignedText& text, const Pattern& pattern, std::string_view content) {
  AlignedText made;
  std::uint32_t done = 0;
  pattern.for_each_match(text.text(), [&](ByteRange match) {
    if (done == 0 && made.is_unchanged()) made.clear_to_build(text.size() + text.size() / 2);
    made.append(text, {done, match.begin});
    made.append(content, text.place({match.end - 1, match.end}));
    check_growth(made, text);
    done = match.end;
  });
  if (made.is_unchanged()) return;
  made.append(text, {done, static_cast<std::uint32_t>(text.size())});
  text = std::move(made);
}

}  // namespace eckart::detail

// Changes of a text character by character, each kept with its place. Internal.
#pragma once

#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/aligned_text.h"
#include "eckart/model/tokenizer/pattern.h"

#include <string_view>
#include <utility>

namespace eckart::detail {

bool is_ascii(std::string_view text);

/// Calls `visit(character, range)` for every character.
template <class Visit>
void for_each_character(std::string_view text, const Visit& visit) {
  for (std::uint32_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text.substr(at));
    const auto end = at + static_cast<std::uint32_t>(next.length);
    visit(next.code, ByteRange{at, end});
    at = end;
  }
}

/// Drops the characters that `keep` does not hold for; a text that has none of them stays as it is.
template <class Keep>
void keep_if(AlignedText& text, const Keep& keep) {
  bool keeps_all = true;
  for_each_character(text.text(), [&](char32_t c, ByteRange) { keeps_all = keeps_all && keep(c); });
  if (keeps_all) return;
  AlignedText kept;
  kept.clear_to_build(text.size());
  for_each_character(text.text(), [&](char32_t c, ByteRange range) {
    if (keep(c)) kept.append(text, range);
  });
  text = std::move(kept);
}

/// Replaces every character by what `to` makes of it.
template <class To>
void map(AlignedText& text, const To& to) {
  bool same = true;
  for_each_character(text.text(), [&](char32_t c, ByteRange) { same = same && to(c) == c; });
  if (same) return;
  AlignedText made;
  made.clear_to_build(text.size());
  for_each_character(text.text(),
                     [&](char32_t c, ByteRange range) { made.append(to(c), text.place(range)); });
  text = std::move(made);
}

void make_lower(AlignedText& text);

/// Puts `content` in the place of every match; it stands for the match's last character.
void replace(AlignedText& text, const Pattern& pattern, std::string_view content);

}  // namespace eckart::detail

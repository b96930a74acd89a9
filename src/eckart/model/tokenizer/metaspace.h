// SentencePiece's spaces: a visible mark for each, and one before the text. Internal.
#pragma once

#include "eckart/model/tokenizer/pre_tokenizer.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eckart::detail {

/// The settings of a section of type Metaspace, of a pre-tokenizer or a decoder.
struct MetaspaceRules {
  enum class Prepend { always, first, never };

  std::string replacement = "\xE2\x96\x81";  // U+2581
  Prepend prepend = Prepend::always;
  bool split = true;
};
MetaspaceRules read_metaspace_rules(const Fields& section);

std::unique_ptr<PreTokenizer> read_metaspace(const Fields& section);

/// Puts `inserted` before each word for which `wants(word, place of its beginning in the original)`
/// holds; it has the place of the word's first character.
template <class Wants>
void prepend_to_words(WordList& list, std::string_view inserted, const Wants& wants) {
  const auto wants_it = [&](ByteRange word) {
    return word.begin < word.end &&
           wants(list.text.text().substr(word.begin, word.end - word.begin),
                 list.text.place({word.begin, word.begin + 1}).begin);
  };
  bool any = false;
  for (const ByteRange word : list.words) any = any || wants_it(word);
  if (!any) return;
  AlignedText made;
  made.clear_to_build(list.text.size() + list.words.size() * inserted.size());
  for (ByteRange& word : list.words) {
    const auto begin = static_cast<std::uint32_t>(made.size());
    if (wants_it(word)) made.append(inserted, list.text.place({word.begin, word.begin + 1}));
    made.append(list.text, word);
    word = {begin, static_cast<std::uint32_t>(made.size())};
  }
  list.text = std::move(made);
}

}  // namespace eckart::detail

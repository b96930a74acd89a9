#include "eckart/model/tokenizer/metaspace.h"

#include "eckart/io/findings.h"
#include "eckart/model/tokenizer/pattern.h"

#include <vector>

namespace eckart::detail {
namespace {

class Metaspace : public PreTokenizer {
 public:
  explicit Metaspace(MetaspaceRules rules) : rules_(std::move(rules)) {}

  void apply(WordList& list) const override {
    mark_spaces(list);
    if (rules_.prepend != MetaspaceRules::Prepend::never) {
      const bool first_alone = rules_.prepend == MetaspaceRules::Prepend::first;
      prepend_to_words(list, rules_.replacement, [&](std::string_view word, std::size_t begin) {
        return !word.starts_with(rules_.replacement) && (!first_alone || begin == 0);
      });
    }
    if (rules_.split) split(list);
  }

 private:
  void mark_spaces(WordList& list) const {
    if (list.text.text().find(' ') == std::string_view::npos) return;
    AlignedText made;
    made.clear_to_build(list.text.size() + list.text.size() / 2);
    for (ByteRange& word : list.words) {
      const auto begin = static_cast<std::uint32_t>(made.size());
      append_marked(list.text, word, made);
      word = {begin, static_cast<std::uint32_t>(made.size())};
    }
    list.text = std::move(made);
  }

  void append_marked(const AlignedText& text, ByteRange word, AlignedText& made) const {
    std::uint32_t done = word.begin;
    for (std::uint32_t at = word.begin; at < word.end; ++at) {
      if (text.text()[at] != ' ') continue;
      made.append(text, {done, at});
      made.append(rules_.replacement, text.place({at, at + 1}));
      done = at + 1;
    }
    made.append(text, {done, word.end});
  }

  // Each mark begins a word, after the mark before it at the latest.
  void split(WordList& list) const {
    const Pattern mark = Pattern::literal(rules_.replacement);
    std::vector<ByteRange> words;
    std::vector<SplitPart> parts;
    for (const ByteRange word : list.words) {
      parts.clear();
      std::uint32_t done = word.begin;
      const std::string_view text = list.text.text().substr(word.begin, word.end - word.begin);
      mark.for_each_match(text, [&](ByteRange match) {
        const ByteRange moved = {match.begin + word.begin, match.end + word.begin};
        if (moved.begin > done) parts.push_back({{done, moved.begin}, false});
        parts.push_back({moved, true});
        done = moved.end;
      });
      if (done < word.end) parts.push_back({{done, word.end}, false});
      split_parts(parts, SplitBehavior::merged_with_next, words);
    }
    list.words = std::move(words);
  }

  MetaspaceRules rules_;
};

}  // namespace

MetaspaceRules read_metaspace_rules(const Fields& section) {
  MetaspaceRules rules;
  rules.replacement = section.text_or("replacement", rules.replacement);
  if (rules.replacement.empty()) section.fail("has an empty replacement, but it is one character");
  rules.split = section.boolean_or("split", true);
  if (!section.has("prepend_scheme")) {
    // As files before 2024 have it.
    const bool adds = section.boolean_or("add_prefix_space", true);
    rules.prepend = adds ? MetaspaceRules::Prepend::always : MetaspaceRules::Prepend::never;
    return rules;
  }
  const std::string scheme = section.text("prepend_scheme");
  if (scheme == "always") {
    rules.prepend = MetaspaceRules::Prepend::always;
  } else if (scheme == "first") {
    rules.prepend = MetaspaceRules::Prepend::first;
  } else if (scheme == "never") {
    rules.prepend = MetaspaceRules::Prepend::never;
  } else {
    section.refuse("of prepend_scheme \"" + printable(scheme, 60) + '"', "always, first, never");
  }
  return rules;
}

std::unique_ptr<PreTokenizer> read_metaspace(const Fields& section) {
  return std::make_unique<Metaspace>(read_metaspace_rules(section));
}

}  // namespace eckart::detail

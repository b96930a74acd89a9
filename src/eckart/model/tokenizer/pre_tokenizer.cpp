#include "eckart/model/tokenizer/pre_tokenizer.h"

#include "eckart/io/findings.h"
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/character_maps.h"
#include "eckart/model/tokenizer/metaspace.h"
#include "eckart/model/tokenizer/pattern.h"
#include "eckart/model/tokenizer/read_pattern.h"

#include <string>
#include <utility>

namespace eckart::detail {
namespace {

// Calls `part(range, is_match)` for every match of the word and what lies between.
template <class Part>
void for_each_part(const Pattern& pattern, std::string_view word, const Part& part) {
  std::uint32_t done = 0;
  pattern.for_each_match(word, [&](ByteRange match) {
    if (match.begin > done) part(ByteRange{done, match.begin}, false);
    part(match, true);
    done = match.end;
  });
  if (done < word.size()) part(ByteRange{done, static_cast<std::uint32_t>(word.size())}, false);
}

// Splits every word by `parts_of(word, part)`, which calls `part(range, is_match)` from left to
// right; ranges are the word's.
template <class PartsOf>
void split_words(WordList& list, SplitBehavior behavior, const PartsOf& parts_of) {
  std::vector<ByteRange> words;
  words.reserve(list.words.size() + list.text.size() / 4);
  std::vector<SplitPart> parts;
  for (const ByteRange word : list.words) {
    parts.clear();
    const auto keep = [&](ByteRange part, bool is_match) {
      const ByteRange moved = {part.begin + word.begin, part.end + word.begin};
      if (behavior == SplitBehavior::isolated) {
        words.push_back(moved);
      } else {
        parts.push_back({moved, is_match});
      }
    };
    parts_of(list.text.text().substr(word.begin, word.end - word.begin), keep);
    split_parts(parts, behavior, words);
  }
  list.words = std::move(words);
}

// Splits at every character that `is_match` holds for.
template <class IsMatch>
void split_at(WordList& list, SplitBehavior behavior, const IsMatch& is_match) {
  split_words(list, behavior, [&](std::string_view word, const auto& part) {
    std::uint32_t done = 0;
    for_each_character(word, [&](char32_t c, ByteRange range) {
      if (!is_match(c)) return;
      if (range.begin > done) part(ByteRange{done, range.begin}, false);
      part(range, true);
      done = range.end;
    });
    if (done < word.size()) part(ByteRange{done, static_cast<std::uint32_t>(word.size())}, false);
  });
}

class Split : public PreTokenizer {
 public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void apply(WordList& list) const override {
    split_words(list, behavior_, [&](std::string_view word, const auto& part) {
      for_each_part(pattern_, word,
                    [&](ByteRange range, bool is_match) { part(range, is_match != invert_); });
    });
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Splits at characters of one kind.
class SplitCharacters : public PreTokenizer {
 public:
  SplitCharacters(bool (*is_match)(char32_t), SplitBehavior behavior)
      : is_match_(is_match), behavior_(behavior) {}
  void apply(WordList& list) const override { split_at(list, behavior_, is_match_); }

 private:
  bool (*is_match_)(char32_t);
  SplitBehavior behavior_;
};

class SplitDelimiter : public PreTokenizer {
 public:
  explicit SplitDelimiter(char32_t delimiter) : delimiter_(delimiter) {}
  void apply(WordList& list) const override {
    split_at(list, SplitBehavior::removed, [&](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

// Runs of word characters and runs of what is neither word nor space: \w+|[^\w\s]+
class Whitespace : public PreTokenizer {
 public:
  void apply(WordList& list) const override {
    split_words(list, SplitBehavior::removed, [](std::string_view word, const auto& part) {
      Kind last = Kind::space;
      std::uint32_t begin = 0;
      for_each_character(word, [&](char32_t c, ByteRange range) {
        const Kind kind = kind_of(c);
        if (kind == last) return;
        part(ByteRange{begin, range.begin}, last == Kind::space);
        begin = range.begin;
        last = kind;
      });
      part(ByteRange{begin, static_cast<std::uint32_t>(word.size())}, last == Kind::space);
    });
  }

 private:
  enum class Kind { space, word, other };
  static Kind kind_of(char32_t c) {
    if (is_word_character(c)) return Kind::word;
    return is_white_space(c) ? Kind::space : Kind::other;
  }
};

// GPT-2's words, or the words as they are; the bytes are the model's symbols.
class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex) : add_prefix_space_(add_prefix_space) {
    if (use_regex) {
      words_.emplace(
          Pattern::regex("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                         "\\s+(?!\\S)|\\s+"),
          SplitBehavior::isolated, false);
    }
  }
  void apply(WordList& list) const override {
    if (add_prefix_space_) {
      prepend_to_words(list, " ",
                       [](std::string_view word, std::size_t) { return !word.starts_with(' '); });
    }
    if (words_) words_->apply(list);
  }

 private:
  bool add_prefix_space_;
  std::optional<Split> words_;
};

constexpr const char* supported =
    "ByteLevel, Split, BertPreTokenizer, Whitespace, WhitespaceSplit, Metaspace, Digits, "
    "Punctuation, CharDelimiterSplit, Sequence";

template <class Type, class... Arguments>
void add(PreTokenizers& to, Arguments&&... arguments) {
  to.all.push_back(std::make_unique<Type>(std::forward<Arguments>(arguments)...));
}

class BertPreTokenizer : public PreTokenizer {
 public:
  void apply(WordList& list) const override {
    split_at(list, SplitBehavior::removed, is_white_space);
    split_at(list, SplitBehavior::isolated, is_punctuation);
  }
};

void read_sequence(const Fields& section, PreTokenizers& pre_tokenizers) {
  for (const Fields& part : section.list("pretokenizers")) {
    read_pre_tokenizers(part, pre_tokenizers);
  }
}

// Those whose behaviour is a matter of a few flags; false when it is none of them.
bool read_splitter(const std::string& type, const Fields& section, PreTokenizers& to) {
  if (type == "Split") {
    add<Split>(to, read_pattern(section), read_behavior(section),
               section.boolean_or("invert", false));
  } else if (type == "Whitespace") {
    add<Whitespace>(to);
  } else if (type == "WhitespaceSplit") {
    add<SplitCharacters>(to, is_white_space, SplitBehavior::removed);
  } else if (type == "Digits") {
    add<SplitCharacters>(to, is_number,
                         section.boolean_or("individual_digits", false)
                             ? SplitBehavior::isolated
                             : SplitBehavior::contiguous);
  } else if (type == "Punctuation") {
    add<SplitCharacters>(
        to, is_punctuation,
        section.has("behavior") ? read_behavior(section) : SplitBehavior::isolated);
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = section.text("delimiter");
    if (delimiter.empty()) section.fail("has an empty delimiter, but it is one character");
    add<SplitDelimiter>(to, decode_utf8(delimiter).code);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<PreTokenizer> bert_pre_tokenizer() { return std::make_unique<BertPreTokenizer>(); }

void read_pre_tokenizers(const Fields& section, PreTokenizers& pre_tokenizers) {
  const std::string type = section.type();
  if (type == "Sequence") return read_sequence(section, pre_tokenizers);
  if (pre_tokenizers.byte_level) {
    section.refuse("behind ByteLevel, which makes bytes of the text", "sequences that end with it");
  }
  if (read_splitter(type, section, pre_tokenizers)) return;
  if (type == "ByteLevel") {
    add<ByteLevel>(pre_tokenizers, section.boolean_or("add_prefix_space", true),
                   section.boolean_or("use_regex", true));
    pre_tokenizers.byte_level = true;
  } else if (type == "BertPreTokenizer") {
    pre_tokenizers.all.push_back(bert_pre_tokenizer());
  } else if (type == "Metaspace") {
    pre_tokenizers.all.push_back(read_metaspace(section));
  } else {
    section.refuse("of type \"" + printable(type, 60) + '"', supported);
  }
}

}  // namespace eckart::detail

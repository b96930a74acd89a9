// The steps of tokenizers by themselves: patterns, characters, places of changed texts.
#include "eckart/model/tokenizer/aligned_text.h"
#include "eckart/model/tokenizer/byte_letters.h"
#include "eckart/model/tokenizer/byte_trie.h"
#include "eckart/model/tokenizer/characters.h"
#include "eckart/model/tokenizer/normalizer.h"
#include "eckart/model/tokenizer/pattern.h"
#include "eckart/model/tokenizer/vocabulary.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace eckart::detail {
namespace {

std::vector<std::string> matches(const Pattern& pattern, std::string_view text) {
  std::vector<std::string> found;
  pattern.for_each_match(text, [&](ByteRange range) {
    found.emplace_back(text.substr(range.begin, range.end - range.begin));
  });
  return found;
}

using Texts = std::vector<std::string>;

TEST(TokenizerPattern, MeansWhatOnigurumaMeans) {
  // U+180E is a space of PCRE2's, and none of Unicode's since 6.3.
  EXPECT_EQ(matches(Pattern::regex("\\s"), "a\xE1\xA0\x8E \xE2\x80\x83"),
            (Texts{" ", "\xE2\x80\x83"}));
  EXPECT_EQ(matches(Pattern::regex("\\h+"), "xyz 0aF"), (Texts{"0aF"}));
  EXPECT_EQ(matches(Pattern::regex("^b"), "a\nb"), (Texts{"b"}));
  EXPECT_EQ(matches(Pattern::regex("(?m:a.b)"), "a\nb"), (Texts{"a\nb"}));
  EXPECT_EQ(matches(Pattern::regex("\\w+"), "e\xCC\x81_1 \xC2\xBD"),
            (Texts{"e\xCC\x81_1", "\xC2\xBD"}));
}

TEST(TokenizerPattern, SpellsOutClassesWithinClasses) {
  EXPECT_EQ(pcre2_syntax("[^(\\s|[.,])]+"), "[^(\\p{White_Space}|.,)]+");
  EXPECT_EQ(pcre2_syntax("[]a]"), "[\\]a]");
  EXPECT_EQ(pcre2_syntax("[[:alpha:]x]"), "[[:alpha:]x]");
  EXPECT_EQ(pcre2_syntax("\\p{Han}\\p{L}\\["), "\\p{sc:Han}\\p{L}\\[");
}

TEST(TokenizerPattern, PassesOverMatchesOfNothing) {
  EXPECT_EQ(matches(Pattern::regex("a*"), "baac"), (Texts{"aa"}));
  EXPECT_EQ(matches(Pattern::literal(""), "abc"), Texts{});
  EXPECT_EQ(matches(Pattern::literal("."), "a.b."), (Texts{".", "."}));
}

Texts split(SplitBehavior behavior) {
  const std::string_view text = "a--b-";
  const std::vector<SplitPart> parts = {
      {{0, 1}, false}, {{1, 2}, true}, {{2, 3}, true}, {{3, 4}, false}, {{4, 5}, true}};
  std::vector<ByteRange> words;
  split_parts(parts, behavior, words);
  Texts texts;
  for (const ByteRange word : words)
    texts.emplace_back(text.substr(word.begin, word.end - word.begin));
  return texts;
}

// The examples of Hugging Face's documentation, one letter a word.
TEST(TokenizerPattern, SplitsByFiveBehaviors) {
  EXPECT_EQ(split(SplitBehavior::removed), (Texts{"a", "b"}));
  EXPECT_EQ(split(SplitBehavior::isolated), (Texts{"a", "-", "-", "b", "-"}));
  EXPECT_EQ(split(SplitBehavior::merged_with_previous), (Texts{"a-", "-", "b-"}));
  EXPECT_EQ(split(SplitBehavior::merged_with_next), (Texts{"a", "-", "-b", "-"}));
  EXPECT_EQ(split(SplitBehavior::contiguous), (Texts{"a", "--", "b", "-"}));
}

TEST(TokenizerCharacters, AreOfUnicodesKinds) {
  EXPECT_TRUE(is_white_space(0x3000) && is_white_space(0x85) && !is_white_space(0x200b));
  EXPECT_TRUE(is_punctuation('$') && is_punctuation(0x3002) && !is_punctuation(0x20ac));
  EXPECT_TRUE(is_number(0xbd) && is_number(0x661) && !is_number('a'));
  EXPECT_TRUE(is_control(0x200d) && is_control(0xe000) && !is_control(0x378));
  EXPECT_TRUE(is_nonspacing_mark(0x301) && !is_nonspacing_mark(0x903) && is_mark(0x903));
  EXPECT_TRUE(is_chinese(0x4e00) && is_chinese(0x20000) && !is_chinese(0x3042));
  EXPECT_EQ(lower_case(0x130).second, 0x307U);
  EXPECT_EQ(lower_case(0x3a3).first, 0x3c3U);
  EXPECT_EQ(compose('e', 0x301), 0xe9U);
  EXPECT_EQ(compose(0x1112, 0x1161), 0xd558U);
  EXPECT_EQ(compose('x', 0x301), std::nullopt);
}

TEST(TokenizerCharacters, SpellBytesAsGpt2Does) {
  EXPECT_EQ(letters_of(" \n!\xAD"), "\xC4\xA0\xC4\x8A!\xC5\x83");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(bytes_of_letters(letters_of(all)), all);
  EXPECT_EQ(bytes_of_letters(" "), std::nullopt);
}

std::string normalized_with(const std::string& section, std::string_view text) {
  const std::string source = "t.json";
  const nlohmann::json tree = nlohmann::json::parse(section);
  Normalizers normalizers;
  read_normalizers(Fields(tree, "normalizer", source), normalizers);
  AlignedText aligned(text, {0, static_cast<std::uint32_t>(text.size())});
  apply_all(normalizers, aligned);
  return std::string(aligned.text());
}

TEST(TokenizerNormalizer, MakesTheNormalFormsOfUax15) {
  // The figures of UAX #15: s with dots above and below.
  EXPECT_EQ(normalized_with(R"({"type": "NFC"})", "\xE1\xB8\x8B\xCC\xA3"), "\xE1\xB8\x8D\xCC\x87");
  EXPECT_EQ(normalized_with(R"({"type": "NFD"})", "\xE1\xB8\x8B\xCC\xA3"), "d\xCC\xA3\xCC\x87");
  EXPECT_EQ(normalized_with(R"({"type": "NFKC"})", "\xEF\xAC\x81\xE2\x91\xA0"), "fi1");
  EXPECT_EQ(normalized_with(R"({"type": "NFD"})", "\xED\x95\x98"), "\xE1\x84\x92\xE1\x85\xA1");
}

TEST(TokenizerNormalizer, ReplacesStripsAndPrepends) {
  EXPECT_EQ(normalized_with(R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "xy"})",
                            "baac"),
            "bxyc");
  EXPECT_EQ(
      normalized_with(R"({"type": "Strip", "strip_left": true, "strip_right": false})", " \n a "),
      "a ");
  EXPECT_EQ(normalized_with(R"({"type": "Strip"})", " \n "), "");
  EXPECT_EQ(normalized_with(R"({"type": "Prepend", "prepend": "_"})", ""), "");
  EXPECT_EQ(normalized_with(R"({"type": "Prepend", "prepend": "_"})", "a"), "_a");
}

TEST(TokenizerAlignedText, KnowsTheBytesOfTheOriginal) {
  const std::string_view original = "xx caf\xC3\xA9!";
  AlignedText text(original, {3, 9});
  EXPECT_EQ(text.place({4, 5}).begin, 6U);  // in the midst of é: the whole of it
  EXPECT_EQ(text.place({4, 5}).end, 8U);
  // é becomes e and a mark, both in its place.
  text.transform({{'c', 0}, {'a', 0}, {'f', 0}, {'e', 0}, {0x301, 1}, {'!', 0}});
  EXPECT_EQ(text.text(), "cafe\xCC\x81!");
  EXPECT_EQ(text.place({3, 6}).begin, 6U);
  EXPECT_EQ(text.place({3, 6}).end, 8U);
  EXPECT_EQ(text.place({6, 7}).begin, 8U);
}

TEST(TokenizerVocabulary, HoldsEachTokenAndIdOnce) {
  Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.find("a"), std::nullopt);
  for (std::uint32_t id = 0; id < 5000; ++id) {
    ASSERT_EQ(vocabulary.add(std::to_string(id), id * 2), Vocabulary::Added::yes);
  }
  EXPECT_EQ(vocabulary.add("17", 1), Vocabulary::Added::token_stands_twice);
  EXPECT_EQ(vocabulary.add("new", 34), Vocabulary::Added::id_stands_twice);
  EXPECT_EQ(vocabulary.find("4999"), 9998U);
  EXPECT_EQ(vocabulary.token(34), "17");
  EXPECT_EQ(vocabulary.token(35), "");
  EXPECT_EQ(vocabulary.size(), 9999U);
}

TEST(TokenizerByteTrie, FindsEveryTextThatAnotherBeginsWith) {
  ByteTrie trie;
  EXPECT_TRUE(trie.empty());
  trie.add("ab", 1);
  trie.add("abcd", 2);
  trie.add("ab", 3);  // the first counts
  trie.add("b", 4);
  std::vector<std::pair<std::size_t, std::uint32_t>> found;
  const auto keep = [&](std::size_t length, std::uint32_t value) {
    found.emplace_back(length, value);
  };
  trie.for_each_prefix("abcde", keep);
  EXPECT_EQ(found, (std::vector<std::pair<std::size_t, std::uint32_t>>{{2, 1}, {4, 2}}));
  EXPECT_TRUE(trie.begins_with('b') && !trie.begins_with('c'));
}

}  // namespace
}  // namespace eckart::detail

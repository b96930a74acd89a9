// Against Hugging Face's tokenizers on hard texts: tests/golden/make_tokenizers.py.
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

namespace fs = std::filesystem;
using eckart::Encoding;
using eckart::Index;
using eckart::Tokenizer;
using nlohmann::json;

const fs::path folder = fs::path(ECKART_SOURCE_DIR) / "tests/golden/tokenizers";

json read_golden() {
  std::ifstream file(folder / "golden.json");
  return json::parse(file);
}

const json& golden() {
  static const json all = read_golden();
  return all;
}

std::vector<Index> flat_spans(const Encoding& encoding) {
  std::vector<Index> flat;
  for (const eckart::TokenSpan& span : encoding.spans) {
    flat.push_back(static_cast<Index>(span.begin));
    flat.push_back(static_cast<Index>(span.end));
  }
  return flat;
}

class TokenizerKind : public ::testing::TestWithParam<std::string> {
 protected:
  Tokenizer tokenizer_ = eckart::load_tokenizer(folder / (GetParam() + ".json"));
  const json& cases_ = golden()["tokenizers"][GetParam()];
  const json& texts_ = golden()["texts"];
};

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const auto& [name, cases] : golden()["tokenizers"].items()) names.push_back(name);
  return names;
}

TEST_P(TokenizerKind, HasTheIdsAndPlacesOfHuggingFace) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const auto text = texts_[i].get<std::string>();
    const Encoding encoding = tokenizer_.encode(text);
    EXPECT_EQ(encoding.ids, cases_[i]["ids"].get<std::vector<Index>>())
        << "text " << i << ": " << text;
    EXPECT_EQ(flat_spans(encoding), cases_[i]["spans"].get<std::vector<Index>>())
        << "text " << i << ": " << text;
  }
}

TEST_P(TokenizerKind, DecodesToTheTextOfHuggingFace) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const auto ids = cases_[i]["ids"].get<std::vector<Index>>();
    const auto decoded = cases_[i]["decoded"].get<std::string>();
    EXPECT_EQ(tokenizer_.decode(ids), decoded) << "text " << i;
    EXPECT_EQ(tokenizer_.decode(ids, true), cases_[i].value("skipped", decoded)) << "text " << i;
  }
}

// By itself: special tokens left out of both sides.
TEST_P(TokenizerKind, AddsSpecialTokensOnlyWhenAsked) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const auto text = texts_[i].get<std::string>();
    const Encoding with = tokenizer_.encode(text);
    const Encoding without = tokenizer_.encode(text, {.special_tokens = false});
    ASSERT_LE(without.ids.size(), with.ids.size());
    const std::size_t n_added = tokenizer_.encode("").ids.size();
    EXPECT_EQ(without.ids.size() + n_added, with.ids.size()) << "text " << i;
  }
}

TEST_P(TokenizerKind, SpellsEveryTokenAndFindsItAgain) {
  for (Index id = 0; id < tokenizer_.size(); ++id) {
    const std::string spelled = tokenizer_.token(id);
    ASSERT_FALSE(spelled.empty()) << id;
    EXPECT_EQ(tokenizer_.id(spelled), id) << spelled;
  }
}

TEST_P(TokenizerKind, PutsTokensInPlacesThatAreWholeCharactersInOrder) {
  for (const json& given : texts_) {
    const auto text = given.get<std::string>();
    for (const eckart::TokenSpan& span : tokenizer_.encode(text).spans) {
      ASSERT_LE(span.begin, span.end);
      ASSERT_LE(span.end, text.size());
      EXPECT_FALSE(eckart::find_invalid_utf8(text.substr(span.begin, span.end - span.begin)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, TokenizerKind, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param; });

class ByteTokenizer : public TokenizerKind {};

TEST_P(ByteTokenizer, RoundTripsEveryTextAndEachTokenGivesItsBytes) {
  for (const json& given : texts_) {
    const auto text = given.get<std::string>();
    const Encoding encoding = tokenizer_.encode(text, {.special_tokens = false});
    EXPECT_EQ(tokenizer_.decode(encoding.ids), text);
    std::string together;
    for (const Index id : encoding.ids) together += tokenizer_.bytes(id);
    EXPECT_EQ(together, text);
  }
}

TEST_P(ByteTokenizer, GivesBackBytesThatAreNoUtf8) {
  // Half of a character: the first byte of the two of é.
  const Encoding encoding = tokenizer_.encode("\xC3\xA9", {.special_tokens = false});
  std::string together;
  for (const Index id : encoding.ids) {
    const std::vector<Index> one = {id};
    together += tokenizer_.decode(one);
  }
  EXPECT_EQ(together, "\xC3\xA9");
}

// Those that change nothing of the text before they split it.
INSTANTIATE_TEST_SUITE_P(Golden, ByteTokenizer, ::testing::Values("gpt2", "llama3", "bloom"),
                         [](const auto& kind) { return kind.param; });

}  // namespace

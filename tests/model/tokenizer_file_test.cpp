// Broken and hostile tokenizer.json files, and what is said of them.
#include "eckart/core/errors.h"
#include "eckart/model/tokenizer/parts.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace {

using eckart::ArgumentError;
using eckart::FormatError;
using eckart::testing::thrown_by;

void parse(const std::string& json) { eckart::detail::parse_tokenizer_json(json, "t.json"); }

std::string format_error(const std::string& json) {
  return thrown_by<FormatError>([&] { parse(json); });
}

std::string argument_error(const std::string& json) {
  return thrown_by<ArgumentError>([&] { parse(json); });
}

std::string model(const std::string& inside) { return R"({"model": {)" + inside + "}}"; }

// A small sound model, and a section before it.
std::string with(const std::string& section) {
  return "{" + section +
         R"(, "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})";
}

TEST(TokenizerFile, NamesTheByteWhereItIsNoJson) {
  EXPECT_EQ(format_error(R"({"model": )"),
            "t.json: byte 10: unexpected end of input; expected '[', '{', or a literal, but a "
            "tokenizer is one JSON object");
  EXPECT_EQ(format_error("[]"), "t.json: byte 0: it is a list, but a tokenizer is one JSON object");
  EXPECT_EQ(format_error("{}"), "t.json: it has no model, but a tokenizer.json has one");
}

TEST(TokenizerFile, RefusesKeysThatStandTwice) {
  EXPECT_EQ(format_error(R"({"model": {}, "model": {}})"),
            "t.json: byte 14: the key \"model\" stands twice, but each key has one value");
  EXPECT_EQ(format_error(model(R"("vocab": {"a": 0}, "vocab": {"a": 0})")),
            "t.json: byte 30: the key \"vocab\" stands twice, but each key has one value");
  EXPECT_EQ(format_error(model(R"("vocab": {"a": 0, "a": 1})")),
            "t.json: byte 34: the token \"a\" stands twice in the vocabulary, but each has one id");
  EXPECT_EQ(format_error(model(R"("vocab": {"a": 0, "b": 0})")),
            "t.json: byte 34: the id 0 is that of \"a\" and of \"b\", but each id is one token's");
}

TEST(TokenizerFile, RefusesIdsThatAreHugeOrNone) {
  EXPECT_EQ(format_error(model(R"("vocab": {"a": 4194304})")),
            "t.json: byte 26: the id of \"a\" is 4194304, but ids are below 2^22 = 4,194,304");
  EXPECT_EQ(
      format_error(model(R"("vocab": {"a": -1})")),
      "t.json: byte 26: there is the negative integer -1, but a vocabulary has an id for each "
      "token");
  EXPECT_EQ(format_error(model(R"("vocab": {"a": []})")),
            "t.json: byte 26: there is an array, but a vocabulary has an id for each token");
}

TEST(TokenizerFile, RefusesMergesOfTokensThatItLacks) {
  const std::string vocab = R"("type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": )";
  EXPECT_EQ(format_error(model(vocab + R"(["a b"])")),
            "t.json: model.merges[0] has \"ab\", but the vocabulary has no such token");
  EXPECT_EQ(format_error(model(vocab + R"([["a", "c"]])")),
            "t.json: model.merges[0] has \"c\", but the vocabulary has no such token");
  const std::string rule = ", but a merge is two tokens, \"a b\" or [\"a\", \"b\"]";
  EXPECT_EQ(format_error(model(vocab + R"(["ab"])")),
            "t.json: byte 64: there is the string \"ab\"" + rule);
  EXPECT_EQ(format_error(model(vocab + R"([["a"]])")),
            "t.json: byte 69: there is a list of 1" + rule);
  EXPECT_EQ(format_error(model(vocab + R"([["a", "b", "c"]])")),
            "t.json: byte 75: there is the string \"c\"" + rule);
}

TEST(TokenizerFile, NamesWhatItReadsForATypeThatItDoesNot) {
  EXPECT_EQ(
      argument_error(with(R"("normalizer": {"type": "Precompiled"})")),
      "t.json: normalizer is of type \"Precompiled\", but Eckart does not read it\n"
      "  hint: read are BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, "
      "Replace, Prepend, Nmt, Sequence");
  EXPECT_EQ(
      argument_error(with(
          R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]})")),
      "t.json: pre_tokenizer.pretokenizers[0] is of type \"UnicodeScripts\", but Eckart does "
      "not read it\n"
      "  hint: read are ByteLevel, Split, BertPreTokenizer, Whitespace, WhitespaceSplit, "
      "Metaspace, Digits, Punctuation, CharDelimiterSplit, Sequence");
  EXPECT_EQ(argument_error(with(R"("post_processor": {"type": "X"})")),
            "t.json: post_processor is of type \"X\", but Eckart does not read it\n"
            "  hint: read are TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing, "
            "Sequence");
  EXPECT_EQ(argument_error(with(R"("decoder": {"type": "CTC"})")),
            "t.json: decoder is of type \"CTC\", but Eckart does not read it\n"
            "  hint: read are ByteLevel, WordPiece, Metaspace, ByteFallback, Fuse, Strip, Replace, "
            "BPEDecoder, Sequence");
  EXPECT_EQ(argument_error(model(R"("type": "Magic", "vocab": {"a": 0})")),
            "t.json: model is of type \"Magic\", but Eckart does not read it\n"
            "  hint: read are BPE, WordPiece, Unigram, WordLevel");
}

TEST(TokenizerFile, RefusesBytesThatAreSplitAgain) {
  EXPECT_EQ(argument_error(with(
                R"("pre_tokenizer": {"type": "Sequence",
                   "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]})")),
            "t.json: pre_tokenizer.pretokenizers[1] is behind ByteLevel, which makes bytes of the "
            "text, but Eckart does not read it\n"
            "  hint: read are sequences that end with it");
}

TEST(TokenizerFile, RefusesRandomIds) {
  EXPECT_EQ(
      argument_error(model(R"("type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": [])")),
      "t.json: model is with a dropout, but Eckart does not read it\n"
      "  hint: read are models without one: with it the ids of a text are random");
}

TEST(TokenizerFile, RefusesValuesOfAWrongKind) {
  EXPECT_EQ(format_error(with(R"("normalizer": {"type": 3})")),
            "t.json: normalizer.type is 3, but it must be a text");
  EXPECT_EQ(format_error(with(R"("normalizer": {"type": "Prepend"})")),
            "t.json: normalizer has no prepend, but it needs one");
  EXPECT_EQ(format_error(with(R"("added_tokens": [{"id": -1, "content": "x"}])")),
            "t.json: added_tokens[0].id is -1, but it must be a whole number from 0 to 2^32");
  EXPECT_EQ(format_error(with(R"("decoder": {"type": "WordPiece", "cleanup": "yes"})")),
            "t.json: decoder.cleanup is \"yes\", but it must be true or false");
}

TEST(TokenizerFile, RefusesAddedTokensThatContradict) {
  EXPECT_EQ(format_error(with(R"("added_tokens": [{"id": 1, "content": "a"}])")),
            "t.json: added_tokens[0] gives \"a\" the id 1, but the vocabulary gives it 0");
  EXPECT_EQ(format_error(with(R"("added_tokens": [{"id": 0, "content": "b"}])")),
            "t.json: added_tokens[0] gives \"b\" the id 0, but the vocabulary has \"a\" there");
  EXPECT_EQ(
      format_error(
          with(R"("added_tokens": [{"id": 1, "content": "b"}, {"id": 1, "content": "c"}])")),
      "t.json: added_tokens[1] gives \"c\" the id 1, but another added token has one of them");
}

TEST(TokenizerFile, RefusesWhatIsAddedToATextWithoutBeingAToken) {
  EXPECT_EQ(
      format_error(with(
          R"("post_processor": {"type": "BertProcessing", "cls": ["x", 0], "sep": ["y", 9]})")),
      "t.json: post_processor adds the id 9, but the ids of the file end at 0");
}

TEST(TokenizerFile, RefusesPatternsThatAreNone) {
  const auto split = [](const std::string& regex) {
    return with(
        R"("pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": ")" +
        regex + R"("}})");
  };
  EXPECT_EQ(argument_error(split("(a")),
            "t.json: pre_tokenizer.pattern: \"(a\" is not a regular expression: missing closing "
            "parenthesis at byte 2 of \"(a\"");
  EXPECT_EQ(argument_error(split("[a&&b]")),
            "t.json: pre_tokenizer.pattern: \"[a&&b]\" has && in a class at byte 2, but Eckart's "
            "regular expressions do not have that");
}

TEST(TokenizerFile, TakesNestingThatIsDeepForAnError) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"({"type": "Sequence", "normalizers": [)";
  EXPECT_NE(format_error(with("\"normalizer\": " + deep)).find("byte"), std::string::npos);
}

}  // namespace

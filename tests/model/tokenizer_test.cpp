#include "eckart/model/tokenizer.h"

#include "eckart/core/errors.h"
#include "eckart/model/tokenizer/parts.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/thrown.h"
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using eckart::ArgumentError;
using eckart::Encoding;
using eckart::FileError;
using eckart::Index;
using eckart::Tokenizer;
using eckart::testing::thrown_by;

const fs::path golden = fs::path(ECKART_SOURCE_DIR) / "tests/golden/tokenizers";

Tokenizer of_json(const std::string& json) {
  return eckart::detail::tokenizer_of(eckart::detail::parse_tokenizer_json(json, "t.json"));
}

// Letters, and the merges ab and ab+c.
Tokenizer letters(const std::string& more = "") {
  return of_json(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
                     "merges": ["a b", ["ab", "c"]])" +
                 more + "}}");
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("eckart-tokenizer-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

 private:
  fs::path path_;
};

constexpr std::string_view bert_lines =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\nHello\n,\ncafe\ncaf\xC3\xA9\n";

TEST(Tokenizer, MergesTheLowestRankFirst) {
  const Encoding encoding = letters().encode("abcab");
  EXPECT_EQ(encoding.ids, (std::vector<Index>{4, 3}));
  EXPECT_EQ(encoding.spans[1].begin, 3U);
  EXPECT_EQ(encoding.spans[1].end, 5U);
}

TEST(Tokenizer, LeavesOutWhatNoTokenStandsForWhenNothingIsUnknown) {
  const Encoding encoding = letters().encode("a?c");
  EXPECT_EQ(encoding.ids, (std::vector<Index>{0, 2}));
  EXPECT_EQ(encoding.spans[1].begin, 2U);
}

TEST(Tokenizer, SaysWhatIsUnknownWhenItsUnknownTokenIsToo) {
  const Tokenizer tokenizer = letters(R"(, "unk_token": "<unk>")");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { tokenizer.encode("a?"); }),
            "encode: \"?\" is not in the tokenizer's vocabulary, and neither is its unknown token "
            "\"<unk>\"");
}

TEST(Tokenizer, NamesTheByteThatIsNoUtf8) {
  const Tokenizer tokenizer = letters();
  EXPECT_EQ(thrown_by<ArgumentError>([&] { tokenizer.encode("ab\xC3"); }),
            "encode: byte 2 of the text is no UTF-8, but a text is UTF-8");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { tokenizer.encode("\xED\xA0\x80"); }),
            "encode: byte 0 of the text is no UTF-8, but a text is UTF-8");
}

TEST(Tokenizer, RefusesIdsOutOfRange) {
  const Tokenizer tokenizer = letters();
  const std::vector<Index> ids = {0, 5};
  EXPECT_EQ(thrown_by<ArgumentError>([&] { tokenizer.decode(ids); }),
            "decode: the id is 5, but the tokenizer's ids are 0 to 4");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { tokenizer.token(-1); }),
            "token: the id is -1, but the tokenizer's ids are 0 to 4");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { tokenizer.bytes(5); }),
            "bytes: the id is 5, but the tokenizer's ids are 0 to 4");
}

TEST(Tokenizer, IsEmptyUntilItIsLoaded) {
  const Tokenizer tokenizer;
  EXPECT_EQ(thrown_by<ArgumentError>([&] { tokenizer.encode("a"); }),
            "tokenizer: it is empty, but it must be loaded first");
}

TEST(Tokenizer, LeavesOutIdsThatStandForNoToken) {
  const Tokenizer tokenizer = of_json(
      R"({"decoder": {"type": "Fuse"},
          "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 3}, "unk_token": "a"}})");
  EXPECT_EQ(tokenizer.size(), 4);
  EXPECT_EQ(tokenizer.token(2), "");
  const std::vector<Index> ids = {0, 2, 3};
  EXPECT_EQ(tokenizer.decode(ids), "ab");
  EXPECT_EQ(tokenizer.bytes(2), "");
}

TEST(Tokenizer, GivesTheBytesOfATokenThatIsNotTheFirst) {
  const Tokenizer llama = eckart::load_tokenizer(golden / "llama2.json");
  EXPECT_EQ(llama.bytes(*llama.id("\xE2\x96\x81the")), " the");
  EXPECT_EQ(llama.bytes(*llama.id("<0xE4>")), "\xE4");
  const Tokenizer bert = eckart::load_tokenizer(golden / "bert_uncased.json");
  EXPECT_EQ(bert.bytes(*bert.id("the")), " the");
  EXPECT_EQ(bert.bytes(*bert.id("##s")), "s");
  const Tokenizer gpt2 = eckart::load_tokenizer(golden / "gpt2.json");
  EXPECT_EQ(gpt2.bytes(*gpt2.id("\xC4\xA0")), " ");
}

TEST(Tokenizer, KnowsItsSpecialTokens) {
  const Tokenizer bert = eckart::load_tokenizer(golden / "bert_uncased.json");
  EXPECT_TRUE(bert.is_special(*bert.id("[CLS]")));
  EXPECT_FALSE(bert.is_special(*bert.id("the")));
  EXPECT_EQ(bert.id("no such token"), std::nullopt);
  EXPECT_EQ(bert.source(), (golden / "bert_uncased.json").string());
}

// Where Hugging Face's decoder makes a broken byte of it.
TEST(Tokenizer, DecodesAddedTokensOfBytesAsTheyAreSpelled) {
  const Tokenizer tokenizer = of_json(
      R"({"added_tokens": [{"id": 1, "content": "caf\u00e9"}], "pre_tokenizer": {"type": "ByteLevel"},
          "decoder": {"type": "ByteLevel"},
          "model": {"type": "BPE", "vocab": {"\u0120": 0}, "merges": []}})");
  const Encoding encoding = tokenizer.encode(" caf\xC3\xA9");
  EXPECT_EQ(encoding.ids, (std::vector<Index>{0, 1}));
  EXPECT_EQ(tokenizer.decode(encoding.ids), " caf\xC3\xA9");
}

TEST(Tokenizer, ReadsAVocabTxtAsBertsTokenizer) {
  const Folder folder;
  folder.write("vocab.txt", bert_lines);
  const Tokenizer tokenizer = eckart::load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer.encode("Hello, worlds caf\xC3\xA9 x").ids,
            (std::vector<Index>{2, 5, 9, 6, 7, 10, 1, 3}));
  EXPECT_TRUE(tokenizer.is_special(4));
  EXPECT_EQ(tokenizer.encode("[MASK]").ids, (std::vector<Index>{2, 4, 3}));
}

TEST(Tokenizer, TakesTheCaseOfAVocabTxtFromTheConfigBesideIt) {
  const Folder folder;
  folder.write("vocab.txt", bert_lines);
  folder.write("tokenizer_config.json",
               R"({"do_lower_case": false, "unk_token": {"content": "[PAD]", "lstrip": false}})");
  const Tokenizer tokenizer = eckart::load_tokenizer(folder.path() / "vocab.txt");
  EXPECT_EQ(tokenizer.encode("Hello caf\xC3\xA9 x").ids, (std::vector<Index>{2, 8, 11, 0, 3}));
}

TEST(Tokenizer, SaysWhatAFolderLacks) {
  const Folder folder;
  const std::string who = folder.path().string();
  EXPECT_EQ(thrown_by<FileError>([&] { eckart::load_tokenizer(folder.path()); }),
            who +
                ": the folder has neither tokenizer.json nor vocab.txt, but a tokenizer is read "
                "from one of them");
  folder.write("tokenizer.model", "");
  EXPECT_EQ(thrown_by<FileError>([&] { eckart::load_tokenizer(folder.path()); }),
            who +
                ": the folder has tokenizer.model, but Eckart reads tokenizers from "
                "tokenizer.json or vocab.txt\n"
                "  hint: AutoTokenizer.from_pretrained(\xE2\x80\xA6).save_pretrained(\xE2\x80\xA6) "
                "of transformers writes a tokenizer.json");
}

TEST(Tokenizer, RefusesAVocabTxtWithATokenTwice) {
  const Folder folder;
  folder.write("vocab.txt", "a\nb\na\n");
  EXPECT_EQ(thrown_by<FileError>([&] { eckart::load_tokenizer(folder.path()); }),
            (folder.path() / "vocab.txt").string() +
                ": line 3: \"a\" stands there twice, but each token has one id");
  folder.write("vocab.txt", "a\nb\n");
  EXPECT_EQ(thrown_by<FileError>([&] { eckart::load_tokenizer(folder.path()); }),
            (folder.path() / "vocab.txt").string() +
                ": it has no [CLS], but BERT's tokenizer puts it around a text");
}

// A million letters in one word, whose every pair merges, again and again: quadratic work would
// take hours.
TEST(Tokenizer, TakesAWordOfAMegabyte) {
  std::string vocab = R"("a": 0)";
  std::string merges;
  std::string token = "a";
  for (int i = 1; i <= 10; ++i) {
    merges += (i > 1 ? ", [\"" : "[\"") + token + "\", \"" + token + "\"]";
    token += token;
    vocab += ", \"" + token + "\": " + std::to_string(i);
  }
  const Tokenizer tokenizer = of_json(R"({"model": {"type": "BPE", "vocab": {)" + vocab +
                                      R"(}, "merges": [)" + merges + "]}}");
  const std::string text(std::size_t{1} << 20U, 'a');
  const Encoding encoding = tokenizer.encode(text);
  EXPECT_EQ(encoding.ids, std::vector<Index>(1024, 10));
  EXPECT_EQ(encoding.spans.back().begin, text.size() - 1024);
}

// (a+)+[bc] backtracks without end on letters that neither follows.
TEST(Tokenizer, GivesUpOnAPatternThatBacktracksWithoutEnd) {
  const Tokenizer tokenizer = of_json(
      R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+[bc]"}, "behavior": "Isolated"},
          "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})");
  const std::string said =
      thrown_by<ArgumentError>([&] { tokenizer.encode(std::string(64, 'a')); });
  EXPECT_EQ(
      said,
      "encode: the tokenizer's pattern \"(a+)+[bc]\" can't be held against the text from byte 0 "
      "on: match limit exceeded");
}

TEST(Tokenizer, FindsAddedTokensLeftmostAndLongest) {
  const Tokenizer tokenizer = of_json(
      R"({"added_tokens": [{"id": 5, "content": "ab"}, {"id": 6, "content": "abca"},
                           {"id": 7, "content": "word", "single_word": true, "normalized": false}],
          "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "w": 3, " ": 4}, "merges": []}})");
  EXPECT_EQ(tokenizer.encode("abcab").ids, (std::vector<Index>{6, 1}));
  EXPECT_EQ(tokenizer.encode("abcb").ids, (std::vector<Index>{5, 2, 1}));
  EXPECT_EQ(tokenizer.encode("word words").ids, (std::vector<Index>{7, 4, 3}));
}

TEST(Tokenizer, KeepsNulAndOtherControls) {
  const Tokenizer gpt2 = eckart::load_tokenizer(golden / "gpt2.json");
  const std::string text("a\0b\x1F\x7F", 5);
  EXPECT_EQ(gpt2.decode(gpt2.encode(text).ids), text);
}

}  // namespace

#include "eckart/model/tokenizer/token_model.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/character_maps.h"

#include <algorithm>
#include <string>
#include <utility>

namespace eckart::detail {
namespace {

// WordPiece (Devlin et al. 2018): the longest token that the rest of the word begins with, again
// and again; a word that can't be taken apart so is unknown as a whole.
class WordPiece : public TokenModel {
 public:
  WordPiece(const Vocabulary& vocabulary, WordPieceRules rules)
      : vocabulary_(vocabulary),
        rules_(std::move(rules)),
        unk_(vocabulary.find(rules_.unk_token)) {}

  void tokenize(std::string_view word, ModelScratch& /*scratch*/,
                std::vector<WordToken>& tokens) const override {
    const std::size_t first = tokens.size();
    if (is_too_long(word) || !take_apart(word, tokens)) {
      tokens.resize(first);
      if (!unk_) throw_unknown(word, rules_.unk_token);
      tokens.push_back({*unk_, {0, static_cast<std::uint32_t>(word.size())}});
    }
  }

 private:
  bool is_too_long(std::string_view word) const {
    const auto limit = static_cast<std::size_t>(rules_.max_characters);
    if (word.size() <= limit) return false;
    return word.size() > 4 * limit ||
           static_cast<std::size_t>(std::count_if(word.begin(), word.end(), [](char byte) {
             return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
           })) > limit;
  }

  bool take_apart(std::string_view word, std::vector<WordToken>& tokens) const {
    std::string piece;
    for (std::size_t begin = 0; begin < word.size();) {
      piece = begin > 0 ? rules_.prefix : std::string();
      const std::size_t n_prefix = piece.size();
      piece += word.substr(begin, vocabulary_.longest());
      std::optional<std::uint32_t> id;
      while (piece.size() > n_prefix && !(id = vocabulary_.find(piece))) drop_character(piece);
      if (!id) return false;
      const std::size_t end = begin + piece.size() - n_prefix;
      tokens.push_back({*id, {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)}});
      begin = end;
    }
    return true;
  }
  static void drop_character(std::string& text) {
    while ((static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) text.pop_back();
    text.pop_back();
  }

  const Vocabulary& vocabulary_;
  WordPieceRules rules_;
  std::optional<std::uint32_t> unk_;
};

// Each word is a token, or unknown.
class WordLevel : public TokenModel {
 public:
  WordLevel(const Vocabulary& vocabulary, std::string unk_token)
      : vocabulary_(vocabulary),
        unk_token_(std::move(unk_token)),
        unk_(vocabulary.find(unk_token_)) {}

  void tokenize(std::string_view word, ModelScratch& /*scratch*/,
                std::vector<WordToken>& tokens) const override {
    const std::optional<std::uint32_t> id = vocabulary_.find(word);
    if (!id && !unk_) throw_unknown(word, unk_token_);
    tokens.push_back({id ? *id : *unk_, {0, static_cast<std::uint32_t>(word.size())}});
  }

 private:
  const Vocabulary& vocabulary_;
  std::string unk_token_;
  std::optional<std::uint32_t> unk_;
};

// The type that a file of before 2020 does not name.
std::string type_of(const Fields& section) {
  if (section.has("type")) return section.type();
  if (section.has("merges")) return "BPE";
  if (section.has("unk_id")) return "Unigram";
  return section.has("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

}  // namespace

void throw_unknown(std::string_view part, std::string_view unk_token) {
  const std::string what = unk_token.empty()
                               ? "it has no unknown token"
                               : "neither is its unknown token \"" + printable(unk_token, 60) + '"';
  throw_argument_error("encode: \"" + printable(part, 60) +
                       "\" is not in the tokenizer's vocabulary, and " + what);
}

std::unique_ptr<TokenModel> word_piece(const Vocabulary& vocabulary, WordPieceRules rules) {
  return std::make_unique<WordPiece>(vocabulary, std::move(rules));
}

std::unique_ptr<TokenModel> word_level(const Vocabulary& vocabulary, std::string unk_token) {
  return std::make_unique<WordLevel>(vocabulary, std::move(unk_token));
}

std::unique_ptr<TokenModel> read_model(const Fields& section, const TokenizerFile& file,
                                       const Vocabulary& vocabulary, bool byte_level) {
  if (!section.has("vocab")) section.fail("has no vocab, but it needs one");
  const std::string type = type_of(section);
  if ((type == "Unigram") != file.vocabulary_is_list) {
    section.fail("is " + type + " with a vocab that is " +
                 (file.vocabulary_is_list ? "a list, but only Unigram's is"
                                          : "an object, but Unigram's is a list"));
  }
  if (byte_level && type != "BPE") {
    section.refuse(type + " behind ByteLevel", "bytes for a BPE");
  }
  if (type == "BPE") return read_bpe(section, file, vocabulary, byte_level);
  if (type == "Unigram") return read_unigram(section, file, vocabulary);
  if (type == "WordLevel") return word_level(vocabulary, section.text_or("unk_token", "<unk>"));
  if (type == "WordPiece") {
    WordPieceRules rules;
    rules.unk_token = section.text_or("unk_token", rules.unk_token);
    rules.prefix = section.text_or("continuing_subword_prefix", rules.prefix);
    rules.max_characters = section.integer_or("max_input_chars_per_word", rules.max_characters);
    return word_piece(vocabulary, std::move(rules));
  }
  section.refuse("of type \"" + printable(type, 60) + '"', "BPE, WordPiece, Unigram, WordLevel");
}

}  // namespace eckart::detail

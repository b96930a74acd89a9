// The model of a tokenizer: a word to the ids of its tokens. Internal.
#pragma once

#include "eckart/model/tokenizer/aligned_text.h"
#include "eckart/model/tokenizer/fields.h"
#include "eckart/model/tokenizer/tokenizer_file.h"
#include "eckart/model/tokenizer/vocabulary.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// A token of a word and the word's bytes that it stands for.
struct WordToken {
  std::uint32_t id = 0;
  ByteRange range;
};

/// Memory that one call of encode uses for all of its words.
struct ModelScratch {
  struct Symbol {
    std::uint32_t id = 0;
    ByteRange range;
    std::uint32_t previous = 0;
    std::uint32_t next = 0;
  };
  struct Candidate {
    std::uint32_t rank = 0;
    std::uint32_t left = 0;  // symbol
    std::uint32_t made = 0;  // id
  };
  struct Step {
    double score = 0;
    std::uint32_t begin = 0;
    std::uint32_t id = 0;
    bool reached = false;
  };

  std::vector<Symbol> symbols;  // BPE
  std::vector<Candidate> heap;  // BPE
  std::vector<Step> steps;      // Unigram
  std::vector<WordToken> tokens;
};

class TokenModel {
 public:
  TokenModel() = default;
  TokenModel(const TokenModel&) = delete;
  TokenModel& operator=(const TokenModel&) = delete;
  virtual ~TokenModel() = default;

  /// Appends the tokens of a word that isn't empty. Throws ArgumentError when the word has what
  /// neither the vocabulary nor an unknown token stands for.
  virtual void tokenize(std::string_view word, ModelScratch& scratch,
                        std::vector<WordToken>& tokens) const = 0;
  /// Whether a word may be cut before each run of U+2581 without changing its tokens.
  virtual bool cuts_at_spaces() const { return false; }
};

/// The rules of WordPiece beside its vocabulary.
struct WordPieceRules {
  std::string unk_token = "[UNK]";
  std::string prefix = "##";
  std::int64_t max_characters = 100;
};

std::unique_ptr<TokenModel> word_piece(const Vocabulary& vocabulary, WordPieceRules rules);
std::unique_ptr<TokenModel> word_level(const Vocabulary& vocabulary, std::string unk_token);
std::unique_ptr<TokenModel> read_unigram(const Fields& section, const TokenizerFile& file,
                                         const Vocabulary& vocabulary);
/// `byte_level`: the words' bytes are the symbols, each spelled as GPT-2's vocabulary spells it.
std::unique_ptr<TokenModel> read_bpe(const Fields& section, const TokenizerFile& file,
                                     const Vocabulary& vocabulary, bool byte_level);
/// Any of them, by its type. The vocabulary must outlive it.
std::unique_ptr<TokenModel> read_model(const Fields& section, const TokenizerFile& file,
                                       const Vocabulary& vocabulary, bool byte_level);

/// Says that a word has what no token stands for.
[[noreturn]] void throw_unknown(std::string_view part, std::string_view unk_token);

}  // namespace eckart::detail

// Text to token ids and back, as the tokenizer of a Hugging Face folder does it.
#pragma once

#include "eckart/core/shape.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

class Tokenizer;
namespace detail {
struct TokenizerParts;
Tokenizer tokenizer_of(std::shared_ptr<const TokenizerParts> parts);
}  // namespace detail

struct EncodeOptions {
  /// What the file's post-processor adds: [CLS] … [SEP], <s> …
  bool special_tokens = true;
};

/// The bytes of the text that a token stands for; begin = end for a token that was added. Tokens
/// that are parts of one character have the place of that character.
struct TokenSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Encoding {
  std::vector<Index> ids;
  std::vector<TokenSpan> spans;  // one a token
};

/// A value that is cheap to copy: copies share what was read. Every method may be called by any
/// number of threads at once.
class Tokenizer {
 public:
  /// The ids of a whole text, none left out and none padded: truncation and padding of the file are
  /// its trainer's and are not applied. Text of special tokens (`<|endoftext|>`) becomes that token
  /// wherever it stands. Cost: the length of the text, and the length of a word times its logarithm
  /// for each word. Throws ArgumentError, naming the byte, when the text is not UTF-8, and when the
  /// file's pattern takes more steps on this text than its length can account for.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// The text of the ids, put together by the file's decoder. A byte-level tokenizer gives back the
  /// bytes of any text, and any bytes of any ids: what is not UTF-8 stays as it is, where Hugging
  /// Face has U+FFFD. With `skip_special`, special tokens are left out. Throws ArgumentError for an
  /// id that is negative or not below size(); an id that stands for no token is left out.
  std::string decode(std::span<const Index> ids, bool skip_special = false) const;
  /// The bytes that one token adds to a text that is decoded token by token; they may be a part of
  /// a character. Where the decoder treats the first token of a text apart (the leading space of
  /// SentencePiece), these are the bytes of a token that is not the first. Throws as decode.
  std::string bytes(Index id) const;
  /// As the vocabulary spells it: `Ġthe`, `▁the`, `##ing`, `<0x0A>`. Empty for an id that stands
  /// for no token. Throws ArgumentError for an id out of range.
  const std::string& token(Index id) const;
  /// The id of a token as the vocabulary spells it.
  std::optional<Index> id(std::string_view token) const;
  /// Whether the file calls the token special. Throws ArgumentError for an id out of range.
  bool is_special(Index id) const;
  /// The largest id + 1, added tokens included. A checkpoint's table may have more rows.
  Index size() const;
  /// The file it was read from.
  const std::string& source() const;

 private:
  friend Tokenizer detail::tokenizer_of(std::shared_ptr<const detail::TokenizerParts> parts);

  std::shared_ptr<const detail::TokenizerParts> parts_;
};

/// Reads `tokenizer.json`, or `vocab.txt` with what `tokenizer_config.json` beside it says
/// (do_lower_case, strip_accents, tokenize_chinese_chars and the special tokens), from a folder or
/// from the file itself; tokenizer.json goes first. Models: BPE, WordPiece, Unigram, WordLevel.
/// Cost: the size of the file, 0.1 s for 10 MB. Throws FileError when there is none, FormatError
/// with the place for a broken file, and ArgumentError naming what is supported for a type that is
/// not.
Tokenizer load_tokenizer(const std::filesystem::path& path);

}  // namespace eckart

// The tokens of words that a text has had already. Internal.
#pragma once

#include "eckart/model/tokenizer/token_model.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// Words repeat. Holds up to 2^16 words of up to
/// 64 bytes, those that came first.
class WordCache {
 public:
  explicit WordCache(const TokenModel& model) : model_(model) {}

  /// The tokens of a word that isn't empty, until the next call.
  std::span<const WordToken> tokens_of(std::string_view word);

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::size_t word_begin = 0;   // in words_
    std::size_t token_begin = 0;  // in tokens_
    std::uint32_t word_bytes = 0;
    std::uint32_t n_tokens = 0;
  };

  std::size_t slot_of(std::string_view word, std::uint64_t hash) const;
  void grow();

  const TokenModel& model_;
  ModelScratch scratch_;
  std::vector<WordToken> fresh_;
  std::string words_;
  std::vector<WordToken> tokens_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // position in entries_ + 1, at most half full
};

}  // namespace eckart::detail

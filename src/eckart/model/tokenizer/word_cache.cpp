#include "eckart/model/tokenizer/word_cache.h"

#include <algorithm>
#include <utility>

namespace eckart::detail {
namespace {

constexpr std::size_t max_words = std::size_t{1} << 16U;
constexpr std::size_t max_word_bytes = 64;
constexpr std::size_t first_slots = 256;

}  // namespace

std::size_t WordCache::slot_of(std::string_view word, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at] != 0) {
    const Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash &&
        std::string_view(words_).substr(entry.word_begin, entry.word_bytes) == word) {
      break;
    }
    at = (at + 1) & mask;
  }
  return at;
}

void WordCache::grow() {
  slots_.assign(std::max(first_slots, slots_.size() * 2), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t at = entries_[i].hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

std::span<const WordToken> WordCache::tokens_of(std::string_view word) {
  if (word.size() > max_word_bytes) {
    fresh_.clear();
    model_.tokenize(word, scratch_, fresh_);
    return fresh_;
  }
  if (entries_.size() * 2 >= slots_.size() && entries_.size() < max_words) grow();
  const std::uint64_t hash = short_hash(word);
  std::uint32_t& slot = slots_[slot_of(word, hash)];
  if (slot != 0) {
    const Entry& entry = entries_[slot - 1];
    return std::span<const WordToken>(tokens_).subspan(entry.token_begin, entry.n_tokens);
  }
  fresh_.clear();
  model_.tokenize(word, scratch_, fresh_);
  if (entries_.size() < max_words) {
    entries_.push_back({hash, words_.size(), tokens_.size(),
                        static_cast<std::uint32_t>(word.size()),
                        static_cast<std::uint32_t>(fresh_.size())});
    slot = static_cast<std::uint32_t>(entries_.size());
    words_ += word;
    tokens_.insert(tokens_.end(), fresh_.begin(), fresh_.end());
  }
  return fresh_;
}

}  // namespace eckart::detail

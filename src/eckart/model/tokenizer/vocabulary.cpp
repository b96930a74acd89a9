#include "eckart/model/tokenizer/vocabulary.h"

#include <algorithm>
#include <utility>

#define XXH_INLINE_ALL  // the header alone: no library to be found by who links to Eckart
#include <xxhash.h>

namespace eckart::detail {
namespace {

constexpr std::size_t first_slots = 1024;

std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32U); }

}  // namespace

std::uint64_t short_hash(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::size_t Vocabulary::slot_of(std::string_view token, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].position != none &&
         (slots_[at].tag != tag_of(hash) || tokens_[slots_[at].position] != token)) {
    at = (at + 1) & mask;
  }
  return at;
}

void Vocabulary::grow() {
  std::vector<Slot> old(std::max(first_slots, slots_.size() * 2));
  std::swap(old, slots_);
  for (const Slot& slot : old) {
    if (slot.position == none) continue;
    const std::string& token = tokens_[slot.position];
    slots_[slot_of(token, short_hash(token))] = slot;
  }
}

Vocabulary::Added Vocabulary::add(std::string_view token, std::uint32_t id) {
  if (tokens_.size() * 2 >= slots_.size()) grow();
  const std::uint64_t hash = short_hash(token);
  Slot& slot = slots_[slot_of(token, hash)];
  if (slot.position != none) return Added::token_stands_twice;
  if (has(id)) return Added::id_stands_twice;
  slot = {static_cast<std::uint32_t>(tokens_.size()), tag_of(hash)};
  if (id >= position_of_.size()) position_of_.resize(id + 1, none);
  position_of_[id] = slot.position;
  tokens_.emplace_back(token);
  ids_.push_back(id);
  longest_ = std::max(longest_, token.size());
  return Added::yes;
}

std::optional<std::uint32_t> Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[slot_of(token, short_hash(token))];
  if (slot.position == none) return std::nullopt;
  return ids_[slot.position];
}

const std::string& Vocabulary::token(std::uint32_t id) const {
  static const std::string nothing;
  return has(id) ? tokens_[position_of_[id]] : nothing;
}

}  // namespace eckart::detail

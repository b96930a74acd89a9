// Which two tokens merge, in which order, into which. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace eckart::detail {

struct MergeRule {
  std::uint32_t rank = 0;  // the lowest goes first
  std::uint32_t made = 0;  // the id of both together
};

/// Pairs of ids to rules: one look-up is one or two reads of memory.
class MergeTable {
 public:
  /// Room for so many pairs.
  explicit MergeTable(std::size_t count);
  /// Adds a pair; of equal ones the last counts.
  void add(std::uint32_t left, std::uint32_t right, MergeRule rule);
  /// Null where they do not merge.
  const MergeRule* find(std::uint32_t left, std::uint32_t right) const {
    const Entry& entry = entries_[place_of(key_of(left, right))];
    return entry.key == free ? nullptr : &entry.rule;
  }

 private:
  struct Entry {
    std::uint64_t key = free;
    MergeRule rule;
  };
  static constexpr std::uint64_t free = ~std::uint64_t{0};

  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return (std::uint64_t{left} << 32U) | right;
  }
  std::size_t place_of(std::uint64_t key) const {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio
    std::uint64_t mixed = key * odd;
    mixed ^= mixed >> 32U;
    std::size_t at = static_cast<std::size_t>(mixed * odd >> shift_);
    while (entries_[at].key != key && entries_[at].key != free)
      at = (at + 1) & (entries_.size() - 1);
    return at;
  }

  unsigned shift_ = 0;          // 64 - log2 of the size
  std::vector<Entry> entries_;  // open addressing, at most half full
};

}  // namespace eckart::detail

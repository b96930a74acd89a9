#include "eckart/model/tokenizer/merge_table.h"

#include <algorithm>
#include <bit>

namespace eckart::detail {

MergeTable::MergeTable(std::size_t count) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(16, 2 * count + 1));
  shift_ = static_cast<unsigned>(64 - std::countr_zero(size));
  entries_.resize(size);
}

void MergeTable::add(std::uint32_t left, std::uint32_t right, MergeRule rule) {
  const std::uint64_t key = key_of(left, right);
  entries_[place_of(key)] = {key, rule};
}

}  // namespace eckart::detail

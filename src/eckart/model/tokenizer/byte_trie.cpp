#include "eckart/model/tokenizer/byte_trie.h"

#include <algorithm>
#include <utility>

namespace eckart::detail {

std::size_t ByteTrie::slot_of(std::uint64_t key) const {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio: spreads small numbers
  const std::size_t mask = steps_.size() - 1;
  std::size_t at = (key * odd >> 32U) & mask;
  while (steps_[at].key != 0 && steps_[at].key != key) at = (at + 1) & mask;
  return at;
}

void ByteTrie::grow() {
  std::vector<Step> old(std::max<std::size_t>(256, steps_.size() * 2));
  std::swap(old, steps_);
  for (const Step& step : old) {
    if (step.key != 0) steps_[slot_of(step.key)] = step;
  }
}

void ByteTrie::add(std::string_view text, std::uint32_t value) {
  begins_[static_cast<unsigned char>(text.front())] = true;
  std::uint32_t node = 0;
  for (const char byte : text) {
    if (std::size_t{n_nodes_} * 2 >= steps_.size()) grow();
    Step& step = steps_[slot_of(key_of(node, byte))];
    if (step.key == 0) {
      step = {key_of(node, byte), n_nodes_++};
      values_.push_back(no_value);
    }
    node = step.child;
  }
  if (values_[node] == no_value) values_[node] = value;
}

}  // namespace eckart::detail

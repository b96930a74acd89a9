// Which of many texts a text begins with. Internal.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// Texts as paths of bytes, in one hash table of their steps: 12 to 24 bytes for each byte of them.
class ByteTrie {
 public:
  /// Adds a text that isn't empty; of equal ones the first counts.
  void add(std::string_view text, std::uint32_t value);
  bool empty() const { return n_nodes_ == 1; }
  /// Whether a text begins with this byte.
  bool begins_with(char byte) const { return begins_[static_cast<unsigned char>(byte)]; }

  /// Calls `found(length, value)` for every text that `text` begins with, shortest first.
  template <class Found>
  void for_each_prefix(std::string_view text, const Found& found) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node == 0) return;
      if (values_[node] != no_value) found(i + 1, values_[node]);
    }
  }

 private:
  struct Step {
    std::uint64_t key = 0;    // node and byte, + 1; 0: free
    std::uint32_t child = 0;  // a node; the root, 0, is nobody's child
  };
  static constexpr std::uint32_t no_value = 0xffffffffU;

  static std::uint64_t key_of(std::uint32_t node, char byte) {
    return ((std::uint64_t{node} << 8U) | static_cast<unsigned char>(byte)) + 1;
  }
  std::size_t slot_of(std::uint64_t key) const;
  std::uint32_t child(std::uint32_t node, char byte) const {
    return steps_.empty() ? 0 : steps_[slot_of(key_of(node, byte))].child;
  }
  void grow();

  std::uint32_t n_nodes_ = 1;
  std::vector<std::uint32_t> values_ = {no_value};
  std::vector<Step> steps_;  // open addressing, at most half full
  std::array<bool, 256> begins_{};
};

}  // namespace eckart::detail

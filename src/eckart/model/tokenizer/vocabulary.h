// The tokens of a vocabulary by their spelling and by their id. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// 64 bits that differ for different bytes, but by an attack. XXH3.
std::uint64_t short_hash(std::string_view bytes);

class Vocabulary {
 public:
  /// Ids are below this, so that a table of them stays small: 16 times the largest vocabulary known.
  static constexpr std::uint32_t id_limit = std::uint32_t{1} << 22U;

  enum class Added { yes, token_stands_twice, id_stands_twice };
  /// Adds a token; `id` is below id_limit.
  Added add(std::string_view token, std::uint32_t id);

  std::optional<std::uint32_t> find(std::string_view token) const;
  bool has(std::uint32_t id) const { return id < position_of_.size() && position_of_[id] != none; }
  /// Empty for an id that stands for no token.
  const std::string& token(std::uint32_t id) const;
  /// The largest id + 1.
  std::uint32_t size() const { return static_cast<std::uint32_t>(position_of_.size()); }
  std::size_t count() const { return tokens_.size(); }
  std::size_t longest() const { return longest_; }

 private:
  struct Slot {
    std::uint32_t position = none;
    std::uint32_t tag = 0;  // of the hash, so that few strings are looked at in vain
  };
  static constexpr std::uint32_t none = 0xffffffffU;

  std::size_t slot_of(std::string_view token, std::uint64_t hash) const;
  void grow();

  std::vector<std::string> tokens_;
  std::vector<std::uint32_t> ids_;  // of tokens_
  std::vector<std::uint32_t> position_of_;
  std::vector<Slot> slots_;  // open addressing, at most half full
  std::size_t longest_ = 0;
};

}  // namespace eckart::detail

// Tensors of a header by their names. Included by the library alone.
#pragma once

#include "eckart/model/logical_tensors.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// Finds positions in a list by name. By order, not by hashing: a hostile file can choose names
/// that collide. Made in linear time where the list is in natural order, as a checkpoint's is.
class NamePositions {
 public:
  /// The list must outlive it.
  explicit NamePositions(const StoredList& stored);

  /// The first tensor of that name. Logarithmic time; constant where names are asked for in their
  /// order, since the one behind the last found is tried first.
  std::optional<std::uint32_t> find(std::string_view name);

 private:
  std::string_view name_at(std::size_t rank) const { return stored_[order_[rank]]->name; }

  const StoredList& stored_;
  std::vector<std::uint32_t> order_;
  std::size_t last_ = 0;  // rank of the one found last
};

}  // namespace eckart::detail

#include "eckart/model/name_positions.h"

#include "eckart/io/checkpoint.h"

#include <algorithm>
#include <numeric>

namespace eckart::detail {

NamePositions::NamePositions(const StoredList& stored) : stored_(stored), order_(stored.size()) {
  std::iota(order_.begin(), order_.end(), 0U);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return natural_less(stored[a]->name, stored[b]->name);
  };
  if (!std::is_sorted(order_.begin(), order_.end(), before)) {
    std::stable_sort(order_.begin(), order_.end(), before);
  }
}

std::optional<std::uint32_t> NamePositions::find(std::string_view name) {
  if (last_ + 1 < order_.size() && name_at(last_ + 1) == name && name_at(last_) != name) {
    return order_[++last_];
  }
  const auto place = std::lower_bound(order_.begin(), order_.end(), name,
                                      [&](std::uint32_t position, std::string_view wanted) {
                                        return natural_less(stored_[position]->name, wanted);
                                      });
  if (place == order_.end() || stored_[*place]->name != name) return std::nullopt;
  last_ = static_cast<std::size_t>(place - order_.begin());
  return *place;
}

}  // namespace eckart::detail

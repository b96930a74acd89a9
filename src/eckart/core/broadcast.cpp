#include "eckart/core/broadcast.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace eckart {
namespace {

// The axis of `shape` that stands `from_last` places before its last, or nothing.
std::optional<Index> aligned_axis(const Shape& shape, Index from_last) {
  const Index axis = shape.rank() - 1 - from_last;
  return axis < 0 ? std::nullopt : std::optional<Index>(axis);
}

Index aligned_size(const Shape& shape, Index from_last) {
  const std::optional<Index> axis = aligned_axis(shape, from_last);
  return axis ? shape.sizes()[static_cast<std::size_t>(*axis)] : 1;
}

std::string aligned_name(const Shape& shape, Index from_last) {
  const std::optional<Index> axis = aligned_axis(shape, from_last);
  return axis ? shape.name(*axis) : std::string();
}

bool sizes_fit(const Shape& a, const Shape& b) {
  for (Index i = 0; i < std::max(a.rank(), b.rank()); ++i) {
    const Index x = aligned_size(a, i);
    const Index y = aligned_size(b, i);
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

bool is_stretched(const Shape& shape, const std::vector<Index>& result) {
  const Index rank = static_cast<Index>(result.size());
  for (Index i = 0; i < rank; ++i) {
    if (aligned_size(shape, i) != result[static_cast<std::size_t>(rank - 1 - i)]) return true;
  }
  return false;
}

std::string both(const Shape& a, const Shape& b, const BroadcastOptions& options) {
  return std::string(options.operation) + ": " + std::string(options.left) + " is " + to_string(a) +
         " and " + std::string(options.right) + " is " + to_string(b);
}

// A vector of the right length in the wrong place is the commonest misfit: it would fit as a
// column.
std::string column_hint(const Shape& a, const Shape& b, const BroadcastOptions& options) {
  std::string hint;
  const auto consider = [&](const Shape& vector, const Shape& other, std::string_view name) {
    if (vector.rank() != 1 || other.rank() < 2) return;
    const Shape column(std::vector<Index>{vector.size(0), 1});
    if (!sizes_fit(column, other) || other.size(-2) != vector.size(0)) return;
    if (!hint.empty()) hint += "; ";
    hint += "with " + std::string(name) + " as a column, " + sizes_to_string(column) +
            ", it fits: the result is " + sizes_to_string(other);
  };
  consider(b, a, options.right);
  consider(a, b, options.left);
  return hint;
}

void check_names(const Shape& a, const Shape& b, const BroadcastOptions& options) {
  for (Index i = 0; i < std::min(a.rank(), b.rank()); ++i) {
    const std::string x = aligned_name(a, i);
    const std::string y = aligned_name(b, i);
    if (!x.empty() && !y.empty() && x != y) {
      throw_shape_error(both(a, b, options) + ", but axis " + x + " of " +
                        std::string(options.left) + " would meet axis " + y + " of " +
                        std::string(options.right));
    }
  }
  for (Index axis = 0; axis < a.rank(); ++axis) {
    const std::optional<Index> other = b.find_axis(a.name(axis));
    if (!other || a.rank() - axis == b.rank() - *other) continue;
    throw_shape_error(both(a, b, options) + ", but axis " + a.name(axis) +
                      " does not stand at the same place from the end in both");
  }
}

}  // namespace

Shape broadcast_shape(const Shape& a, const Shape& b, const BroadcastOptions& options) {
  if (!sizes_fit(a, b)) {
    Index from_last = 0;
    while (aligned_size(a, from_last) == aligned_size(b, from_last) ||
           aligned_size(a, from_last) == 1 || aligned_size(b, from_last) == 1) {
      ++from_last;
    }
    const std::string x = std::to_string(aligned_size(a, from_last));
    const std::string y = std::to_string(aligned_size(b, from_last));
    throw_shape_error(
        both(a, b, options) + ", but " + x + " meets " + y +
            (from_last == 0 ? " in the last axis" : " in axis " + std::to_string(-1 - from_last)) +
            " and neither is 1",
        column_hint(a, b, options));
  }
  check_names(a, b, options);

  const Index rank = std::max(a.rank(), b.rank());
  std::vector<Index> sizes(static_cast<std::size_t>(rank));
  std::vector<std::string> names(static_cast<std::size_t>(rank));
  for (Index i = 0; i < rank; ++i) {
    const auto at = static_cast<std::size_t>(rank - 1 - i);
    const Index x = aligned_size(a, i);
    sizes[at] = x == 1 ? aligned_size(b, i) : x;
    names[at] = aligned_name(a, i).empty() ? aligned_name(b, i) : aligned_name(a, i);
  }
  if (!options.outer && is_stretched(a, sizes) && is_stretched(b, sizes)) {
    const std::string result = sizes_to_string(Shape(sizes));
    throw_shape_error(both(a, b, options) + ", but both would be stretched, to " + result,
                      "for the " + result +
                          " table of all pairs ask for it with outer = true; "
                          "for one result an element give both the same shape");
  }
  return Shape(std::move(sizes), std::move(names));
}

}  // namespace eckart

#include "eckart/core/shape.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eckart {
namespace {

std::string sizes_text(const std::vector<Index>& sizes) {
  if (sizes.empty()) return "scalar";
  std::string text;
  for (const Index size : sizes) {
    if (!text.empty()) text += 'x';
    text += std::to_string(size);
  }
  return text;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += ", ";
    text += name.empty() ? "?" : name;
  }
  return text;
}

// A zero-sized axis makes the array empty whatever the other sizes are, so only products without a
// zero can overflow.
Index checked_count(const std::vector<Index>& sizes) {
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] < 0) {
      throw_shape_error("shape: axis " + std::to_string(axis) + " of " + sizes_text(sizes) +
                        " is negative, but a size is at least 0");
    }
  }
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  Index count = 1;
  for (const Index size : sizes) {
    if (__builtin_mul_overflow(count, size, &count)) {
      throw_shape_error("shape: " + sizes_text(sizes) +
                        " has more elements than a 63-bit count holds");
    }
  }
  return count;
}

void check_names(const std::vector<Index>& sizes, const std::vector<std::string>& names) {
  if (names.size() != sizes.size()) {
    throw_shape_error("shape: " + std::to_string(names.size()) + " names (" + names_text(names) +
                      ") for " + sizes_text(sizes) + ", but each of the " +
                      std::to_string(sizes.size()) + " axes takes one");
  }
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!name->empty() && std::find(names.begin(), name, *name) != name) {
      throw_shape_error("shape: the name " + *name + " stands twice in (" + names_text(names) +
                        "), but a name means one axis");
    }
  }
}

}  // namespace

Shape::Shape(std::initializer_list<Index> sizes) : Shape(std::vector<Index>(sizes)) {}

Shape::Shape(std::vector<Index> sizes) : sizes_(std::move(sizes)), count_(checked_count(sizes_)) {}

Shape::Shape(std::vector<Index> sizes, std::vector<std::string> names) : Shape(std::move(sizes)) {
  if (names.empty()) return;
  check_names(sizes_, names);
  const bool any_named = std::any_of(names.begin(), names.end(),
                                     [](const std::string& name) { return !name.empty(); });
  if (any_named) names_ = std::move(names);
}

Shape::Shape(Shape&& other) noexcept
    : sizes_(std::exchange(other.sizes_, {})),
      names_(std::exchange(other.names_, {})),
      count_(std::exchange(other.count_, 1)) {}

Shape& Shape::operator=(Shape&& other) noexcept {
  sizes_ = std::exchange(other.sizes_, {});
  names_ = std::exchange(other.names_, {});
  count_ = std::exchange(other.count_, 1);
  return *this;
}

const std::string& Shape::name(Index axis) const {
  static const std::string unnamed;
  const std::size_t at = position(axis);
  return names_.empty() ? unnamed : names_[at];
}

std::optional<Index> Shape::find_axis(std::string_view name) const {
  if (name.empty()) return std::nullopt;
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return std::nullopt;
  return static_cast<Index>(found - names_.begin());
}

Index Shape::axis(std::string_view name) const {
  if (const std::optional<Index> found = find_axis(name)) return *found;
  throw_shape_error("axis: no axis of " + to_string(*this) + " is named " + std::string(name),
                    has_names() ? "its axes are (" + names_text(names_) + ")"
                                : "name its axes first, with named({…})");
}

Shape Shape::named(std::vector<std::string> names) const {
  check_names(sizes_, names);
  return Shape(sizes_, std::move(names));
}

std::size_t Shape::position(Index axis) const {
  const Index at = axis < 0 ? axis + rank() : axis;
  if (at < 0 || at >= rank()) {
    throw_shape_error("axis: " + std::to_string(axis) + " is not an axis of " + to_string(*this) +
                      ", which has " + std::to_string(rank()));
  }
  return static_cast<std::size_t>(at);
}

bool same_sizes(const Shape& a, const Shape& b) { return a.sizes() == b.sizes(); }

std::string to_string(const Shape& shape) {
  const std::string text = sizes_text(shape.sizes());
  return shape.has_names() ? text + " (" + names_text(shape.names()) + ")" : text;
}

std::string sizes_to_string(const Shape& shape) { return sizes_text(shape.sizes()); }

}  // namespace eckart

// The sizes of an array's axes and, where they are known, the axes' names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// The one index type: signed, so that differences and reverse loops are safe.
using Index = std::int64_t;

/// Sizes of the axes, outermost first, each with an optional name (empty: unnamed).
/// Every size is at least 0, the product fits in 63 bits, and no name stands twice.
class Shape {
 public:
  /// A scalar: no axes, one element.
  Shape() = default;
  /// Throws ShapeError when a size is negative or the number of elements overflows 63 bits.
  Shape(std::initializer_list<Index> sizes);
  explicit Shape(std::vector<Index> sizes);
  /// `names` has one entry an axis (empty: unnamed) or none at all.
  Shape(std::vector<Index> sizes, std::vector<std::string> names);
  Shape(const Shape& other) = default;
  Shape& operator=(const Shape& other) = default;
  /// A moved-from shape is a scalar's.
  Shape(Shape&& other) noexcept;
  Shape& operator=(Shape&& other) noexcept;
  ~Shape() = default;

  Index rank() const { return static_cast<Index>(sizes_.size()); }
  /// Number of elements: the product of the sizes, 1 for a scalar.
  Index count() const { return count_; }
  /// Size of an axis; negative axes count from the end. Throws ShapeError out of range.
  Index size(Index axis) const { return sizes_[position(axis)]; }
  /// Size of the axis of that name. Throws ShapeError, listing the names, when there is none.
  Index size(std::string_view name) const { return size(axis(name)); }
  const std::vector<Index>& sizes() const { return sizes_; }

  bool has_names() const { return !names_.empty(); }
  /// Name of an axis, empty where it has none.
  const std::string& name(Index axis) const;
  /// One entry an axis, or no entries when no axis is named.
  const std::vector<std::string>& names() const { return names_; }
  /// Position of the axis of that name. Throws ShapeError, listing the names, when there is none.
  Index axis(std::string_view name) const;
  std::optional<Index> find_axis(std::string_view name) const;
  /// An axis given from either end as a position from the start. Throws ShapeError out of range.
  Index normalized_axis(Index axis) const { return static_cast<Index>(position(axis)); }

  /// The same sizes with these names. Throws ShapeError when their number is not the rank.
  Shape named(std::vector<std::string> names) const;
  Shape without_names() const { return Shape(sizes_); }

  /// Sizes and names equal. See `same_sizes` for the sizes alone.
  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::size_t position(Index axis) const;

  std::vector<Index> sizes_;
  std::vector<std::string> names_;
  Index count_ = 1;
};

bool same_sizes(const Shape& a, const Shape& b);

/// `32x768 (token, d_model)`, `768 (d_model)`, `scalar`; an unnamed axis among named ones is `?`.
std::string to_string(const Shape& shape);
/// `32x768`, without the names.
std::string sizes_to_string(const Shape& shape);

}  // namespace eckart

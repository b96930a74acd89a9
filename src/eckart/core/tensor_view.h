// A strided window on the elements of an array: transposing and slicing move no data.
#pragma once

#include "eckart/core/broadcast.h"
#include "eckart/core/errors.h"
#include "eckart/core/shape.h"

#include <cassert>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {

/// A range of an axis: begin, begin + step, … before end. Negative positions count from the end.
struct Slice {
  static constexpr Index to_end = std::numeric_limits<Index>::max();

  Index begin = 0;
  Index end = to_end;
  Index step = 1;  // at least 1
};

namespace detail {

/// Strides, in elements, of a row-major array of this shape.
std::vector<Index> row_major_strides(const Shape& shape);

/// What a view is made of apart from its pointer. `offset` is in elements.
struct Layout {
  Shape shape;
  std::vector<Index> strides;
  Index offset = 0;
};

Layout permuted(const Shape& shape, const std::vector<Index>& strides,
                const std::vector<Index>& axes);
Layout sliced(const Shape& shape, const std::vector<Index>& strides, Index axis, Slice slice);
Layout selected(const Shape& shape, const std::vector<Index>& strides, Index axis, Index at);
Layout reshaped(const Shape& shape, const std::vector<Index>& strides, const Shape& wanted);
Layout broadcast(const Shape& shape, const std::vector<Index>& strides, const Shape& wanted);
bool is_row_major(const Shape& shape, const std::vector<Index>& strides);
/// Throws ShapeError unless `at` has one position an axis, each in range.
void check_position(const Shape& shape, const Index* at, Index n);

}  // namespace detail

/// A pointer, a shape and the distance in elements from one index to the next of every axis.
/// It owns nothing: the array must outlive it. `TensorView<const T>` is read-only, and every
/// `TensorView<T>` converts to it.
template <class T>
class TensorView {
 public:
  using value_type = std::remove_const_t<T>;

  /// An empty view of shape 0.
  TensorView() : shape_({0}), strides_{1} {}
  /// A row-major array of `shape.count()` elements at `data`.
  TensorView(T* data, Shape shape)
      : data_(data), shape_(std::move(shape)), strides_(detail::row_major_strides(shape_)) {}
  /// Throws ShapeError when there is not one stride an axis.
  TensorView(T* data, Shape shape, std::vector<Index> strides)
      : data_(data), shape_(std::move(shape)), strides_(std::move(strides)) {
    if (static_cast<Index>(strides_.size()) != shape_.rank()) {
      throw_shape_error("view: " + std::to_string(strides_.size()) + " strides for " +
                        to_string(shape_) + ", but each axis takes one");
    }
  }

  // NOLINTNEXTLINE(google-explicit-constructor): read-only is always safe
  operator TensorView<const value_type>() const requires(!std::is_const_v<T>) {
    return TensorView<const value_type>(data_, shape_, strides_);
  }

  T* data() const { return data_; }
  const Shape& shape() const { return shape_; }
  /// Distances in elements, one an axis; 0 where the axis is broadcast.
  const std::vector<Index>& strides() const { return strides_; }
  Index rank() const { return shape_.rank(); }
  Index count() const { return shape_.count(); }
  Index size(Index axis) const { return shape_.size(axis); }
  Index size(std::string_view name) const { return shape_.size(name); }

  /// The element at one position an axis. Positions are asserted, not checked: see `at`.
  template <class... Positions>
  T& operator()(Positions... positions) const {
    assert(static_cast<Index>(sizeof...(positions)) == rank());
    Index offset = 0;
    std::size_t axis = 0;
    ((offset += static_cast<Index>(positions) * strides_[axis++]), ...);
    return data_[offset];
  }
  /// The element at one position an axis. Throws ShapeError out of range.
  template <class... Positions>
  T& at(Positions... positions) const {
    const Index list[] = {static_cast<Index>(positions)..., 0};
    detail::check_position(shape_, list, static_cast<Index>(sizeof...(positions)));
    return (*this)(positions...);
  }

  /// True when the elements stand in row-major order without gaps.
  bool is_row_major() const { return detail::is_row_major(shape_, strides_); }

  TensorView named(std::vector<std::string> names) const {
    return TensorView(data_, shape_.named(std::move(names)), strides_);
  }
  /// The last two axes exchanged; a vector stays as it is.
  TensorView transpose() const {
    if (rank() < 2) return *this;
    std::vector<Index> axes(static_cast<std::size_t>(rank()));
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<Index>(i);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return permute(axes);
  }
  /// Axis i of the result is axis `axes[i]` of this view. Throws ShapeError unless `axes` lists
  /// each axis once.
  TensorView permute(const std::vector<Index>& axes) const {
    return with(detail::permuted(shape_, strides_, axes));
  }
  /// The positions `slice` of one axis. Ends beyond the axis are cut, as in Python.
  TensorView slice(Index axis, Slice slice) const {
    return with(detail::sliced(shape_, strides_, axis, slice));
  }
  TensorView slice(std::string_view name, Slice range) const {
    return slice(shape_.axis(name), range);
  }
  /// One position of one axis, which disappears. Throws ShapeError out of range.
  TensorView select(Index axis, Index position) const {
    return with(detail::selected(shape_, strides_, axis, position));
  }
  TensorView select(std::string_view name, Index position) const {
    return select(shape_.axis(name), position);
  }
  /// The same elements under another shape, without moving them. Throws ShapeError when the counts
  /// differ or when the elements are not in row-major order (copy first, with `Tensor`).
  TensorView reshape(const Shape& shape) const {
    return with(detail::reshaped(shape_, strides_, shape));
  }
  /// Axes of size 1 or missing in front repeated to `shape`, without copying. Throws ShapeError
  /// when this view does not broadcast to exactly that shape.
  TensorView broadcast_to(const Shape& shape) const {
    return with(detail::broadcast(shape_, strides_, shape));
  }

 private:
  TensorView with(detail::Layout layout) const {
    return TensorView(count() == 0 ? data_ : data_ + layout.offset, std::move(layout.shape),
                      std::move(layout.strides));
  }

  T* data_ = nullptr;
  Shape shape_;
  std::vector<Index> strides_;
};

/// Calls `body(element_of_a, elements_of_others…)` for every position of `a`, in row-major order.
/// The views have the same sizes (see `broadcast_to`). Throws ShapeError when they have not.
template <class Body, class A, class... Others>
void for_each_element(Body&& body, TensorView<A> a, TensorView<Others>... others) {
  (
      [&] {
        if (!same_sizes(a.shape(), others.shape())) {
          throw_shape_error("for_each_element: " + to_string(a.shape()) + " and " +
                            to_string(others.shape()) + ", but the views must have the same sizes");
        }
      }(),
      ...);
  if (a.count() == 0) return;
  const Index rank = a.rank();
  if (rank == 0) {
    body(*a.data(), *others.data()...);
    return;
  }
  std::vector<Index> position(static_cast<std::size_t>(rank), 0);
  const Index last = a.size(-1);
  const auto row_of = [&](const auto& view) {
    Index offset = 0;
    for (std::size_t axis = 0; axis + 1 < position.size(); ++axis) {
      offset += position[axis] * view.strides()[axis];
    }
    return view.data() + offset;
  };
  while (true) {
    auto run = [&, row = row_of(a)](auto*... rows) {
      for (Index i = 0; i < last; ++i) {
        body(row[i * a.strides().back()], rows[i * others.strides().back()]...);
      }
    };
    run(row_of(others)...);
    Index axis = rank - 2;
    while (axis >= 0 && ++position[static_cast<std::size_t>(axis)] == a.size(axis)) {
      position[static_cast<std::size_t>(axis--)] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace eckart

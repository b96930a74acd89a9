#include "eckart/core/tensor_view.h"

#include <algorithm>

namespace eckart::detail {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

std::vector<std::string> names_or_blanks(const Shape& shape) {
  return shape.has_names() ? shape.names() : std::vector<std::string>(at(shape.rank()));
}

std::string list(const std::vector<Index>& values) {
  std::string text;
  for (const Index value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "(" + text + ")";
}

// Python's rule for an end of a slice: negative counts from the end, too far is cut.
Index clipped(Index position, Index size) {
  return std::clamp<Index>(position < 0 ? position + size : position, 0, size);
}

}  // namespace

std::vector<Index> row_major_strides(const Shape& shape) {
  std::vector<Index> strides(at(shape.rank()));
  Index stride = 1;
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[at(axis)] = stride;
    stride *= std::max<Index>(1, shape.count() == 0 ? 1 : shape.size(axis));
  }
  return strides;
}

Layout permuted(const Shape& shape, const std::vector<Index>& strides,
                const std::vector<Index>& axes) {
  std::vector<Index> sorted(axes);
  std::sort(sorted.begin(), sorted.end());
  bool each_once = static_cast<Index>(axes.size()) == shape.rank();
  for (std::size_t i = 0; each_once && i < sorted.size(); ++i) {
    each_once = sorted[i] == static_cast<Index>(i);
  }
  if (!each_once) {
    throw_shape_error("permute: the axes are " + list(axes) + " for " + to_string(shape) +
                      ", but each axis from 0 to " + std::to_string(shape.rank() - 1) +
                      " must stand once");
  }
  const std::vector<std::string> old_names = names_or_blanks(shape);
  std::vector<Index> sizes, new_strides;
  std::vector<std::string> names;
  for (const Index axis : axes) {
    sizes.push_back(shape.size(axis));
    new_strides.push_back(strides[at(axis)]);
    names.push_back(old_names[at(axis)]);
  }
  return {Shape(std::move(sizes), std::move(names)), std::move(new_strides)};
}

Layout sliced(const Shape& shape, const std::vector<Index>& strides, Index axis, Slice slice) {
  axis = shape.normalized_axis(axis);
  if (slice.step < 1) {
    throw_shape_error("slice: the step is " + std::to_string(slice.step) +
                      ", but it must be at least 1");
  }
  const Index size = shape.size(axis);
  const Index begin = clipped(slice.begin, size);
  const Index end = std::max(begin, clipped(slice.end, size));
  const Index length = end == begin ? 0 : (end - begin - 1) / slice.step + 1;
  std::vector<Index> sizes = shape.sizes();
  sizes[at(axis)] = length;
  Layout layout{Shape(std::move(sizes), shape.names()), strides, 0};
  // An empty slice stays where it is: a begin at the axis' end may lie beyond the array's end.
  if (length > 0) layout.offset = begin * strides[at(axis)];
  // With at most one position left the step no longer matters, and must not overflow the stride.
  if (length > 1) layout.strides[at(axis)] *= slice.step;
  return layout;
}

Layout selected(const Shape& shape, const std::vector<Index>& strides, Index axis, Index position) {
  axis = shape.normalized_axis(axis);
  const Index size = shape.size(axis);
  const Index index = position < 0 ? position + size : position;
  if (index < 0 || index >= size) {
    throw_shape_error("select: position " + std::to_string(position) + " of axis " +
                      std::to_string(axis) + " of " + to_string(shape) + ", which has " +
                      std::to_string(size));
  }
  std::vector<Index> sizes = shape.sizes();
  std::vector<std::string> names = names_or_blanks(shape);
  Layout layout{{}, strides, index * strides[at(axis)]};
  sizes.erase(sizes.begin() + axis);
  names.erase(names.begin() + axis);
  layout.strides.erase(layout.strides.begin() + axis);
  layout.shape = Shape(std::move(sizes), std::move(names));
  return layout;
}

Layout reshaped(const Shape& shape, const std::vector<Index>& strides, const Shape& wanted) {
  if (wanted.count() != shape.count()) {
    throw_shape_error("reshape: " + to_string(shape) + " has " + std::to_string(shape.count()) +
                      " elements, but " + to_string(wanted) + " has " +
                      std::to_string(wanted.count()));
  }
  if (!is_row_major(shape, strides)) {
    throw_shape_error("reshape: the elements of " + to_string(shape) +
                          " are not in row-major order, but a reshape moves no data",
                      "copy it first: Tensor(view)");
  }
  return {wanted, row_major_strides(wanted)};
}

Layout broadcast(const Shape& shape, const std::vector<Index>& strides, const Shape& wanted) {
  const Shape result = broadcast_shape(
      shape, wanted,
      {.outer = true, .operation = "broadcast_to", .left = "x", .right = "the result"});
  if (!same_sizes(result, wanted)) {
    throw_shape_error("broadcast_to: x is " + to_string(shape) + ", but it does not stretch to " +
                      to_string(wanted));
  }
  std::vector<Index> new_strides(at(wanted.rank()), 0);
  for (Index axis = 0; axis < shape.rank(); ++axis) {
    const Index target = wanted.rank() - shape.rank() + axis;
    if (shape.size(axis) == wanted.size(target)) new_strides[at(target)] = strides[at(axis)];
  }
  return {result, std::move(new_strides)};
}

bool is_row_major(const Shape& shape, const std::vector<Index>& strides) {
  if (shape.count() <= 1) return true;
  Index expected = 1;
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape.size(axis) == 1) continue;
    if (strides[at(axis)] != expected) return false;
    expected *= shape.size(axis);
  }
  return true;
}

void check_position(const Shape& shape, const Index* positions, Index n) {
  bool inside = n == shape.rank();
  for (Index axis = 0; inside && axis < n; ++axis) {
    inside = positions[axis] >= 0 && positions[axis] < shape.size(axis);
  }
  if (!inside) {
    throw_shape_error("at: position " + list(std::vector<Index>(positions, positions + n)) +
                      " is outside " + to_string(shape));
  }
}

}  // namespace eckart::detail

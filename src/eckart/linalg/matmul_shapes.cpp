#include "eckart/linalg/matmul_shapes.h"

#include "eckart/core/broadcast.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/matrix_checks.h"

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eckart::detail {
namespace {

// The axes of a shape from `begin` to before `end`.
Shape part(const Shape& shape, Index begin, Index end) {
  std::vector<Index> sizes;
  std::vector<std::string> names;
  for (Index axis = begin; axis < end; ++axis) {
    sizes.push_back(shape.size(axis));
    names.push_back(shape.name(axis));
  }
  return Shape(std::move(sizes), std::move(names));
}

Shape leading(const Shape& shape) {
  return shape.rank() <= 2 ? Shape{} : part(shape, 0, shape.rank() - 2);
}

// The last two axes, or the one of a vector.
Shape matrix(const Shape& shape) {
  return shape.rank() <= 2 ? shape : part(shape, shape.rank() - 2, shape.rank());
}

Shape transposed(const Shape& shape) {
  return Shape({shape.size(1), shape.size(0)}, {shape.name(1), shape.name(0)});
}

std::string inner_name(const Shape& right) { return right.name(right.rank() == 1 ? 0 : -2); }

bool sizes_fit(const Shape& left, const Shape& right) {
  return left.size(-1) == right.size(right.rank() == 1 ? 0 : -2);
}

bool names_fit(const Shape& left, const Shape& right) {
  const std::string& a = left.name(-1);
  const std::string b = inner_name(right);
  return a.empty() || b.empty() || a == b;
}

// The result of a product of shapes that fit. A name means one axis, and keeps its first place.
Shape product(const Shape& batch, const Shape& left, const Shape& right) {
  std::vector<Index> sizes = batch.sizes();
  std::vector<std::string> names;
  for (Index axis = 0; axis < batch.rank(); ++axis) names.push_back(batch.name(axis));
  const auto append = [&](Index size, std::string name) {
    for (const std::string& other : names) {
      if (name == other) name.clear();
    }
    sizes.push_back(size);
    names.push_back(std::move(name));
  };
  if (left.rank() > 1) append(left.size(-2), left.name(-2));
  if (right.rank() > 1) append(right.size(-1), right.name(-1));
  return Shape(std::move(sizes), std::move(names));
}

// One way to arrange the operands, in words: "with b transposed".
void consider(const std::string& how, const Shape& left, const Shape& right, std::string& hint) {
  if (!sizes_fit(left, right) || !names_fit(left, right)) return;
  if (!hint.empty()) hint += "; ";
  hint += how + " it fits: " + sizes_to_string(left) + " by " + sizes_to_string(right) + " gives " +
          to_string(product({}, left, right));
}

// Every arrangement of the two matrices that fits.
std::string arrangements(const Shape& a, const Shape& b, const MatmulOptions& options) {
  const std::string left(options.left);
  const std::string right(options.right);
  const bool may_turn_a = a.rank() > 1;
  const bool may_turn_b = b.rank() > 1;
  std::string hint;
  if (may_turn_b) consider("with " + right + " transposed", a, transposed(b), hint);
  if (may_turn_a) consider("with " + left + " transposed", transposed(a), b, hint);
  if (may_turn_a && may_turn_b) {
    consider("with both transposed", transposed(a), transposed(b), hint);
  }
  consider("with " + left + " and " + right + " swapped", b, a, hint);
  return hint;
}

std::string both(const Shape& a, const Shape& b, const MatmulOptions& options) {
  return std::string(options.operation) + ": " + std::string(options.left) + " is " + to_string(a) +
         " and " + std::string(options.right) + " is " + to_string(b);
}

void check_inner(const Shape& a, const Shape& b, const MatmulOptions& options) {
  const Shape left = matrix(a);
  const Shape right = matrix(b);
  const std::string column = left.rank() == 1 ? "element" : "column";
  const std::string row = right.rank() == 1 ? "element" : "row";
  if (!sizes_fit(left, right)) {
    throw_shape_error(both(a, b, options) + ", but " + std::string(options.left) + "'s " +
                          counted(left.size(-1), column) + " must equal " +
                          std::string(options.right) + "'s " +
                          counted(right.size(right.rank() == 1 ? 0 : -2), row),
                      arrangements(left, right, options));
  }
  if (!names_fit(left, right)) {
    throw_shape_error(both(a, b, options) + ", but " + std::string(options.left) + "'s " + column +
                          "s are " + left.name(-1) + " and " + std::string(options.right) + "'s " +
                          row + "s are " + inner_name(right),
                      arrangements(left, right, options));
  }
}

void check_lengths(const Shape& shape, const MatmulOptions& options, std::string_view name) {
  constexpr Index most = std::numeric_limits<std::int32_t>::max();
  const Shape one = matrix(shape);
  for (const Index size : one.sizes()) {
    if (size > most) {
      throw_shape_error(std::string(options.operation) + ": " + std::string(name) + " is " +
                        to_string(shape) + ", but BLAS takes at most " + std::to_string(most) +
                        " rows or columns");
    }
  }
}

}  // namespace

MatmulShapes matmul_shapes(const Shape& a, const Shape& b, const MatmulOptions& options) {
  if (a.rank() == 0 || b.rank() == 0) {
    throw_shape_error(both(a, b, options) + ", but a product of matrices takes no scalar",
                      "multiply scales each element of an array by a number");
  }
  check_inner(a, b, options);
  check_lengths(a, options, options.left);
  check_lengths(b, options, options.right);
  MatmulShapes shapes;
  const std::string left = "the batch of " + std::string(options.left);
  const std::string right = "the batch of " + std::string(options.right);
  shapes.batch = broadcast_shape(
      leading(a), leading(b),
      {.outer = options.outer, .operation = options.operation, .left = left, .right = right});
  shapes.result = product(shapes.batch, matrix(a), matrix(b));
  shapes.m = a.rank() == 1 ? 1 : a.size(-2);
  shapes.k = a.size(-1);
  shapes.n = b.rank() == 1 ? 1 : b.size(-1);
  return shapes;
}

}  // namespace eckart::detail

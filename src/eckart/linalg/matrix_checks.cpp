#include "eckart/linalg/matrix_checks.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/finite.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

std::string start(std::string_view operation, std::string_view name, const Shape& shape) {
  return std::string(operation) + ": " + std::string(name) + " is " + to_string(shape);
}

template <class T>
T largest_magnitude(TensorView<const T> a) {
  T largest{};
  for_each_element([&](const T& element) { largest = std::max(largest, std::abs(element)); }, a);
  return largest;
}

// The pair (row, column), (column, row) that differs most, and by how much.
template <class T>
struct Pair {
  Index row = 0;
  Index column = 0;
  T difference{};
};

template <class T>
Pair<T> most_different_pair(TensorView<const T> a) {
  constexpr Index block = 32;  // so that rows and columns are both read from the cache
  Pair<T> worst;
  const Index n = a.size(0);
  for (Index top = 0; top < n; top += block) {
    for (Index left = top; left < n; left += block) {
      for (Index row = top; row < std::min(top + block, n); ++row) {
        for (Index column = std::max(left, row + 1); column < std::min(left + block, n); ++column) {
          const T difference = std::abs(a(row, column) - a(column, row));
          if (difference > worst.difference) worst = {row, column, difference};
        }
      }
    }
  }
  return worst;
}

}  // namespace

void check_matrix(std::string_view operation, std::string_view name, const Shape& shape) {
  if (shape.rank() == 2) return;
  std::string hint;
  if (shape.rank() == 1) {
    const std::string n = std::to_string(shape.size(0));
    hint = "reshaped it fits: as one column it is " + n + "x1, as one row 1x" + n;
  }
  throw_shape_error(start(operation, name, shape) + ", but it must be a matrix", hint);
}

void check_square(std::string_view operation, std::string_view name, const Shape& shape,
                  const std::string& hint) {
  check_matrix(operation, name, shape);
  if (shape.size(0) == shape.size(1)) return;
  throw_shape_error(start(operation, name, shape) + ", but it must have as many rows as columns",
                    hint);
}

void check_lapack_size(std::string_view operation, std::string_view name, const Shape& shape,
                       const std::string& hint) {
  if (shape.count() <= max_lapack_elements) return;
  throw_argument_error(start(operation, name, shape) + " and has " + std::to_string(shape.count()) +
                           " elements, but LAPACK's 32-bit integers count at most " +
                           std::to_string(max_lapack_elements),
                       hint);
}

void check_right_side(std::string_view operation, const Shape& a, const Shape& b) {
  const std::string both = start(operation, "a", a) + " and b is " + to_string(b);
  if (b.rank() != 1 && b.rank() != 2) {
    throw_shape_error(both + ", but b must be a vector or a matrix");
  }
  if (b.size(0) != a.size(0)) {
    std::string hint;
    if (b.rank() == 2 && b.size(1) == a.size(0)) {
      hint = "with b transposed it fits: b's " + std::to_string(b.size(0)) +
             " rows are then right-hand sides in " + std::to_string(b.size(0)) + " columns";
    }
    throw_shape_error(both + ", but b's " + std::to_string(b.size(0)) + " rows must equal a's " +
                          std::to_string(a.size(0)),
                      hint);
  }
  if (!a.has_names() || !b.has_names() || a.name(0).empty() || b.name(0).empty()) return;
  if (a.name(0) == b.name(0)) return;
  throw_shape_error(both + ", but b's rows must be the axis " + a.name(0) + " of a's rows");
}

template <class T>
void check_symmetric(std::string_view operation, std::string_view name, TensorView<const T> a,
                     const std::string& hint) {
  const Pair<T> worst = most_different_pair(a);
  const T n = static_cast<T>(a.size(0));
  const T allowed = 16 * std::sqrt(n) * std::numeric_limits<T>::epsilon() * largest_magnitude(a);
  if (worst.difference <= allowed) return;
  const std::string row = std::to_string(worst.row);
  const std::string column = std::to_string(worst.column);
  throw_argument_error(std::string(operation) + ": " + std::string(name) + " has " +
                           number_text(static_cast<double>(a(worst.row, worst.column))) + " at (" +
                           row + ", " + column + ") and " +
                           number_text(static_cast<double>(a(worst.column, worst.row))) + " at (" +
                           column + ", " + row + "), but it must be symmetric",
                       hint);
}

template <class T>
void check_factorable(std::string_view operation, TensorView<const T> a,
                      const std::string& too_large_hint) {
  check_matrix(operation, "a", a.shape());
  check_lapack_size(operation, "a", a.shape(), too_large_hint);
  check_finite(operation, "a", a);
}

template <class T>
void check_answer(std::string_view operation, const Shape& b, TensorView<const T> x) {
  bool finite = true;
  for_each_element([&](const T& element) { finite = finite && std::isfinite(element); }, x);
  if (finite) return;
  throw_argument_error(std::string(operation) + ": b is " + to_string(b) +
                           ", but the answer exceeds the range of its numbers",
                       sizeof(T) == 4 ? "double has a range of 1e308" : "");
}

Shape shape_with_names(std::vector<Index> sizes, std::vector<std::string> names) {
  for (std::size_t i = 1; i < names.size(); ++i) {
    const auto here = names.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(names.begin(), here, names[i]) != here) names[i].clear();
  }
  const bool has_names = std::any_of(names.begin(), names.end(),
                                     [](const std::string& name) { return !name.empty(); });
  if (!has_names) return Shape(std::move(sizes));
  return Shape(std::move(sizes), std::move(names));
}

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

template void check_symmetric(std::string_view, std::string_view, TensorView<const float>,
                              const std::string&);
template void check_symmetric(std::string_view, std::string_view, TensorView<const double>,
                              const std::string&);
template void check_factorable(std::string_view, TensorView<const float>, const std::string&);
template void check_factorable(std::string_view, TensorView<const double>, const std::string&);

template void check_answer(std::string_view, const Shape&, TensorView<const float>);
template void check_answer(std::string_view, const Shape&, TensorView<const double>);

}  // namespace eckart

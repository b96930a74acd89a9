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

std::string to_digits(double number, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
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

Shape transposed(const Shape& shape) { return Shape{shape.size(1), shape.size(0)}; }

// What x is like when a x = b is asked with these.
std::string fit_text(const std::string& how, const Shape& a, const Shape& b) {
  std::vector<Index> sizes = b.sizes();
  sizes[0] = a.size(1);
  return how + " it fits: x is then " + sizes_to_string(Shape(std::move(sizes)));
}

// Every arrangement of a matrix and a right-hand side that fits.
std::string arrangements(const Shape& a, const Shape& b) {
  std::string hint;
  const auto consider = [&](const char* how, const Shape& left, const Shape& right) {
    if (left.size(0) != right.size(0)) return;
    hint += (hint.empty() ? "" : "; ") + fit_text(how, left, right);
  };
  const bool is_square = a.size(0) == a.size(1);
  if (b.rank() == 2) consider("with b transposed", a, transposed(b));
  if (!is_square) consider("with a transposed", transposed(a), b);
  if (!is_square && b.rank() == 2) consider("with both transposed", transposed(a), transposed(b));
  return hint;
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
  if (a.rank() == 1 && b.rank() == 2) {
    throw_shape_error(both + ", but a must be a matrix",
                      a.size(0) == b.size(0) ? fit_text("with a and b swapped", b, a) : "");
  }
  check_matrix(operation, "a", a);
  if (b.rank() != 1 && b.rank() != 2) {
    throw_shape_error(both + ", but b must be a vector or a matrix");
  }
  if (b.size(0) != a.size(0)) {
    throw_shape_error(both + ", but b's " + counted(b.size(0), b.rank() == 1 ? "element" : "row") +
                          " must equal a's " + counted(a.size(0), "row"),
                      arrangements(a, b));
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
  const auto [one, other] = number_texts(static_cast<double>(a(worst.row, worst.column)),
                                         static_cast<double>(a(worst.column, worst.row)));
  throw_argument_error(std::string(operation) + ": " + std::string(name) + " has " + one + " at (" +
                           row + ", " + column + ") and " + other + " at (" + column + ", " + row +
                           "), but it must be symmetric",
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

std::string number_text(double number) { return to_digits(number, 4); }

std::pair<std::string, std::string> number_texts(double a, double b) {
  constexpr int most_digits = std::numeric_limits<double>::max_digits10;
  int digits = 4;
  while (digits < most_digits && to_digits(a, digits) == to_digits(b, digits)) ++digits;
  return {to_digits(a, digits), to_digits(b, digits)};
}

std::string counted(Index count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
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

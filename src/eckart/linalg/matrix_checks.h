// What the factorisations ask of their arguments, and the names that their results' axes have.
// Internal. `operation` and `name` are how a message calls the operation and the array.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/core/tensor_view.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {

/// The axis that a factorisation makes: u's columns, s, vt's rows.
inline constexpr std::string_view component_axis = "component";

/// The largest size of an array that LAPACK's 32-bit integers can index.
inline constexpr Index max_lapack_elements = (Index{1} << 31) - 1;

/// Throws ShapeError unless the shape has two axes.
void check_matrix(std::string_view operation, std::string_view name, const Shape& shape);

/// The same, and unless both axes have one size.
void check_square(std::string_view operation, std::string_view name, const Shape& shape,
                  const std::string& hint = {});

/// Throws ArgumentError, with the hint, when a matrix has more than `max_lapack_elements`.
void check_lapack_size(std::string_view operation, std::string_view name, const Shape& shape,
                       const std::string& hint = {});

/// Throws ShapeError unless a is a matrix, b a vector or a matrix with as many rows, and the names of
/// these axes, where both have one, are the same. The hint lists what fits: b or a transposed, both
/// swapped.
void check_right_side(std::string_view operation, const Shape& a, const Shape& b);

/// Throws ArgumentError, naming the pair that differs most, unless the square matrix `a` equals its
/// transpose to rounding: to 16 sqrt(n) eps times its largest magnitude, which is more than a
/// product b b^T that was rounded can be off.
template <class T>
void check_symmetric(std::string_view operation, std::string_view name, TensorView<const T> a,
                     const std::string& hint);

/// check_matrix, check_lapack_size and check_finite.
template <class T>
void check_factorable(std::string_view operation, TensorView<const T> a,
                      const std::string& too_large_hint = {});

/// Throws ArgumentError when an answer x to the right-hand side b is not finite: it overflowed.
template <class T>
void check_answer(std::string_view operation, const Shape& b, TensorView<const T> x);

/// A shape whose axes have these names, each kept where it stands first, or none.
Shape shape_with_names(std::vector<Index> sizes, std::vector<std::string> names);

/// A number for a message, to four significant digits.
std::string number_text(double number);
/// Two numbers that differ, to as many digits as tell them apart, but at least four.
std::pair<std::string, std::string> number_texts(double a, double b);
/// A count with its noun: `1 row`, `3 rows`.
std::string counted(Index count, std::string_view noun);

}  // namespace eckart

// Square systems of equations, the inverse, the determinant.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

namespace eckart {

/// What is known of a matrix.
enum class MatrixKind { general, positive_definite, lower_triangular, upper_triangular };

struct SolveOptions {
  /// Positive definite takes half the work of a general matrix, triangular none but the solving.
  /// Of a triangular matrix the other triangle is not used.
  MatrixKind kind = MatrixKind::general;
};

/// The x for which a x = b.
/// `a`: n x n, finite. `b`: n, or n x n_rhs for many right-hand sides, finite.
/// Result: x, n or n x n_rhs; its rows have the name of a's columns. Cost: n^3 / 3 MACs (half for
/// positive definite), and n^2 for each right-hand side.
/// Accuracy: x solves a system whose elements differ from a's by small multiples of n eps times the
/// largest of their row and column (Higham, Accuracy and Stability, 2002, theorems 9.5 and 10.4). A
/// general matrix is first scaled by powers of two, so that rows or columns in different units harm
/// nothing.
/// Throws ShapeError when `a` is not square or `b` does not fit; ArgumentError when either has a NaN
/// or an infinity, when `a` is singular, exactly or to working precision (reciprocal condition
/// number below eps; the message says which row depends on which), is not positive definite though
/// that was said (naming the pivot), or when the answer exceeds the range of T.
template <class T>
Tensor<T> solve(TensorView<const T> a, TensorView<const T> b, const SolveOptions& options = {});
template <class A, class B>
requires detail::Arrays<A, B> Tensor<detail::Element<A>> solve(const A& a, const B& b,
                                                               const SolveOptions& options = {}) {
  return solve(detail::read_only(a), detail::read_only(b), options);
}

/// The inverse of a square matrix. To apply an inverse, solve instead: `solve(a, b)` costs a third
/// of `inverse(a)` times b and its residual is smaller.
/// `a`: n x n, finite. Result: n x n, its axes named as a's, exchanged. Cost: n^3 4/3 MACs.
/// Accuracy: that of `solve` for each column. Throws as `solve`.
template <class T>
Tensor<T> inverse(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> inverse(const A& a) {
  return inverse(detail::read_only(a));
}

/// A determinant that neither overflows nor underflows: sign * exp(log_abs).
template <class T>
struct LogDeterminant {
  T sign;     // 1, -1, or 0 where the determinant is 0
  T log_abs;  // natural logarithm; -infinity where the determinant is 0
};

/// The determinant of a square matrix, from its LU factorisation.
/// `a`: n x n, finite. Result: 1 for 0 x 0; infinity or 0 where the value leaves T's range (see
/// `log_determinant`). Cost: n^3 / 3 MACs. Accuracy: the exact determinant of a matrix that differs
/// from a by a small multiple of n eps ||a||: a value near 0 does not say how near singular `a` is;
/// `condition_number` does.
/// Throws ShapeError when `a` is not square, ArgumentError when it is not finite or too large.
template <class T>
T determinant(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> detail::Element<A> determinant(const A& a) {
  return determinant(detail::read_only(a));
}

/// The same as a sign and a logarithm.
template <class T>
LogDeterminant<T> log_determinant(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> LogDeterminant<detail::Element<A>> log_determinant(const A& a) {
  return log_determinant(detail::read_only(a));
}

}  // namespace eckart

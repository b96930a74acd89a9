// The x that brings a x closest to b.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/rank.h"

#include <string_view>

namespace eckart {

enum class LstsqMethod {
  qr,   // a has full column rank: the answer is unique
  svd,  // it has not: of all answers the one with the smallest norm
};
/// `qr`, `svd`.
std::string_view to_string(LstsqMethod method);

template <class T>
struct LeastSquares {
  Tensor<T> x;         // n, or n x n_rhs
  T residual_norm;     // ||b - a x||, over all right-hand sides
  Index rank;          // of a
  T condition_number;  // of a, in the 2-norm; infinity when rank < min(m, n)
  LstsqMethod method;
};

/// Least squares: the x with the smallest ||a x - b||, and of several the one with the smallest
/// ||x||. For an intercept, give `a` a column of ones.
/// `a`: m x n, finite. `b`: m, or m x n_rhs, finite.
/// Result: x n, or n x n_rhs; its rows have the name of a's columns. `options.tolerance` says which
/// singular values count as 0.
/// Method: Householder QR; the singular values of R give rank and condition number, and where the
/// rank is below n, the SVD of R the answer. Never the normal equations, which square the condition
/// number. Cost: 2 n^2 (m - n / 3) FLOPs, about 3 n^3 for the values of R, 4 m n for each right-hand
/// side; where m < n or the rank is below n, the cost of an SVD of the smaller size more.
/// Accuracy: backward stable: x is the answer for an `a` and a `b` that differ by small multiples of
/// m n eps times their norms (Higham, Accuracy and Stability, 2002, theorem 20.3).
/// Throws ShapeError when `b` does not fit, ArgumentError when either is not finite or too large, or
/// the tolerance is not a number from 0.
template <class T>
LeastSquares<T> lstsq(TensorView<const T> a, TensorView<const T> b,
                      const RankOptions& options = {});
template <class A, class B>
requires detail::Arrays<A, B> LeastSquares<detail::Element<A>> lstsq(
    const A& a, const B& b, const RankOptions& options = {}) {
  return lstsq(detail::read_only(a), detail::read_only(b), options);
}

}  // namespace eckart

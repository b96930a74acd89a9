// Least squares that is held back from large answers.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <vector>

namespace eckart {

template <class T>
struct Ridge {
  Tensor<T> x;      // n, or n x n_rhs
  T residual_norm;  // ||b - a x||, over all right-hand sides
  double strength;
  Index rank;          // of a
  T condition_number;  // of a, in the 2-norm; infinity when rank < min(m, n)
};

/// Ridge regression: the x with the smallest ||a x - b||^2 + strength ||x||^2.
/// `a`: m x n, finite. `b`: m, or m x n_rhs, finite. `strength`: in the units of a^2, at least 0; with
/// 0 the answer is the minimum-norm one of `lstsq`. Every column is held back alike, an intercept's
/// too: center `a` and `b` where that is not meant.
/// Result: x n, or n x n_rhs. Method: SVD, x = v diag(s / (s^2 + strength)) u^T b. Cost: an SVD.
/// Accuracy: backward stable; the condition number that counts is that of `a` with sqrt(strength) on a
/// diagonal below it, sqrt((s[0]^2 + strength) / (s[k - 1]^2 + strength)), and is never squared.
/// Throws ShapeError when `b` does not fit, ArgumentError when anything is not finite or the strength
/// is below 0.
template <class T>
Ridge<T> ridge(TensorView<const T> a, TensorView<const T> b, double strength);
template <class A, class B>
requires detail::Arrays<A, B> Ridge<detail::Element<A>> ridge(const A& a, const B& b,
                                                              double strength) {
  return ridge(detail::read_only(a), detail::read_only(b), strength);
}

struct RidgeCvOptions {
  /// The strengths to choose from, each finite and at least 0. Default: 25 from 1e-9 to 1e3 times
  /// the square of a's largest singular value, half a decade apart.
  std::vector<double> strengths;
};

template <class T>
struct RidgeCv {
  Tensor<T> x;      // for the chosen strength
  T residual_norm;  // ||b - a x||, over all right-hand sides
  double strength;  // the chosen one: of those with the least error, the largest
  std::vector<double> strengths;
  /// For each strength the mean square of b's elements minus what the other rows predict for them;
  /// infinity where a row can't be predicted from the others.
  std::vector<double> loo_errors;
  Index rank;          // of a
  T condition_number;  // of a, in the 2-norm; infinity when rank < min(m, n)
};

/// Ridge regression whose strength is chosen by leaving out each row in turn. One SVD gives the error
/// for every strength in closed form: residual i over 1 - h_i, where h is the diagonal of
/// u diag(s^2 / (s^2 + strength)) u^T (Golub, Heath, Wahba: Generalized cross-validation, 1979).
/// Arguments, accuracy and errors as `ridge`; `a` has at least one row. Cost: an SVD, and 2 m k n_rhs
/// FLOPs a strength.
template <class T>
RidgeCv<T> ridge_cv(TensorView<const T> a, TensorView<const T> b,
                    const RidgeCvOptions& options = {});
template <class A, class B>
requires detail::Arrays<A, B> RidgeCv<detail::Element<A>> ridge_cv(
    const A& a, const B& b, const RidgeCvOptions& options = {}) {
  return ridge_cv(detail::read_only(a), detail::read_only(b), options);
}

}  // namespace eckart

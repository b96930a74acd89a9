// The rank of a matrix and its four subspaces' bases, from singular values.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <optional>

namespace eckart {

struct RankOptions {
  /// Singular values at or below it count as 0. Default: max(m, n) eps times the largest, as NumPy
  /// and MATLAB have it; it must be finite and at least 0.
  std::optional<double> tolerance = std::nullopt;
};

/// The number of singular values above the tolerance.
/// `a`: m x n, finite; an empty matrix has rank 0. Cost: that of `svd_values`. Accuracy: a matrix of
/// that rank lies within the tolerance (in the 2-norm) of `a`, and none of smaller rank does.
/// Throws ShapeError when `a` is no matrix; ArgumentError when it is not finite or too large, or the
/// tolerance is not a number from 0.
template <class T>
Index matrix_rank(TensorView<const T> a, const RankOptions& options = {});
template <class A>
requires detail::Arrays<A> Index matrix_rank(const A& a, const RankOptions& options = {}) {
  return matrix_rank(detail::read_only(a), options);
}

/// An orthonormal basis of all x with a x = 0.
/// `a`: m x n, finite. Result: n x (n - rank), one vector a column; signs as `svd` fixes them.
/// Cost: that of `svd`, and 4/3 n^3 FLOPs where m < n. Accuracy: ||a x|| is at most the tolerance
/// and a small multiple of eps ||a||. Throws as `matrix_rank`.
template <class T>
Tensor<T> null_space(TensorView<const T> a, const RankOptions& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> null_space(const A& a,
                                                                 const RankOptions& options = {}) {
  return null_space(detail::read_only(a), options);
}

/// An orthonormal basis of all a x: the left singular vectors of the values above the tolerance.
/// `a`: m x n, finite. Result: m x rank, one vector a column. Cost: that of `svd`. Throws as
/// `matrix_rank`.
template <class T>
Tensor<T> column_space(TensorView<const T> a, const RankOptions& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> column_space(
    const A& a, const RankOptions& options = {}) {
  return column_space(detail::read_only(a), options);
}

/// The 2-norm condition number: the largest singular value over the smallest.
/// `a`: m x n, finite, not empty. Result: at least 1; infinity when `a` is rank-deficient, that is
/// when the smallest value is at most max(m, n) eps times the largest, where it is rounding alone.
/// Cost: that of `svd_values`. Accuracy: relative, a small multiple of eps times the result.
/// Throws ShapeError when `a` is no matrix or empty, ArgumentError when it is not finite or too
/// large.
template <class T>
T condition_number(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> detail::Element<A> condition_number(const A& a) {
  return condition_number(detail::read_only(a));
}

}  // namespace eckart

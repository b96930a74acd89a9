// The inverse of a matrix of any shape.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/rank.h"

namespace eckart {

/// The Moore-Penrose pseudo-inverse: p b is the minimum-norm least-squares answer of a x = b. To
/// apply it once, `lstsq(a, b)` is cheaper and more accurate.
/// `a`: m x n, finite. Result: n x m, its axes named as a's, exchanged. `options.tolerance` says
/// which singular values count as 0. Cost: that of `svd`, and 2 m n rank FLOPs. Accuracy: relative to
/// the largest element, a small multiple of eps times the condition number of what is not 0.
/// Throws ShapeError when `a` is no matrix; ArgumentError when it is not finite or too large, or the
/// tolerance is not a number from 0.
template <class T>
Tensor<T> pinv(TensorView<const T> a, const RankOptions& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> pinv(const A& a,
                                                           const RankOptions& options = {}) {
  return pinv(detail::read_only(a), options);
}

}  // namespace eckart

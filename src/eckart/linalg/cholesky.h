// The square root of a positive definite matrix.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

namespace eckart {

/// The lower triangular l with a positive diagonal for which a = l l^T.
/// `a`: n x n, finite, symmetric to rounding (its lower triangle is used), positive definite.
/// Result: n x n, 0 above the diagonal. Cost: n^3 / 6 MACs. Accuracy: ||a - l l^T|| is at most a
/// small multiple of n eps ||a|| (Higham, Accuracy and Stability, 2002, theorem 10.3).
/// Throws ShapeError when `a` is not square; ArgumentError when it is not finite, not symmetric
/// (naming a pair of elements), or not positive definite (naming the pivot; pivots count from 1).
template <class T>
Tensor<T> cholesky(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> cholesky(const A& a) {
  return cholesky(detail::read_only(a));
}

}  // namespace eckart

// Gaussian elimination with partial pivoting.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <vector>

namespace eckart {

/// Row i of l u is row `permutation[i]` of a.
template <class T>
struct Lu {
  Tensor<T> l;                     // m x k, 1 on the diagonal, 0 above, no magnitude above 1
  Tensor<T> u;                     // k x n, 0 below the diagonal
  std::vector<Index> permutation;  // m
};

/// LU factorisation of a matrix, with row exchanges. A singular matrix has one too: u then has a 0
/// on its diagonal.
/// `a`: m x n, finite. Result: l m x k, u k x n, k = min(m, n). Cost: m n k - k^2 (m + n) / 2 + k^3 / 3
/// MACs. Accuracy: ||P a - l u|| is at most a small multiple of k eps ||a||, times a growth factor
/// that is small for all but contrived matrices (Higham, Accuracy and Stability of Numerical
/// Algorithms, 2002, chapter 9).
/// Throws ShapeError when `a` is no matrix, ArgumentError when it is not finite or too large.
template <class T>
Lu<T> lu(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> Lu<detail::Element<A>> lu(const A& a) {
  return lu(detail::read_only(a));
}

}  // namespace eckart

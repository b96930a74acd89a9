// An orthonormal basis of a matrix's columns, by Householder reflections.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <vector>

namespace eckart {

/// a = q r.
template <class T>
struct Qr {
  Tensor<T> q;  // m x k, orthonormal columns
  Tensor<T> r;  // k x n, 0 below the diagonal, no diagonal element below 0
};

/// Column j of q r is column `permutation[j]` of a.
template <class T>
struct PivotedQr {
  Tensor<T> q;  // m x k, orthonormal columns
  Tensor<T> r;  // k x n, 0 below the diagonal, which descends and has no element below 0
  std::vector<Index> permutation;  // n
};

/// QR factorisation, compact: with k = min(m, n).
/// `a`: m x n, finite. Result: q m x k, r k x n. The diagonal of r is made at least 0, so that the
/// factors of a matrix of full column rank are unique. Cost: 2 (m n k - (m + n) k^2 / 2 + k^3 / 3)
/// MACs. Accuracy: ||a - q r|| and ||q^T q - 1|| are at most small multiples of m k eps, the first
/// times ||a|| (Higham, Accuracy and Stability, 2002, chapter 19).
/// Throws ShapeError when `a` is no matrix, ArgumentError when it is not finite or too large.
template <class T>
Qr<T> qr(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> Qr<detail::Element<A>> qr(const A& a) {
  return qr(detail::read_only(a));
}

/// The same with column exchanges: each step takes the column of which most is left. How fast the
/// diagonal of r falls shows how far the columns are from depending on each other.
template <class T>
PivotedQr<T> qr_pivoted(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> PivotedQr<detail::Element<A>> qr_pivoted(const A& a) {
  return qr_pivoted(detail::read_only(a));
}

}  // namespace eckart

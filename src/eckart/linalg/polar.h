// The rotation that is nearest to a matrix, and the one that takes one set of points to another.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

namespace eckart {

/// a = u p.
template <class T>
struct Polar {
  Tensor<T> u;  // m x n, orthonormal columns (rows, where m < n)
  Tensor<T> p;  // n x n, symmetric positive semidefinite
};

/// Polar decomposition, from the SVD: u = u_s vt, p = vt^T diag(s) vt. Of all matrices with
/// orthonormal columns, u is nearest to `a` in every unitarily invariant norm (Fan and Hoffman 1955;
/// Higham, Computing the polar decomposition with applications, 1986).
/// `a`: m x n, finite. Result: u m x n, p n x n. Where `a` is rank-deficient p is unique, u is not.
/// Cost: that of `svd`, and 2 (m + n) n min(m, n) FLOPs. Accuracy: ||a - u p|| is at most a small
/// multiple of n eps ||a||.
/// Throws ShapeError when `a` is no matrix, ArgumentError when it is not finite or too large.
template <class T>
Polar<T> polar(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> Polar<detail::Element<A>> polar(const A& a) {
  return polar(detail::read_only(a));
}

struct ProcrustesOptions {
  /// Also find the scale; otherwise it is 1.
  bool scaling = false;
  /// Allow a reflection (determinant -1); otherwise the answer is a rotation.
  bool reflection = true;
};

/// scale a rotation is nearest to b.
template <class T>
struct Procrustes {
  Tensor<T> rotation;  // n x n, orthogonal
  T scale;
  T residual_norm;  // ||scale a rotation - b||_F
};

/// Orthogonal Procrustes problem: the orthogonal matrix, and on request the scale, that takes the
/// rows of `a` nearest to those of `b` (Schönemann 1966; with a rotation only, Umeyama 1991). Center
/// both first where a translation is meant to be free.
/// `a`, `b`: m x n, finite, of one shape. Result: rotation n x n, from a's columns to b's. The scale
/// that is found for a zero `a` is 0. Cost: 2 m n^2 FLOPs and an SVD of n x n. Accuracy: the rotation is orthogonal
/// to n eps; it is as certain as a^T b is far from rank n - 2.
/// Throws ShapeError when the shapes differ, ArgumentError when anything is not finite or too large.
template <class T>
Procrustes<T> procrustes(TensorView<const T> a, TensorView<const T> b,
                         const ProcrustesOptions& options = {});
template <class A, class B>
requires detail::Arrays<A, B> Procrustes<detail::Element<A>> procrustes(
    const A& a, const B& b, const ProcrustesOptions& options = {}) {
  return procrustes(detail::read_only(a), detail::read_only(b), options);
}

}  // namespace eckart

// The part of a vector that lies along another, or in a matrix's column space.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <optional>

namespace eckart {

template <class T>
struct Projection {
  Tensor<T> projection;    // n, named as a
  Tensor<T> residual;      // a - projection, orthogonal to what was projected onto
  Tensor<T> coefficients;  // projection = onto * coefficients: 1 for a vector, k for n x k
  /// Onto a vector: the signed length of the projection, which is the coefficient of the vector's
  /// unit vector.
  std::optional<T> coefficient_on_unit;
};

/// Orthogonal projection of a vector onto a vector or onto the space of a matrix's columns.
/// `a`: n, finite. `onto`: n, not zero, or n x k, finite; its columns may depend on each other, and
/// the coefficients are then those with the smallest norm.
/// Result: vectors of n. Cost: 6 n FLOPs, or that of `svd` of `onto`.
/// Accuracy: the projection is off by a small multiple of eps ||a||. The residual is orthogonal to
/// `onto` to a small multiple of eps times its own length, also where that is far below a's, since
/// what it has left of `onto` is taken away a second time (Parlett, The Symmetric Eigenvalue Problem,
/// 1980, section 6.9).
/// Throws ShapeError when `a` is no vector or the sizes or names of the axes differ; ArgumentError
/// when either is not finite, or `onto` is a zero vector.
template <class T>
Projection<T> project(TensorView<const T> a, TensorView<const T> onto);
template <class A, class B>
requires detail::Arrays<A, B> Projection<detail::Element<A>> project(const A& a, const B& onto) {
  return project(detail::read_only(a), detail::read_only(onto));
}

}  // namespace eckart

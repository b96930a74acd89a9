// Eigenvalues and vectors of symmetric matrices.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <optional>

namespace eckart {

/// a v = v diag(values).
template <class T>
struct Eigh {
  Tensor<T> values;   // k, ascending
  Tensor<T> vectors;  // n x k, orthonormal columns
};

enum class Which { largest, smallest };

struct EighOptions {
  /// How many values and vectors; all when unset.
  std::optional<Index> k = std::nullopt;
  /// Which k: those of largest or smallest value (not magnitude).
  Which which = Which::largest;
};

/// Eigenvalue decomposition of a symmetric matrix.
/// `a`: n x n, finite, symmetric to rounding (its lower triangle is used). `options.k`: 0 to n.
/// Result: values k, ascending, whichever were asked for; vectors n x k, one a column, with the sign
/// that makes the component of largest magnitude (of those equal to rounding, the first) positive.
/// Cost: about 9 n^3 FLOPs by divide and conquer; for k values 4/3 n^3 and 2 n^2 k.
/// Accuracy: each value within a small multiple of eps ||a|| of the exact one, the vectors
/// orthonormal to n eps; a vector is as certain as its value is far from the others (Parlett, The
/// Symmetric Eigenvalue Problem, 1980, chapter 11).
/// Throws ShapeError when `a` is not square; ArgumentError when it is not finite, not symmetric
/// (naming a pair of elements), or too large for LAPACK's 32-bit integers (n above 32,000 for all
/// values), or when k is out of range.
template <class T>
Eigh<T> eigh(TensorView<const T> a, const EighOptions& options = {});
template <class A>
requires detail::Arrays<A> Eigh<detail::Element<A>> eigh(const A& a,
                                                         const EighOptions& options = {}) {
  return eigh(detail::read_only(a), options);
}

}  // namespace eckart

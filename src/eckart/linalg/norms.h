// How large a vector or a matrix is.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/axis.h"

#include <optional>

namespace eckart {

enum class Norm {
  one,        // of a vector the sum of magnitudes; of a matrix its largest column sum of magnitudes
  two,        // of a vector its length; of a matrix its largest singular value
  infinity,   // of a vector its largest magnitude; of a matrix its largest row sum of magnitudes
  frobenius,  // root of the sum of squares
  nuclear,    // of a matrix the sum of its singular values
  spectral,   // of a matrix its largest singular value
};

/// `1`, `2`, `inf`, `fro`, `nuc`, `spectral`: NumPy's names, and one of ours.
std::string_view to_string(Norm norm);
/// The norm of that name, or nothing.
std::optional<Norm> parse_norm(std::string_view name);

/// A norm of a vector (default: two), a matrix (default: Frobenius) or an array of more axes
/// (Frobenius only). T is float or double.
/// Returns a double, also for floats: no norm of floats but an infinite one is beyond it.
/// Cost: one pass at the memory's speed; `nuclear`, `spectral` and `two` of a matrix are singular
/// values by LAPACK's gesdd in double: 8/3 m n min(m, n) FLOPs or so, and a copy in double.
/// Accuracy: sums are in double; squares neither overflow nor underflow (a second pass, scaled,
/// where they would: Blue, "A portable Fortran program to find the Euclidean norm", 1978). Relative
/// error at most (540 + n / 65536) 2^-53 for n elements, for singular values a small multiple of
/// 2^-53 max(m, n). The norm of no elements is 0; of a NaN it is NaN.
/// Throws ShapeError for a norm that an array of these axes does not have; ArgumentError for NaN
/// and infinity where singular values are needed.
template <class T>
double norm(TensorView<const T> a, std::optional<Norm> kind = std::nullopt);
template <class A>
requires detail::Arrays<A>
double norm(const A& a, std::optional<Norm> kind = std::nullopt) {
  return norm(detail::read_only(a), kind);
}

/// Norms of the vectors along one axis: of an m x n matrix and axis 1 the norms of its m rows.
/// `kind` is one, two or infinity.
/// Returns an array without that axis, rounded to T. Cost, accuracy: as `norm`.
/// Throws ShapeError when there is no such axis or vectors have no such norm.
template <class T>
Tensor<T> vector_norms(TensorView<const T> a, const Axis& axis, Norm kind = Norm::two);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> vector_norms(const A& a, const Axis& axis,
                                                                   Norm kind = Norm::two) {
  return vector_norms(detail::read_only(a), axis, kind);
}

}  // namespace eckart

// The singular value decomposition, exact to rounding, through LAPACK.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

namespace eckart {

/// a = u diag(s) vt, compact: with k = min(m, n).
template <class T>
struct Svd {
  Tensor<T> u;   // m x k, orthonormal columns
  Tensor<T> s;   // k, descending, at least 0
  Tensor<T> vt;  // k x n, orthonormal rows
};

enum class SvdMethod {
  /// LAPACK's gesdd, and its gesvd where that does not converge.
  divide_and_conquer,
  /// LAPACK's gesvd: several times slower with vectors.
  qr_iteration,
};

struct SvdOptions {
  SvdMethod method = SvdMethod::divide_and_conquer;
};

/// Singular value decomposition of a matrix.
/// `a`: m x n, finite, any strides, either size may be 0.
/// Result: u m x k, s k, vt k x n with k = min(m, n). The new axis is named `component` where `a`
/// has names. Signs are fixed: of each column of u the component of largest magnitude (of those
/// equal to rounding, the first) is positive.
/// Cost: about 6 m n k + 20 k^3 FLOPs; memory for 2 copies of `a` and 4 k^2 elements.
/// Accuracy: each value within a small multiple of eps s[0] of the exact one, whatever its own size:
/// values below max(m, n) eps s[0] are rounding. Backward stable (Anderson et al., LAPACK Users'
/// Guide, 1999, section 4.9). Matrices of very large or small numbers are scaled inside.
/// Throws ShapeError when `a` is no matrix; ArgumentError when it has a NaN or an infinity, or is
/// too large for LAPACK's 32-bit integers (more than 2^31 - 1 elements, or k above 23,000 by divide
/// and conquer).
template <class T>
Svd<T> svd(TensorView<const T> a, const SvdOptions& options = {});
template <class A>
requires detail::Arrays<A> Svd<detail::Element<A>> svd(const A& a, const SvdOptions& options = {}) {
  return svd(detail::read_only(a), options);
}

/// The singular values alone, through LAPACK in the precision of T.
/// `a`: m x n as above. Result: min(m, n) values, descending. Cost: about 8/3 m n k FLOPs.
/// Accuracy and errors as `svd`.
template <class T>
Tensor<T> svd_values(TensorView<const T> a, const SvdOptions& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> svd_values(const A& a,
                                                                 const SvdOptions& options = {}) {
  return svd_values(detail::read_only(a), options);
}

}  // namespace eckart

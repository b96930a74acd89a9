// The best approximation of a matrix by one of low rank, found without its whole SVD.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/linear_operator.h"

#include <cstdint>
#include <string>

namespace eckart {

/// What is asked: exactly one of `rank`, `energy` and `relative_error`.
struct LowRankOptions {
  /// 1 … min(m, n).
  Index rank = 0;
  /// The smallest rank that keeps this share of the squared Frobenius norm, above 0 and below 1.
  double energy = 0;
  /// The smallest rank whose error, as a share of the Frobenius norm, is at most this: above 0 and
  /// below 1.
  double relative_error = 0;

  /// Iterating ends when another step is expected to lower the error by less than this share.
  double tolerance = 1e-4;
  std::uint64_t seed = 0;
  /// Take the exact method whatever the sizes.
  bool exact = false;
};

template <class T>
struct LowRank {
  Tensor<T> u;   // m x rank, orthonormal columns
  Tensor<T> s;   // rank, descending
  Tensor<T> vt;  // rank x n, orthonormal rows
  /// At most the rank asked for: less where the matrix has no more.
  Index rank = 0;
  double frobenius_norm = 0;   // of the matrix
  double frobenius_error = 0;  // ||A - u s vt||_F, computed and not estimated
  double relative_error = 0;   // frobenius_error / frobenius_norm; 0 for a zero matrix
  std::string method;          // "block Krylov", "Gram matrix in double" or "svd"
  Index passes = 0;            // over the matrix: products with a block, and the norm
  /// Whether the iteration ended by itself; always true of exact methods.
  bool converged = true;
};

/// u s vt, the approximation of an m x n matrix of float or double by a matrix of low rank whose
/// Frobenius error is within `tolerance`, as a share, of the least possible (Eckart and Young,
/// Psychometrika 1, 1936): that of the truncated SVD.
///
/// Ranks up to some eighth of min(m, n) are found by a randomised block Krylov method with full
/// reorthogonalisation: products with a few columns at a time, until another step would improve
/// the error by less than `tolerance`. Larger ranks, small matrices and errors below the
/// iteration's reach take the exact method: the eigenvectors of the Gram matrix in double, or
/// LAPACK's SVD. Results depend on `seed`, and not on the number of threads for the iteration.
///
/// Cost: about 4 m n (rank + 100) FLOPs in products; memory for some 3 (m + n) rank numbers beside
/// the matrix. The error is ||A||^2 - ||U^T A||^2 in double, or, where that cancels, computed entry
/// by entry. Of sigma_i, values inside a flat part of the spectrum are less sure than the error;
/// their vectors are any of that part. References in docs/algorithms/low_rank.md.
/// Throws ShapeError unless a is a matrix, ArgumentError for options out of range and for NaN or
/// infinite entries.
template <class T>
LowRank<T> low_rank(TensorView<const T> a, const LowRankOptions& options);

/// The same of a matrix that is not stored: a difference, a product of factors, or any other.
template <class T>
LowRank<T> low_rank(const LinearOperator<T>& a, const LowRankOptions& options);

inline LowRank<float> low_rank(const Tensor<float>& a, const LowRankOptions& options) {
  return low_rank(a.view(), options);
}
inline LowRank<double> low_rank(const Tensor<double>& a, const LowRankOptions& options) {
  return low_rank(a.view(), options);
}

/// The approximation as a product b a of factors m x rank and rank x n, each with the root of s: what
/// a LoRA adapter stores.
template <class T>
struct LowRankFactors {
  Tensor<T> b;
  Tensor<T> a;
};
template <class T>
LowRankFactors<T> factors(const LowRank<T>& approximation);

}  // namespace eckart

// The dominant eigenvalue, by nothing but products.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <cstdint>
#include <optional>

namespace eckart {

struct PowerIterationOptions {
  Index max_iterations = 1000;
  /// Converged when ||a v - value v|| is at most this times |value|. Default: sqrt(eps) of T, with
  /// which the value of a symmetric matrix is exact to rounding.
  std::optional<double> tolerance = std::nullopt;
  std::uint64_t seed = 0;
};

template <class T>
struct PowerIteration {
  T value;           // v^T a v
  Tensor<T> vector;  // n, norm 1, its component of largest magnitude positive
  Index iterations;
  bool converged;
  T residual;  // ||a v - value v||
};

/// Power iteration from a random vector: the eigenvalue of largest magnitude and its vector.
/// `a`: n x n, finite, not empty. Result: the last vector, converged or not. It does not converge
/// when the largest magnitude is that of a complex pair or of two opposite values, and slowly when
/// the next is near: each iteration divides the error by the ratio of the two. A zero matrix has
/// value 0 and converges at once.
/// Cost: n^2 MACs an iteration. Accuracy: a symmetric matrix has an eigenvalue within `residual` of
/// `value`, and within residual^2 / gap (Parlett, The Symmetric Eigenvalue Problem, 1980, chapter 4).
/// The same seed gives the same result whatever the number of threads.
/// Throws ShapeError when `a` is not square or empty; ArgumentError when it is not finite, or an
/// option is out of range.
template <class T>
PowerIteration<T> power_iteration(TensorView<const T> a, const PowerIterationOptions& options = {});
template <class A>
requires detail::Arrays<A> PowerIteration<detail::Element<A>> power_iteration(
    const A& a, const PowerIterationOptions& options = {}) {
  return power_iteration(detail::read_only(a), options);
}

}  // namespace eckart

// Scores to weights that are positive and sum to 1.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/axis.h"

#include <optional>

namespace eckart {

template <class T>
struct SoftmaxOptions {
  /// Scores are divided by it. 0: all weight on the largest (the first of several); infinity:
  /// uniform.
  double temperature = 1;
  Axis axis = -1;
  /// Added to the scores after the temperature; broadcast to x. -infinity hides a position.
  std::optional<TensorView<const T>> bias = {};
  /// Broadcast to x: where false, the position is hidden and its weight is exactly 0.
  std::optional<TensorView<const bool>> mask = {};
};

/// exp(x_i / temperature + bias_i) over its sum along one axis, of an array of any shape.
/// Returns x's shape and names. A position is hidden where the mask is false or where x or the bias
/// is -infinity: whatever else stands there, its weight is 0. Where all positions are hidden, all
/// weights are 0. A NaN or +infinity that is not hidden makes the weights of its row NaN, and of no
/// other row (at temperature 0, +infinity is merely the largest score).
/// Cost: three passes over each row, on all cores. Accuracy: the largest score is subtracted first,
/// so that no score is too large; each weight to (8 + |x_i - max|) eps of itself, those below the
/// smallest normal number become 0 (Blanchard, Higham & Higham, "Accurately computing the
/// log-sum-exp and softmax functions", IMA J. Numer. Anal. 41, 2021). The same bits for every number
/// of threads.
/// Throws ShapeError when there is no such axis or the bias or mask does not broadcast to x,
/// ArgumentError when the temperature is negative or NaN.
template <class T>
Tensor<T> softmax(TensorView<const T> x, const SoftmaxOptions<T>& options = {});
/// Logarithms of the same weights, each from the scores and not from a weight that may have become
/// 0; -infinity where a position is hidden. Accuracy: absolute, 8 eps (1 + |x_i - max|).
template <class T>
Tensor<T> log_softmax(TensorView<const T> x, const SoftmaxOptions<T>& options = {});

template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> softmax(
    const A& x, const SoftmaxOptions<detail::Element<A>>& options = {}) {
  return softmax(detail::read_only(x), options);
}
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> log_softmax(
    const A& x, const SoftmaxOptions<detail::Element<A>>& options = {}) {
  return log_softmax(detail::read_only(x), options);
}

}  // namespace eckart

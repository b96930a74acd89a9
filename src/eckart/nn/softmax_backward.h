// The gradient of softmax.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/axis.h"

namespace eckart {

struct SoftmaxBackwardOptions {
  double temperature = 1;  // that of the softmax
  Axis axis = -1;          // that of the softmax
};

/// What a loss changes by the scores x, from what it changes by their weights w = softmax(x, …): w (d_w
/// - sum(d_w w)) / temperature, the sum along the axis. d_w and w have one shape. A masked position
/// has weight 0 and so gradient 0; the gradient of the additive bias is this times the temperature.
/// Of temperature 0 (one-hot) and infinity (uniform) the gradient is 0 everywhere.
/// Returns the shape of w, names included. Cost: two passes. Accuracy: in double, rounded to T.
/// Throws ShapeError when the sizes differ or there is no such axis; ArgumentError for a temperature
/// below 0 or NaN.
template <class T>
Tensor<T> softmax_backward(TensorView<const T> d_w, TensorView<const T> w,
                           const SoftmaxBackwardOptions& options = {});
template <class D, class W>
requires detail::Arrays<D, W> Tensor<detail::Element<W>> softmax_backward(
    const D& d_w, const W& w, const SoftmaxBackwardOptions& options = {}) {
  return softmax_backward(detail::read_only(d_w), detail::read_only(w), options);
}

}  // namespace eckart

// Gradients of the norms.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/nn/normalization.h"

namespace eckart {

template <class T>
struct LayerNormGradients {
  Tensor<T> x;       // … x d
  Tensor<T> weight;  // d; where the call had none, that of ones
  Tensor<T> bias;    // d
};

template <class T>
struct RmsNormGradients {
  Tensor<T> x;       // … x d
  Tensor<T> weight;  // d
};

/// What a loss changes by x, weight and bias, from what it changes by y = layer_norm(x, options),
/// d_y, of the shape of x. With x^ = (x - mean) / deviation and g = d_y weight: (g - mean(g) -
/// x^ mean(g x^)) / deviation; sums of d_y x^ and of d_y over all vectors.
/// Returns gradients of the shapes of x, weight and bias. Cost: as the norm, twice.
/// Accuracy: in double, rounded to T once; the same bits for every number of threads.
/// Throws as `layer_norm`, and ShapeError when d_y and x differ in sizes.
template <class T>
LayerNormGradients<T> layer_norm_backward(TensorView<const T> d_y, TensorView<const T> x,
                                          const LayerNormOptions<T>& options = {});
template <class D, class X>
requires detail::Arrays<D, X> LayerNormGradients<detail::Element<X>> layer_norm_backward(
    const D& d_y, const X& x, const LayerNormOptions<detail::Element<X>>& options = {}) {
  return layer_norm_backward<detail::Element<X>>(detail::read_only(d_y), detail::read_only(x),
                                                 options);
}

/// The same of rms_norm: (g - x^ mean(g x^)) / deviation, with x^ = x / deviation.
/// Throws as `rms_norm`, and ShapeError when d_y and x differ in sizes.
template <class T>
RmsNormGradients<T> rms_norm_backward(TensorView<const T> d_y, TensorView<const T> x,
                                      const RmsNormOptions<T>& options = {});
template <class D, class X>
requires detail::Arrays<D, X> RmsNormGradients<detail::Element<X>> rms_norm_backward(
    const D& d_y, const X& x, const RmsNormOptions<detail::Element<X>>& options = {}) {
  return rms_norm_backward<detail::Element<X>>(detail::read_only(d_y), detail::read_only(x),
                                               options);
}

}  // namespace eckart

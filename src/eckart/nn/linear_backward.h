// Gradients of linear layers, whole and with low-rank factors beside them.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

namespace eckart {

template <class T>
struct LinearGradients {
  Tensor<T> x;  // … x d_in
  Tensor<T> w;  // d_in x d_out
  Tensor<T> b;  // d_out
};

/// What a loss changes by x, w and b, from what it changes by y = linear(x, w, b): d_y w^T, x^T d_y
/// and the sums of d_y's columns. d_y is … x d_out, x … x d_in, w d_in x d_out.
/// Returns gradients of those shapes, names included. Cost: two products of the size of the layer's.
/// Accuracy: of the products as `matmul`, of the sums as `sum`.
/// Throws ShapeError, naming who and which rule, when shapes or names don't go together.
template <class T>
LinearGradients<T> linear_backward(TensorView<const T> d_y, TensorView<const T> x,
                                   TensorView<const T> w);
template <class D, class X, class W>
requires detail::Arrays<D, X, W> LinearGradients<detail::Element<X>> linear_backward(const D& d_y,
                                                                                     const X& x,
                                                                                     const W& w) {
  return linear_backward(detail::read_only(d_y), detail::read_only(x), detail::read_only(w));
}

/// A low-rank change beside a frozen matrix w: x (w + scale lora_a lora_b).
template <class T>
struct LoraFactors {
  TensorView<const T> lora_a;  // d_in x rank
  TensorView<const T> lora_b;  // rank x d_out
  double scale = 1;            // alpha / rank
};

/// x w + scale (x lora_a) lora_b, without forming the change (Hu et al., "LoRA", arXiv 2106.09685).
/// x is … x d_in, w d_in x d_out. Returns … x d_out. Cost: of linear, and 2 rank (d_in + d_out) FLOPs
/// a row. Accuracy: of the products as `matmul`. Throws ShapeError as `linear`.
template <class T>
Tensor<T> lora_linear(TensorView<const T> x, TensorView<const T> w, const LoraFactors<T>& factors);
template <class X, class W>
requires detail::Arrays<X, W> Tensor<detail::Element<X>> lora_linear(
    const X& x, const W& w, const LoraFactors<detail::Element<X>>& factors) {
  return lora_linear<detail::Element<X>>(detail::read_only(x), detail::read_only(w), factors);
}

template <class T>
struct LoraGradients {
  Tensor<T> lora_a;  // d_in x rank
  Tensor<T> lora_b;  // rank x d_out
};

/// What a loss changes by the factors, from what it changes by y = lora_linear(x, w, factors): scale
/// x^T (d_y lora_b^T) and scale (x lora_a)^T d_y. Neither w nor a gradient of its size is needed. d_y
/// is … x d_out, x … x d_in. (That of x is linear_backward's by w and that by the factors' product.)
/// Returns gradients of the factors' shapes. Cost: 4 rank (d_in + d_out) FLOPs a row. Accuracy: of
/// the products as `matmul`. Throws ShapeError when shapes or names don't go together.
template <class T>
LoraGradients<T> lora_backward(TensorView<const T> d_y, TensorView<const T> x,
                               const LoraFactors<T>& factors);
template <class D, class X>
requires detail::Arrays<D, X> LoraGradients<detail::Element<X>> lora_backward(
    const D& d_y, const X& x, const LoraFactors<detail::Element<X>>& factors) {
  return lora_backward<detail::Element<X>>(detail::read_only(d_y), detail::read_only(x), factors);
}

}  // namespace eckart

// LayerNorm and RMSNorm: vectors brought to one size along the last axis.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <optional>

namespace eckart {

template <class T>
struct LayerNormOptions {
  std::optional<TensorView<const T>> weight = {};  // d; nothing: ones
  std::optional<TensorView<const T>> bias = {};    // d; nothing: zeros
  double eps = 1e-5;                               // added to the variance; at least 0
};

/// (x - mean) / sqrt(variance + eps) weight + bias of each vector along the last axis of x (… x d),
/// the variance over d, not d - 1 (Ba, Kiros, Hinton, "Layer normalization", arXiv 1607.06450).
/// Returns the shape of x, names included. Cost: three passes over a vector that is in the cache.
/// Accuracy: sums and quotients in double, whatever the scale of x: each element to a few eps of T
/// beside the error of the mean, d 2^-53 of the largest |x|. A NaN or an infinity makes its own vector
/// NaN and no other; so does a vector of one value when eps is 0.
/// Throws ShapeError for a scalar, or when weight or bias is no vector of d elements or bears another
/// name than x's last axis; ArgumentError for an eps below 0 or NaN.
template <class T>
Tensor<T> layer_norm(TensorView<const T> x, const LayerNormOptions<T>& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> layer_norm(
    const A& x, const LayerNormOptions<detail::Element<A>>& options = {}) {
  return layer_norm<detail::Element<A>>(detail::read_only(x), options);
}

template <class T>
struct RmsNormOptions {
  std::optional<TensorView<const T>> weight = {};  // d; nothing: ones
  double eps = 1e-6;                               // added to the mean square; at least 0
  bool adds_one = false;  // multiplies by 1 + weight, as Gemma stores it; needs a weight
};

/// x / sqrt(mean(x^2) + eps) weight of each vector along the last axis of x (… x d) (Zhang,
/// Sennrich, "Root mean square layer normalization", arXiv 1910.07467).
/// Returns the shape of x, names included. Cost: two passes over a vector that is in the cache.
/// Accuracy: sums and quotients in double, neither overflow nor underflow of squares: each element to
/// a few eps of T. A NaN or an infinity makes its own vector NaN (an infinity: other elements 0) and
/// no other; a vector of zeros is NaN when eps is 0.
/// Throws ShapeError for a scalar, or when weight is no vector of d elements or bears another name
/// than x's last axis; ArgumentError for an eps below 0 or NaN, or `adds_one` without a weight.
template <class T>
Tensor<T> rms_norm(TensorView<const T> x, const RmsNormOptions<T>& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> rms_norm(
    const A& x, const RmsNormOptions<detail::Element<A>>& options = {}) {
  return rms_norm<detail::Element<A>>(detail::read_only(x), options);
}

}  // namespace eckart

// How wrong predictions are, and gradients kept from growing.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <vector>

namespace eckart {

/// What becomes of the tokens' losses.
enum class Reduction {
  mean,  // over the targets that count
  sum,
  none,  // each token's own
};

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  /// Tokens with this target do not count: their loss is 0.
  Index ignore_index = -100;
  /// Share of the target that is spread evenly over all classes, from 0 to 1.
  double label_smoothing = 0;
};

/// -log softmax(logits)[target] of each token, from logits (… x n_vocab) and one target for each
/// vector of them, in row-major order. With label_smoothing s: (1 - s) of that and s times its mean
/// over all classes (Szegedy et al., arXiv 1512.00567, section 7), as PyTorch has it.
/// Returns a scalar or, with `none`, … (the logits' leading axes). The mean over no target is NaN.
/// Cost: two passes over a vector, one exponential an element. Accuracy: in double, rounded to T; the
/// absolute error is (n_vocab / 8 + 20) 2^-53 and 2 2^-53 of the largest |logit|. NaN where a logit
/// is NaN or +infinity; infinity where the target's is -infinity.
/// Throws ShapeError for scalar logits or another number of targets; ArgumentError for a target out
/// of range, named with its place, or a label_smoothing out of range.
template <class T>
Tensor<T> cross_entropy(TensorView<const T> logits, const std::vector<Index>& targets,
                        const CrossEntropyOptions& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> cross_entropy(
    const A& logits, const std::vector<Index>& targets, const CrossEntropyOptions& options = {}) {
  return cross_entropy(detail::read_only(logits), targets, options);
}

/// The gradient of `cross_entropy` by its logits: softmax less the target, over the number of targets
/// that count for `mean`. With `none` it is that of the sum: each token's own loss by its own logits.
/// Returns the shape of logits, names included. Cost: three passes. Accuracy: a few eps of T.
/// Throws as `cross_entropy`.
template <class T>
Tensor<T> cross_entropy_backward(TensorView<const T> logits, const std::vector<Index>& targets,
                                 const CrossEntropyOptions& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> cross_entropy_backward(
    const A& logits, const std::vector<Index>& targets, const CrossEntropyOptions& options = {}) {
  return cross_entropy_backward(detail::read_only(logits), targets, options);
}

template <class T>
struct ClippedGradients {
  std::vector<Tensor<T>> gradients;
  double norm = 0;    // of all gradients together, before
  double factor = 1;  // what they were multiplied by, at most 1
};

/// Gradients of any shapes scaled by one factor so that the norm of all together is at most max_norm
/// (Pascanu, Mikolov, Bengio, arXiv 1211.5063). Shorter ones stay as they are, bit by bit.
/// Cost: two passes. Accuracy: the norm in double as `norm`; elements rounded once. (PyTorch adds
/// 1e-6 to the norm, so that its result is shorter than max_norm.)
/// Throws ArgumentError for a max_norm below 0 or NaN, and for a NaN or an infinity in a gradient,
/// naming gradient and position.
template <class T>
ClippedGradients<T> clip_grad_norm(const std::vector<TensorView<const T>>& gradients,
                                   double max_norm);

}  // namespace eckart

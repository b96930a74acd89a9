// The MLP of a layer: plain, down(act(up x)), or gated, down(act(gate x) * up x); mixtures of them.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/nn/activations.h"

#include <optional>
#include <vector>

namespace eckart {

/// Views on the weights, which must outlive them. A PyTorch Linear stores the transposes: give its
/// `transpose()`, which copies nothing.
template <class T>
struct Mlp {
  TensorView<const T> w_up;                        // d_model x d_ff
  TensorView<const T> w_down;                      // d_ff x d_model
  std::optional<TensorView<const T>> w_gate = {};  // d_model x d_ff; nothing: a plain MLP
  std::optional<TensorView<const T>> b_up = {};    // d_ff
  std::optional<TensorView<const T>> b_down = {};  // d_model
  std::optional<TensorView<const T>> b_gate = {};  // d_ff
  Activation activation = Activation::silu;
};

/// act(x w_up + b_up) w_down + b_down or, with w_gate, (act(x w_gate + b_gate) * (x w_up + b_up))
/// w_down + b_down (Shazeer, "GLU variants improve transformer", arXiv 2002.05202). x is … x d_model.
/// Returns … x d_model. Cost: 4 d_model d_ff FLOPs a row, gated 6; memory for one table of rows x
/// d_ff, gated two. Accuracy: of the products as `matmul`, of the activation as `activate`.
/// Throws ShapeError, naming weights and shapes, when they don't go together; ArgumentError for a
/// b_gate without w_gate.
template <class T>
Tensor<T> mlp(TensorView<const T> x, const Mlp<T>& weights);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> mlp(const A& x,
                                                          const Mlp<detail::Element<A>>& weights) {
  return mlp<detail::Element<A>>(detail::read_only(x), weights);
}

/// Where the router's scores become weights.
enum class RouterSoftmax {
  before_choice,  // over all experts; the weights of the chosen sum to less than 1
  after_choice,   // over the chosen experts alone; they sum to 1
};

struct ExpertsOptions {
  Index n_active = 2;  // experts a token goes to, from 1 to all
  RouterSoftmax softmax = RouterSoftmax::before_choice;
  /// The weights of the chosen are divided by their sum. Changes nothing after_choice.
  bool normalizes = false;
};

template <class T>
struct MixtureOfExperts {
  Tensor<T> output;      // the shape of x
  Tensor<Index> chosen;  // … x n_active: experts by number, that of the largest score first
  Tensor<T> weights;     // … x n_active: what their outputs are multiplied by
};

/// The n_active experts of the largest scores x w_router, their outputs weighed and added (Shazeer et
/// al., "Outrageously large neural networks", arXiv 1701.06538). x is … x d_model, w_router d_model x
/// experts. Of equal scores the expert of the lowest number is chosen.
/// Cost: of the router, and of n_active MLPs a row: the rows of one expert are one product each.
/// Accuracy: as `mlp`; weights in double, rounded to T. NaN in a row stays in it.
/// Throws ShapeError when w_router has not one column an expert or shapes don't go together;
/// ArgumentError for n_active out of range.
template <class T>
MixtureOfExperts<T> mixture_of_experts(TensorView<const T> x, TensorView<const T> w_router,
                                       const std::vector<Mlp<T>>& experts,
                                       const ExpertsOptions& options = {});
template <class X, class W>
requires detail::Arrays<X, W> MixtureOfExperts<detail::Element<X>> mixture_of_experts(
    const X& x, const W& w_router, const std::vector<Mlp<detail::Element<X>>>& experts,
    const ExpertsOptions& options = {}) {
  return mixture_of_experts<detail::Element<X>>(detail::read_only(x), detail::read_only(w_router),
                                                experts, options);
}

}  // namespace eckart

// Training the factors of a low-rank change on data while the matrix itself stays frozen.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <cstdint>
#include <vector>

namespace eckart {

struct LoraFitOptions {
  Index rank = 8;
  double alpha = 8;             // the change is alpha / rank lora_a lora_b
  Index steps = 1000;           // at most
  double learning_rate = 0.01;  // of the first step; it falls to 0 along half a cosine
  Index batch = 0;              // rows a step; 0: all
  std::uint64_t seed = 0;       // of lora_a's start and of the order of the rows
  /// Converged when the gradient over all rows is at most this share of what it was at the start.
  double tolerance = 1e-4;
};

template <class T>
struct LoraFit {
  Tensor<T> lora_a;  // d_in x rank
  Tensor<T> lora_b;  // rank x d_out
  double scale = 1;  // alpha / rank
  /// Mean of the squared differences over the rows of each step, before it.
  std::vector<double> losses;
  double loss = 0;            // of these factors, over all rows
  double gradient_share = 0;  // of these factors' gradient in that of the start
  bool converged = false;     // gradient_share is at most the tolerance
};

/// Factors that bring x w + alpha / rank (x lora_a) lora_b near to y in the mean square, w frozen: Adam
/// (Kingma, Ba, arXiv 1412.6980, with its beta of 0.9 and 0.999) on lora_a, which starts uniform in
/// +-1 / sqrt(d_in), and lora_b, which starts at 0, as PEFT has it. x is … x d_in, y … x d_out, w
/// d_in x d_out. Ends before `steps` when all rows are one batch and it has converged, or when the
/// loss is no longer finite: the factors are those of before.
/// Returns factors, losses and whether they converged. The same bits for a seed, whatever the number
/// of threads. Cost: a product by w, then some 8 rank (d_in + d_out) FLOPs a row and step; memory for
/// three tables of rows x d_out.
/// Accuracy: products in T, Adam's state and the factors in double until the end. Where it converges
/// it is a point of zero gradient to the tolerance: for data from a change of that rank the change
/// itself, else as a rule the least-squares optimum of that rank (Baldi, Hornik, "Neural networks and
/// principal component analysis", 1989: there are no other minima).
/// Throws ShapeError when shapes or names don't go together; ArgumentError for an option out of range,
/// for no rows, and for NaN or infinity in x, y or w.
template <class T>
LoraFit<T> lora_fit(TensorView<const T> x, TensorView<const T> y, TensorView<const T> w,
                    const LoraFitOptions& options = {});
template <class X, class Y, class W>
requires detail::Arrays<X, Y, W> LoraFit<detail::Element<X>> lora_fit(
    const X& x, const Y& y, const W& w, const LoraFitOptions& options = {}) {
  return lora_fit(detail::read_only(x), detail::read_only(y), detail::read_only(w), options);
}

}  // namespace eckart

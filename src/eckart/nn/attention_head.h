// One head of attention as in a paper: every intermediate by name, and its two circuits in factors.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/linear_operator.h"
#include "eckart/nn/attention.h"

namespace eckart {

/// The matrices of one head, to be multiplied from the right: x w_q and so on.
template <class T>
struct AttentionHead {
  Tensor<T> w_q;  // d_model x d_head
  Tensor<T> w_k;  // d_model x d_head
  Tensor<T> w_v;  // d_model x d_v
  Tensor<T> w_o;  // d_v x d_model
};

/// Everything on the way from tokens to a head's output.
template <class T>
struct HeadTrace {
  Tensor<T> q;        // token x d_head: x w_q
  Tensor<T> k;        // token x d_head: x w_k
  Tensor<T> v;        // token x d_v: x w_v
  Tensor<T> scores;   // token x key: scale q k^T, capped, divided by the temperature, with bias and
                      // ALiBi added; -infinity where a key is hidden
  Tensor<T> weights;  // token x key: softmax of the scores
  Tensor<T> mixed;    // token x d_v: weights v
  Tensor<T> output;   // token x d_model: mixed w_o
};

/// One head applied to x (token x d_model), nothing left out. The options are those of `attention`
/// for a single head; `mixed` equals `attention(q, k, v, options)` to its accuracy.
/// Cost: 4 products with the weights and the token x key tables, which are formed here.
/// Throws ShapeError when the weights don't fit x or each other, and as `attention`.
template <class T>
HeadTrace<T> trace_head(TensorView<const T> x, const AttentionHead<T>& head,
                        const AttentionOptions<T>& options = {});
template <class X>
requires detail::Arrays<X> HeadTrace<detail::Element<X>> trace_head(
    const X& x, const AttentionHead<detail::Element<X>>& head,
    const AttentionOptions<detail::Element<X>>& options = {}) {
  return trace_head(detail::read_only(x), head, options);
}

/// w_q w_k^T, d_model x d_model of rank d_head, kept in its factors: what a query token asks of a
/// key token (Elhage et al., "A Mathematical Framework for Transformer Circuits", 2021). `low_rank`
/// and `singular_values` take it as it is. The head must outlive it. Throws ShapeError when the
/// factors don't fit.
template <class T>
ProductOperator<T> qk_circuit(const AttentionHead<T>& head);
/// w_v w_o, d_model x d_model of rank d_v, in its factors: what a token that is attended to writes.
template <class T>
ProductOperator<T> ov_circuit(const AttentionHead<T>& head);

}  // namespace eckart

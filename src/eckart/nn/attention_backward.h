// Gradients of attention.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/nn/attention.h"

namespace eckart {

template <class T>
struct AttentionGradients {
  Tensor<T> q;  // … x head x query x d_head
  Tensor<T> k;  // … x kv_head x key x d_head: summed over the query heads that read it
  Tensor<T> v;  // … x kv_head x key x d_v
};

/// What a loss changes by q, k and v, from what it changes by y = attention(q, k, v, options), d_y, of
/// y's shape. With the weights w, d_w = d_y v^T and d_s = w (d_w - sum(w d_w)), row by row: d_v = w^T
/// d_y, d_q = scale d_s k and d_k = scale d_s^T q; a temperature divides d_s, a soft cap multiplies it
/// by 1 - tanh^2. Every option counts; mask, bias, slopes and sinks are taken as constants. At
/// temperature 0 and infinity the scores change nothing, so that d_q and d_k are 0.
/// Returns gradients of the shapes of q, k and v, names included. Cost: 6 d_head + 4 d_v FLOPs a pair
/// that causality and window leave; the table is formed for 128 queries at a time, three times.
/// Accuracy: weights as `attention_weights`, products as `matmul`, sums of a row in double. Hidden keys
/// are multiplied by 0: a NaN in one spreads, unlike in `attention`.
/// Throws as `attention`, and ShapeError when d_y has not the shape of its result.
template <class T>
AttentionGradients<T> attention_backward(TensorView<const T> d_y, TensorView<const T> q,
                                         TensorView<const T> k, TensorView<const T> v,
                                         const AttentionOptions<T>& options = {});
template <class D, class Q, class K, class V>
requires detail::Arrays<D, Q, K, V> AttentionGradients<detail::Element<Q>> attention_backward(
    const D& d_y, const Q& q, const K& k, const V& v,
    const AttentionOptions<detail::Element<Q>>& options = {}) {
  return attention_backward<detail::Element<Q>>(detail::read_only(d_y), detail::read_only(q),
                                                detail::read_only(k), detail::read_only(v),
                                                options);
}

}  // namespace eckart

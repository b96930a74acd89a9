// Attention: each query's mixture of the values, weighed by how well its key fits.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <optional>

namespace eckart {

template <class T>
struct AttentionOptions {
  /// A query sees the keys up to its own position.
  bool causal = false;
  /// The first query's position among the keys, for `causal` and `alibi_slopes`. Nothing:
  /// n_keys - n_queries, so that the last query stands at the last key. Queries at negative
  /// positions see no key when causal.
  std::optional<Index> offset = {};
  /// How many keys back a query sees, its own included (needs `causal`); 0: all.
  Index window = 0;
  /// Factor of the products of query and key; nothing: 1 / sqrt(d_head).
  std::optional<double> scale = {};
  /// Scores and sinks are divided by it, as in softmax: 0 takes the value of the best key, infinity
  /// the mean of those seen.
  double temperature = 1;
  /// Scores s become cap tanh(s / cap), before temperature, bias and mask; 0: they stay.
  double softcap = 0;
  /// Broadcast to the scores (… x head x query x key): false hides the key. Padding is
  /// batch x 1 x 1 x key.
  std::optional<TensorView<const bool>> mask = {};
  /// Added to the scores after the temperature; broadcast as the mask. -infinity hides the key.
  std::optional<TensorView<const T>> bias = {};
  /// Slope a head: slope x (key position - query position) is added to the scores (ALiBi).
  std::optional<TensorView<const T>> alibi_slopes = {};
  /// Score a head that takes part in the softmax and brings no value (attention sinks).
  std::optional<TensorView<const T>> sinks = {};
};

/// softmax(scale q k^T) v, with every option fused: the token x token table is never formed.
/// q: … x head x query x d_head (or query x d_head), k: … x kv_head x key x d_head,
/// v: … x kv_head x key x d_v; head a multiple of kv_head (grouped and multi-query heads: query head
/// h reads key head h / (head / kv_head)), leading axes equal. Any strides.
/// Returns … x head x query x d_v. A query that sees no key gives zeros. What is hidden is not read
/// as a number: a NaN there touches nothing, and a NaN in one query touches no other.
/// Cost: 2 (d_head + d_v) FLOPs a pair of a query and a key it sees, on all cores; blocks that
/// causality, window, mask or bias empty are skipped. Memory: the result, at most 2 MiB a thread up
/// to heads of 1024 (growing with the head beyond), and, where few queries meet many keys, a partial
/// result for each 1024 keys.
/// Accuracy: with e = (d_head + 8) eps max |scale| sum |q_i k_i|, each element to
/// (2 e + (n_keys / 64 + 80) eps) sum weight |v| (Higham, "Accuracy and Stability of Numerical
/// Algorithms", section 3.5). The same bits for every number of threads. The loops are those of
/// FlashAttention-2 (Dao, arXiv 2307.08691; docs/algorithms/attention.md).
/// Throws ShapeError when shapes or axis names don't fit, ArgumentError when an option is out of its
/// range.
template <class T>
Tensor<T> attention(TensorView<const T> q, TensorView<const T> k, TensorView<const T> v,
                    const AttentionOptions<T>& options = {});
/// The weights themselves: … x head x query x key, with 0 where a key is hidden. Rows sum to 1, less
/// where a sink takes its share. Cost: 2 d_head FLOPs a pair that is seen, and the table. Accuracy
/// and errors: as `attention`.
template <class T>
Tensor<T> attention_weights(TensorView<const T> q, TensorView<const T> k,
                            const AttentionOptions<T>& options = {});

template <class Q, class K, class V>
requires detail::Arrays<Q, K, V> Tensor<detail::Element<Q>> attention(
    const Q& q, const K& k, const V& v, const AttentionOptions<detail::Element<Q>>& options = {}) {
  return attention(detail::read_only(q), detail::read_only(k), detail::read_only(v), options);
}
template <class Q, class K>
requires detail::Arrays<Q, K> Tensor<detail::Element<Q>> attention_weights(
    const Q& q, const K& k, const AttentionOptions<detail::Element<Q>>& options = {}) {
  return attention_weights(detail::read_only(q), detail::read_only(k), options);
}

}  // namespace eckart

// Attention as its formula says it, pair by pair in long double: what the fused one is held against.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/nn/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace eckart::testing {

template <class T>
struct AttentionReference {
  Tensor<double> weights;  // batch x head x query x key
  Tensor<double> mixed;    // batch x head x query x d_v
  /// How far a result in T may be from either, element by element: attention.h's bound.
  Tensor<double> weight_bound;
  Tensor<double> mixed_bound;
};

namespace detail {

using Real = long double;

// The scores of one query, and the bound on the error that T's rounding leaves in any of them.
struct ScoreRow {
  std::vector<Real> scores;
  Real error = 0;
};

template <class T>
struct ReferencePlace {
  Index batch, head, query;
};

template <class T>
ScoreRow reference_scores(TensorView<const T> q, TensorView<const T> k,
                          const AttentionOptions<T>& options, ReferencePlace<T> at) {
  const Index n_heads = q.size(1), n_queries = q.size(2), n_keys = k.size(2), d = q.size(3);
  const Index kv_head = at.head / (n_heads / k.size(1));
  const auto scale =
      static_cast<Real>(options.scale.value_or(1 / std::sqrt(static_cast<double>(d))));
  const auto cap = static_cast<Real>(options.softcap);
  const Real cold = options.temperature == 0 ? 1 : 1 / static_cast<Real>(options.temperature);
  const Index position = options.offset.value_or(n_keys - n_queries) + at.query;
  const Shape shape({q.size(0), n_heads, n_queries, n_keys});
  ScoreRow row;
  Real largest_product = 0, largest_term = 0;
  for (Index j = 0; j < n_keys; ++j) {
    Real dot = 0, product = 0;
    for (Index i = 0; i < d; ++i) {
      const Real term = static_cast<Real>(q(at.batch, at.head, at.query, i)) *
                        static_cast<Real>(k(at.batch, kv_head, j, i));
      dot += term;
      product += std::abs(term);
    }
    Real score = dot * scale;
    Real term = 0;
    if (cap > 0) {
      score = cap * std::tanh(score / cap);
      term += cap * cold;
    }
    score *= cold;
    if (options.alibi_slopes && options.temperature != 0) {
      const Real added =
          static_cast<Real>((*options.alibi_slopes)(at.head)) * static_cast<Real>(j - position);
      score += added;
      term += std::abs(added);
    }
    bool is_hidden = options.causal && j > position;
    is_hidden = is_hidden || (options.window > 0 && j <= position - options.window);
    if (options.mask) {
      is_hidden = is_hidden || !options.mask->broadcast_to(shape)(at.batch, at.head, at.query, j);
    }
    if (options.bias) {
      const auto added =
          static_cast<Real>(options.bias->broadcast_to(shape)(at.batch, at.head, at.query, j));
      is_hidden = is_hidden || added == -std::numeric_limits<Real>::infinity();
      if (options.temperature != 0) score += added;
      if (!is_hidden) term += std::abs(added);
    }
    if (is_hidden) {
      score = -std::numeric_limits<Real>::infinity();
    } else {
      largest_product = std::max(largest_product, product * std::abs(scale) * cold);
      largest_term = std::max(largest_term, term + std::abs(score));
    }
    row.scores.push_back(score);
  }
  row.error = static_cast<Real>(std::numeric_limits<T>::epsilon()) *
              (static_cast<Real>(d + 8) * largest_product + 8 * largest_term);
  return row;
}

// The weights of a row of scores; the sink's is left out.
inline std::vector<Real> reference_weights(std::vector<Real> scores, Real sink, bool is_hard) {
  Real most = sink;
  for (const Real score : scores) most = std::max(most, score);
  if (most == -std::numeric_limits<Real>::infinity()) {
    return std::vector<Real>(scores.size(), 0);
  }
  if (is_hard) {
    bool found = false;
    for (Real& score : scores) {
      const bool is_best = !found && score == most;
      found = found || is_best;
      score = is_best ? 1 : 0;
    }
    return scores;
  }
  Real sum = std::exp(sink - most);
  for (Real& score : scores) {
    score = std::exp(score - most);
    sum += score;
  }
  for (Real& score : scores) score /= sum;
  return scores;
}

}  // namespace detail

/// q: batch x head x query x d_head, k: batch x kv_head x key x d_head, v: … x d_v, all finite where
/// they are seen.
template <class T>
AttentionReference<T> attention_reference(TensorView<const T> q, TensorView<const T> k,
                                          TensorView<const T> v,
                                          const AttentionOptions<T>& options) {
  using detail::Real;
  const Index n_heads = q.size(1), n_keys = k.size(2), d_v = v.size(3);
  const Shape of_weights({q.size(0), n_heads, q.size(2), n_keys});
  const Shape of_mixed({q.size(0), n_heads, q.size(2), d_v});
  AttentionReference<T> result{Tensor<double>(of_weights), Tensor<double>(of_mixed),
                               Tensor<double>(of_weights), Tensor<double>(of_mixed)};
  const bool is_hard = options.temperature == 0;
  const auto eps = static_cast<Real>(std::numeric_limits<T>::epsilon());
  const auto least = static_cast<Real>(std::numeric_limits<T>::min());
  for (Index b = 0; b < q.size(0); ++b) {
    for (Index h = 0; h < n_heads; ++h) {
      for (Index i = 0; i < q.size(2); ++i) {
        const detail::ScoreRow row =
            detail::reference_scores(q, k, options, detail::ReferencePlace<T>{b, h, i});
        const Real cold = is_hard ? 1 : 1 / static_cast<Real>(options.temperature);
        const Real sink = options.sinks ? static_cast<Real>((*options.sinks)(h)) * cold
                                        : -std::numeric_limits<Real>::infinity();
        const std::vector<Real> weights = detail::reference_weights(row.scores, sink, is_hard);
        const Real relative =
            is_hard ? 0 : 2 * row.error + (static_cast<Real>(n_keys) / 64 + 80) * eps;
        for (Index j = 0; j < n_keys; ++j) {
          const Real weight = weights[static_cast<std::size_t>(j)];
          result.weights(b, h, i, j) = static_cast<double>(weight);
          // What is below the smallest normal number becomes 0.
          result.weight_bound(b, h, i, j) = static_cast<double>(relative * weight + least);
          if (weight == 0) continue;
          for (Index c = 0; c < d_v; ++c) {
            const auto value = static_cast<Real>(v(b, h / (n_heads / k.size(1)), j, c));
            result.mixed(b, h, i, c) += static_cast<double>(weight * value);
            result.mixed_bound(b, h, i, c) +=
                static_cast<double>(relative * weight * std::abs(value));
          }
        }
        // The reference's own sums are rounded to double.
        for (Index c = 0; c < d_v; ++c) {
          result.mixed_bound(b, h, i, c) +=
              static_cast<double>(n_keys) * 1.2e-16 * std::abs(result.mixed(b, h, i, c)) +
              static_cast<double>(std::numeric_limits<T>::min());
        }
      }
    }
  }
  return result;
}

/// Success when every element is within its bound of the expected one. The failure names the first
/// that is not, both values and the bound.
template <class T>
::testing::AssertionResult is_within(const Tensor<T>& actual, const Tensor<double>& expected,
                                     const Tensor<double>& bound) {
  if (actual.count() != expected.count()) {
    return ::testing::AssertionFailure() << "actual is " << to_string(actual.shape())
                                         << " and expected is " << to_string(expected.shape());
  }
  for (Index i = 0; i < actual.count(); ++i) {
    const double difference = std::abs(static_cast<double>(actual.data()[i]) - expected.data()[i]);
    if (difference <= bound.data()[i]) continue;  // false of NaN
    return ::testing::AssertionFailure()
           << "element " << i << " of " << to_string(expected.shape()) << " is "
           << static_cast<double>(actual.data()[i]) << " and must be within " << bound.data()[i]
           << " of " << expected.data()[i];
  }
  return ::testing::AssertionSuccess();
}

}  // namespace eckart::testing

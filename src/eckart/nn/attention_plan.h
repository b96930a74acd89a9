// What attention is asked, checked and brought to pointers and strides. Internal.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/core/tensor_view.h"
#include "eckart/nn/attention.h"
#include "eckart/nn/attention_simd.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// An array … x head x row x column by its strides; all axes before `head` are one, the batch.
template <class T>
struct Operand {
  const T* data = nullptr;
  std::vector<Index> batches;  // where each begins, in elements
  Index head = 0, row = 0, column = 0;

  const T* at(Index batch, Index of_head, Index of_row) const {
    return data + batches[static_cast<std::size_t>(batch)] + of_head * head + of_row * row;
  }
};

template <class T>
struct AttentionPlan {
  Index n_batches = 1, n_heads = 1, n_kv_heads = 1;
  Index n_queries = 0, n_keys = 0, d_head = 0, d_v = 0;
  Operand<T> q;
  StoredRows k, v;
  std::vector<Index> k_batches, v_batches;  // where each begins, in elements
  bool causal = false;
  Index offset = 0;
  Index window = 0;
  double scale = 1;
  double temperature = 1;
  double softcap = 0;
  Operand<bool> mask;  // without data where there is none, as the following
  Operand<T> bias;
  TensorView<const T> slopes;
  TensorView<const T> sinks;

  Index heads_per_key() const { return n_heads / n_kv_heads; }
};

/// Everything but the values. Throws as `attention`, which a message calls `operation`.
template <class T>
AttentionPlan<T> plan_attention(std::string_view operation, TensorView<const T> q,
                                TensorView<const T> k, const AttentionOptions<T>& options);
/// The values besides. `k` is that of the plan.
template <class T>
void plan_values(std::string_view operation, TensorView<const T> k, TensorView<const T> v,
                 AttentionPlan<T>& plan);
/// The queries and their heads of a cache's plan: q is head x query x d_head, and the plan knows
/// n_kv_heads, d_head and n_keys. Throws as `attention`.
template <class T>
void plan_queries(std::string_view operation, TensorView<const T> q, AttentionPlan<T>& plan);
/// The options of a plan that has its sizes.
template <class T>
void plan_options(std::string_view operation, const Shape& scores,
                  const AttentionOptions<T>& options, AttentionPlan<T>& plan);

/// … x head x query x key, with names.
Shape score_shape(const Shape& q, const Shape& k);
/// … x head x query x d_v, with names.
Shape mixed_shape(const Shape& q, const Shape& v);

}  // namespace eckart::detail

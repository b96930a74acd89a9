// The inner loops of attention for a few queries, which read each stored key and value once and in
// place: what decoding one token at a time consists of. Internal.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/nn/attention_simd.h"

namespace eckart::detail {

/// Puts the `n` numbers of a query in the order in which `multiply_few` meets keys in bf16: of each
/// two vectors the even ones first, since both halves of a pair of bf16 widen with one instruction
/// each. Double keeps its order.
template <class T>
void split_query(T* query, Index n);

/// Scores of `n_rows` queries with keys [first, first + n): each query, `query_stride` apart and,
/// where keys are bf16, split, with each key, whose numbers lie in order. The values of the same positions are asked for meanwhile,
/// so that memory is read without a pause.
template <class T>
struct FewScores {
  const T* queries = nullptr;
  Index query_stride = 0;
  Index n_rows = 0;
  StoredRows keys;
  Index first = 0, n = 0, width = 0;
  StoredRows values;
  Index value_width = 0;
  T* scores = nullptr;
  Index stride = 0;
};
template <class T>
void multiply_few(const FewScores<T>& task);

/// mixed := shrink mixed + weights values, for the same. The keys [next, next + n_next), which are
/// to follow, are asked for meanwhile.
template <class T>
struct FewMix {
  const T* weights = nullptr;
  Index stride = 0;
  Index n_rows = 0;
  StoredRows values;
  Index first = 0, n = 0, width = 0;
  const T* shrink = nullptr;
  T* mixed = nullptr;
  Index mixed_stride = 0;
  StoredRows keys;
  Index next = 0, n_next = 0, key_width = 0;
};
template <class T>
void mix_few(const FewMix<T>& task);

}  // namespace eckart::detail

// The inner loops of attention on one block of queries and one of keys, with the best instructions
// that the machine has. Internal; attention_blocks.cpp says how they go together.
//
// Scores are kept as powers of two: the weight of a score s is 2^s over the sum.
#pragma once

#include "eckart/core/shape.h"

namespace eckart::detail {

/// Rows of stored keys or values: number i of row r of a head stands at
/// data + head * head_stride + r * row_stride + i * column_stride, as T or as a bf16 pattern.
struct StoredRows {
  const void* data = nullptr;
  Index head_stride = 0;
  Index row_stride = 0;
  Index column_stride = 1;
  bool is_bf16 = false;
};

/// Positions of keys, counted from the block's first.
struct KeyRange {
  Index begin = 0;
  Index end = 0;
};

/// Queries whose products are computed together.
inline constexpr Index group_rows = 6;
/// Numbers of a panel, and of a vector.
template <class T>
Index panel_width();
template <class T>
Index vector_width();

/// Row `row` of stored rows as T: where it lies, or copied and widened to `buffer`.
template <class T>
const T* stored_row(const StoredRows& rows, Index row, Index width, T* buffer);

/// Keys [first, first + n) to panels: for each panel, for each of `width` numbers, that of its keys;
/// the last panel is filled up with zeros. `buffer` has 4 x width numbers.
template <class T>
struct KeyPacking {
  StoredRows keys;
  Index first = 0, n = 0, width = 0;
  T* buffer = nullptr;
  T* packed = nullptr;
};
template <class T>
void pack_keys(const KeyPacking<T>& packing);

/// Values [first, first + n) to panels of vectors: for each panel, for each of `rows` values, its
/// columns; rows beyond n and columns beyond `width` are zeros. Returns false where one is NaN or
/// infinite. `buffer` has `width` numbers.
template <class T>
struct ValuePacking {
  StoredRows values;
  Index first = 0, n = 0, rows = 0, width = 0;
  T* buffer = nullptr;
  T* packed = nullptr;
};
template <class T>
bool pack_values(const ValuePacking<T>& packing);

/// Products of groups of queries with panels of keys, each only with the panels that its range
/// meets. Queries are packed: for each group, for each number, that of its rows.
template <class T>
struct ScoreTask {
  const T* queries = nullptr;
  const T* keys = nullptr;
  Index width = 0;
  const KeyRange* groups = nullptr;  // multiples of a panel
  Index n_groups = 0;
  T* scores = nullptr;  // row by row, `stride` apart
  Index stride = 0;
};
template <class T>
void multiply_keys(const ScoreTask<T>& task);

/// scores := factor tanh(scores) in [0, n).
template <class T>
void cap_scores(T* scores, Index n, T factor);

/// One step of the running softmax of some rows: scores become 2^(score - largest so far), `largest`
/// and `sum` go on, and `shrink` is what all earlier sums and mixtures are to be multiplied by.
template <class T>
struct SoftmaxTask {
  T* scores = nullptr;
  Index stride = 0;
  const KeyRange* rows = nullptr;
  Index n_rows = 0;
  T* largest = nullptr;
  T* sum = nullptr;
  T* shrink = nullptr;
};
template <class T>
void update_softmax(const SoftmaxTask<T>& task);

/// mixed := shrink mixed + weights values, for groups of rows.
template <class T>
struct MixTask {
  const T* weights = nullptr;
  Index stride = 0;
  const T* values = nullptr;  // packed
  Index value_rows = 0;       // of a panel
  Index n_vectors = 0;        // of a row of `mixed`
  const KeyRange* groups = nullptr;
  Index n_groups = 0;
  const T* shrink = nullptr;
  T* mixed = nullptr;  // rows of n_vectors vectors
};
template <class T>
void mix_values(const MixTask<T>& task);

/// out := 2^in for n numbers of at most 0.
template <class T>
void powers_of_two(const T* in, Index n, T* out);

}  // namespace eckart::detail

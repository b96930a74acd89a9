#include "eckart/nn/attention_worker.h"

#include "eckart/nn/few_queries_simd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace eckart::detail {
namespace {

template <class T>
constexpr T hidden = -std::numeric_limits<T>::infinity();

// Blocks for which keys, values, scores and mixtures together stay in a second-level cache of half
// a megabyte where heads have 128 floats.
constexpr Index most_rows = 192;
constexpr Index most_keys = 128;
constexpr Index few_keys = 64;
constexpr Index least_rows = 24;
constexpr Index least_keys = 64;  // the widest panel
constexpr Index most_bytes = Index{2} << 20;

Index round_up(Index n, Index step) { return (n + step - 1) / step * step; }

template <class T>
Index bytes_of(const AttentionPlan<T>& plan, const BlockSizes& sizes) {
  const Index d_v = round_up(plan.d_v, vector_width<T>());
  const Index width = std::max(plan.d_head, plan.d_v);
  const Index packed = sizes.is_few ? 0 : sizes.keys * (plan.d_head + d_v) + 4 * width;
  return Index{sizeof(T)} * (sizes.rows * (plan.d_head + d_v + sizes.keys + 8) + packed);
}

StoredRows at_head(const StoredRows& rows, Index batch_offset, Index head, std::size_t bytes) {
  StoredRows result = rows;
  const std::size_t element = rows.is_bf16 ? 2 : bytes;
  result.data = static_cast<const unsigned char*>(rows.data) +
                (batch_offset + head * rows.head_stride) * static_cast<Index>(element);
  return result;
}

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

}  // namespace

template <class T>
BlockSizes block_sizes(const AttentionPlan<T>& plan, Index rows) {
  const bool in_place = plan.k.column_stride == 1 && (plan.v.column_stride == 1 || plan.d_v == 0) &&
                        plan.k.is_bf16 == plan.v.is_bf16;
  const bool is_few = in_place && plan.heads_per_key() * plan.n_queries <= few_rows;
  if (is_few) return {plan.heads_per_key() * plan.n_queries, few_keys, true};
  BlockSizes sizes{std::clamp(round_up(rows, group_rows), group_rows, most_rows), most_keys, false};
  while (bytes_of(plan, sizes) > most_bytes && sizes.rows > least_rows) {
    sizes.rows = round_up(sizes.rows / 2, group_rows);
  }
  while (bytes_of(plan, sizes) > most_bytes && sizes.keys > least_keys) sizes.keys /= 2;
  return sizes;
}

template <class T>
BlockWorker<T>::BlockWorker(const AttentionPlan<T>& plan, const ScoreRules<T>& rules,
                            const BlockSizes& sizes)
    : plan_(plan),
      rules_(rules),
      sizes_(sizes),
      columns_(round_up(plan.d_v, vector_width<T>())),
      seen_(at(sizes.rows)),
      groups_(at(sizes.rows / group_rows)),
      rows_(at(sizes.rows)),
      largest_(at(sizes.rows)),
      sum_(at(sizes.rows)),
      shrink_(at(sizes.rows)),
      best_(rules.is_hard() ? at(sizes.rows) : 0),
      queries_(Tensor<T>::uninitialized({sizes.rows * plan.d_head})),
      packed_keys_(Tensor<T>::uninitialized({sizes.is_few ? 0 : sizes.keys * plan.d_head})),
      packed_values_(Tensor<T>::uninitialized({sizes.is_few ? 0 : sizes.keys * columns_})),
      scores_(Tensor<T>::uninitialized({sizes.rows * sizes.keys})),
      mixed_(Tensor<T>::uninitialized({sizes.rows * columns_})),
      buffer_(Tensor<T>::uninitialized({4 * std::max(plan.d_head, plan.d_v)})) {}

// Copies the queries, scaled, and forgets the block before.
template <class T>
void BlockWorker<T>::begin(const RowBlock& block, bool has_sink) {
  n_rows_ = block.rows();
  n_groups_ = (n_rows_ + group_rows - 1) / group_rows;
  const Index d = plan_.d_head;
  const Index padded = sizes_.is_few ? n_rows_ : n_groups_ * group_rows;
  for (Index r = 0; r < padded; ++r) {
    const Index step = sizes_.is_few ? 1 : group_rows;
    T* const to = sizes_.is_few
                      ? queries_.data() + r * d
                      : queries_.data() + r / group_rows * group_rows * d + r % group_rows;
    if (r >= n_rows_) {
      for (Index i = 0; i < d; ++i) to[i * step] = 0;
      continue;
    }
    const T* const from = plan_.q.at(block.batch, block.head(r), block.query(r));
    for (Index i = 0; i < d; ++i) to[i * step] = from[i * plan_.q.column] * rules_.query_factor();
    if (sizes_.is_few && plan_.k.is_bf16) split_query(to, d);
  }
  for (Index r = 0; r < padded; ++r) {
    const T sink = has_sink && r < n_rows_ ? rules_.sink(block.head(r)) : hidden<T>;
    largest_[at(r)] = sink;
    sum_[at(r)] = sink == hidden<T> ? T{0} : sink - sink + 1;
    rows_[at(r)] = {};
  }
  std::fill(best_.begin(), best_.end(), Index{-1});
  std::fill_n(mixed_.data(), padded * columns_, T{0});
  const auto batch = static_cast<std::size_t>(block.batch);
  keys_ = at_head(plan_.k, plan_.k_batches[batch], block.kv_head, sizeof(T));
  values_ = plan_.v_batches.empty()
                ? StoredRows{}
                : at_head(plan_.v, plan_.v_batches[batch], block.kv_head, sizeof(T));
}

template <class T>
void BlockWorker<T>::score_packed(Index first, Index n) {
  const Index panel = panel_width<T>();
  for (Index g = 0; g < n_groups_; ++g) {
    KeyRange all{n, 0};
    for (Index r = g * group_rows; r < std::min(n_rows_, (g + 1) * group_rows); ++r) {
      if (seen_[at(r)].begin >= seen_[at(r)].end) continue;
      all.begin = std::min(all.begin, seen_[at(r)].begin);
      all.end = std::max(all.end, seen_[at(r)].end);
    }
    groups_[at(g)] = all.begin < all.end
                         ? KeyRange{all.begin / panel * panel, round_up(all.end, panel)}
                         : KeyRange{};
    for (Index r = g * group_rows; r < std::min(n_rows_, (g + 1) * group_rows); ++r) {
      rows_[at(r)] = groups_[at(g)];
    }
  }
  pack_keys<T>({keys_, first, n, plan_.d_head, buffer_.data(), packed_keys_.data()});
  multiply_keys<T>({queries_.data(), packed_keys_.data(), plan_.d_head, groups_.data(), n_groups_,
                    scores_.data(), sizes_.keys});
}

template <class T>
void BlockWorker<T>::score_few(Index first, Index n) {
  const bool has_values = values_.data != nullptr && !rules_.is_hard();
  multiply_few<T>({queries_.data(), plan_.d_head, n_rows_, keys_, first, n, plan_.d_head,
                   has_values ? values_ : StoredRows{}, plan_.d_v, scores_.data(), sizes_.keys});
  for (Index r = 0; r < n_rows_; ++r) rows_[at(r)] = {0, round_up(n, vector_width<T>())};
}

// The scores of keys [first, first + n); false where the block is empty and nothing was done.
template <class T>
bool BlockWorker<T>::score(const RowBlock& block, Index first, Index n) {
  const Coverage coverage = rules_.coverage(block, first, n);
  if (coverage == Coverage::none) return false;
  hides_ = coverage != Coverage::all;
  for (Index r = 0; r < n_rows_; ++r) {
    const KeyRange visible = rules_.visible(block.query(r));
    KeyRange& seen = seen_[at(r)];
    seen.begin = std::clamp<Index>(visible.begin - first, 0, n);
    seen.end = std::clamp<Index>(visible.end - first, seen.begin, n);
    hides_ = hides_ || seen.begin > 0 || seen.end < n;
  }
  if (sizes_.is_few) {
    score_few(first, n);
  } else {
    score_packed(first, n);
  }
  for (Index r = 0; r < n_rows_; ++r) {
    rules_.finish({block.batch, block.head(r), block.query(r), first, rows_[at(r)], seen_[at(r)]},
                  coverage, scores_.data() + r * sizes_.keys);
  }
  return true;
}

// Where a hidden value is no number, its weight of 0 would make a NaN of it.
template <class T>
void BlockWorker<T>::mix_one_by_one(Index first, Index n) {
  for (Index r = 0; r < n_rows_; ++r) {
    T* const mixed = mixed_.data() + r * columns_;
    for (Index i = 0; i < plan_.d_v; ++i) mixed[i] *= shrink_[at(r)];
  }
  for (Index j = 0; j < n; ++j) {
    const T* const value = stored_row(values_, first + j, plan_.d_v, buffer_.data());
    for (Index r = 0; r < n_rows_; ++r) {
      if (j < rows_[at(r)].begin || j >= rows_[at(r)].end) continue;
      const T weight = scores_.data()[r * sizes_.keys + j];
      T* const mixed = mixed_.data() + r * columns_;
      if (weight == 0) continue;
      for (Index i = 0; i < plan_.d_v; ++i) mixed[i] += weight * value[i];
    }
  }
}

template <class T>
void BlockWorker<T>::mix(Index first, Index n, Index n_next) {
  if (sizes_.is_few) {
    bool is_finite = true;
    for (Index j = 0; hides_ && j < n; ++j) {
      const T* const value = stored_row(values_, first + j, plan_.d_v, buffer_.data());
      for (Index i = 0; i < plan_.d_v; ++i) is_finite = is_finite && std::isfinite(value[i]);
    }
    if (!is_finite) return mix_one_by_one(first, n);
    return mix_few<T>({scores_.data(), sizes_.keys, n_rows_, values_, first, n, plan_.d_v,
                       shrink_.data(), mixed_.data(), columns_, keys_, first + n, n_next,
                       plan_.d_head});
  }
  const Index padded = round_up(n, panel_width<T>());
  const bool is_finite =
      pack_values<T>({values_, first, n, padded, plan_.d_v, buffer_.data(), packed_values_.data()});
  if (hides_ && !is_finite) return mix_one_by_one(first, n);
  mix_values<T>({scores_.data(), sizes_.keys, packed_values_.data(), padded,
                 columns_ / vector_width<T>(), groups_.data(), n_groups_, shrink_.data(),
                 mixed_.data()});
}

// Temperature 0: the best key so far, and a NaN for good.
template <class T>
void BlockWorker<T>::keep_best(const RowBlock& block, Index first) {
  for (Index r = 0; r < block.rows(); ++r) {
    const T* const scores = scores_.data() + r * sizes_.keys;
    T& largest = largest_[at(r)];
    for (Index j = seen_[at(r)].begin; j < seen_[at(r)].end; ++j) {
      if (std::isnan(largest)) break;
      const bool ties = best_[at(r)] < 0 && scores[j] == largest && largest != hidden<T>;
      if (std::isnan(scores[j]) || scores[j] > largest || ties) {
        largest = scores[j];
        best_[at(r)] = first + j;
      }
    }
  }
}

template <class T>
void BlockWorker<T>::take_best(const RowBlock& block) {
  for (Index r = 0; r < block.rows(); ++r) {
    T* const mixed = mixed_.data() + r * columns_;
    sum_[at(r)] = 1;
    if (std::isnan(largest_[at(r)])) {
      std::fill_n(mixed, plan_.d_v, std::numeric_limits<T>::quiet_NaN());
    } else if (best_[at(r)] >= 0) {
      std::copy_n(stored_row(values_, best_[at(r)], plan_.d_v, buffer_.data()), plan_.d_v, mixed);
    }
  }
}

template <class T>
void BlockWorker<T>::attend(const RowBlock& block, KeyRange keys, bool has_sink) {
  begin(block, has_sink);
  const KeyRange visible = rules_.visible(block);
  const Index end = std::min(keys.end, visible.end);
  const Index start = std::max(keys.begin, visible.begin / sizes_.keys * sizes_.keys);
  for (Index first = start; first < end; first += sizes_.keys) {
    const Index n = std::min(sizes_.keys, end - first);
    if (!score(block, first, n)) continue;
    if (rules_.is_hard()) {
      keep_best(block, first);
      continue;
    }
    update_softmax<T>({scores_.data(), sizes_.keys, rows_.data(), n_rows_, largest_.data(),
                       sum_.data(), shrink_.data()});
    for (Index r = n_rows_; r < static_cast<Index>(shrink_.size()); ++r) shrink_[at(r)] = 0;
    mix(first, n, std::min(sizes_.keys, end - first - n));
  }
  if (rules_.is_hard()) take_best(block);
}

template <class T>
void BlockWorker<T>::write_scores(const RowBlock& block, T* table) {
  begin(block, false);
  const KeyRange visible = rules_.visible(block);
  for (Index r = 0; r < n_rows_; ++r) {
    T* const row =
        table + ((block.batch * plan_.n_heads + block.head(r)) * plan_.n_queries + block.query(r)) *
                    plan_.n_keys;
    std::fill_n(row, plan_.n_keys, hidden<T>);
  }
  const Index start = visible.begin / sizes_.keys * sizes_.keys;
  for (Index first = start; first < visible.end; first += sizes_.keys) {
    const Index n = std::min(sizes_.keys, visible.end - first);
    if (!score(block, first, n)) continue;
    for (Index r = 0; r < n_rows_; ++r) {
      const KeyRange seen = seen_[at(r)];
      T* const row = table + ((block.batch * plan_.n_heads + block.head(r)) * plan_.n_queries +
                              block.query(r)) *
                                 plan_.n_keys;
      std::copy(scores_.data() + r * sizes_.keys + seen.begin,
                scores_.data() + r * sizes_.keys + seen.end, row + first + seen.begin);
    }
  }
}

template BlockSizes block_sizes(const AttentionPlan<float>&, Index);
template BlockSizes block_sizes(const AttentionPlan<double>&, Index);
template class BlockWorker<float>;
template class BlockWorker<double>;

}  // namespace eckart::detail

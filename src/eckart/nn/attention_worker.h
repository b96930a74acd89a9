// One block of queries against some of the keys, in memory of its own: what one thread does of
// attention. Internal.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/core/tensor.h"
#include "eckart/nn/attention_plan.h"
#include "eckart/nn/attention_scores.h"
#include "eckart/nn/attention_simd.h"

#include <cstddef>
#include <vector>

namespace eckart::detail {

/// Up to so many rows, keys and values are read in place, once, and not packed.
inline constexpr Index few_rows = 16;

/// How many queries and keys a block has.
struct BlockSizes {
  Index rows = 0;
  Index keys = 0;
  bool is_few = false;  // keys and values are read in place
};

/// Sizes for blocks of at most `rows` rows, so that a worker's memory stays within 2 MiB.
template <class T>
BlockSizes block_sizes(const AttentionPlan<T>& plan, Index rows);

template <class T>
class BlockWorker {
 public:
  BlockWorker(const AttentionPlan<T>& plan, const ScoreRules<T>& rules, const BlockSizes& sizes);

  /// Attends from the block's queries to the keys of a range that begins at a multiple of the
  /// block's keys. A sink takes part where `has_sink`.
  void attend(const RowBlock& block, KeyRange keys, bool has_sink);
  /// What that left of a row: the reference of its powers, their sum, and the mixture times it.
  T largest(Index row) const { return largest_[static_cast<std::size_t>(row)]; }
  T sum(Index row) const { return sum_[static_cast<std::size_t>(row)]; }
  const T* mixed(Index row) const { return mixed_.data() + row * columns_; }

  /// Writes the rows' scores with all keys, of which those that are hidden become -infinity, to
  /// rows of the table.
  void write_scores(const RowBlock& block, T* table);

 private:
  void begin(const RowBlock& block, bool has_sink);
  bool score(const RowBlock& block, Index first, Index n);
  void score_packed(Index first, Index n);
  void score_few(Index first, Index n);
  // `n_next` keys follow.
  void mix(Index first, Index n, Index n_next);
  void mix_one_by_one(Index first, Index n);
  void keep_best(const RowBlock& block, Index first);
  void take_best(const RowBlock& block);

  const AttentionPlan<T>& plan_;
  const ScoreRules<T>& rules_;
  BlockSizes sizes_;
  Index columns_;  // of a row of mixed_: whole vectors
  StoredRows keys_, values_;
  std::vector<KeyRange> seen_;    // a row: what it sees of the keys at hand
  std::vector<KeyRange> groups_;  // a group: what is computed, whole panels
  std::vector<KeyRange> rows_;    // a row: the same
  std::vector<T> largest_, sum_, shrink_;
  std::vector<Index> best_;
  bool hides_ = false;  // a pair of the block at hand is hidden
  Index n_rows_ = 0, n_groups_ = 0;
  Tensor<T> queries_, packed_keys_, packed_values_, scores_, mixed_, buffer_;
};

}  // namespace eckart::detail

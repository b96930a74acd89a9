// Which keys a query sees, and what becomes of a product of both before the softmax. Internal.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/nn/attention_plan.h"
#include "eckart/nn/attention_simd.h"

namespace eckart::detail {

/// Queries that are worked on together: of some heads that share a key head, some positions. Rows
/// are numbered head by head.
struct RowBlock {
  Index batch = 0;
  Index kv_head = 0;
  Index first_head = 0, n_heads = 0;
  Index first_query = 0, n_queries = 0;

  Index rows() const { return n_heads * n_queries; }
  Index head(Index row) const { return first_head + row / n_queries; }
  Index query(Index row) const { return first_query + row % n_queries; }
};

/// Of the pairs in a block, those that mask and bias leave.
enum class Coverage { none, some, all };

/// What turns products to scores in some unit: 1, or log2 e for powers of two.
template <class T>
class ScoreRules {
 public:
  ScoreRules(const AttentionPlan<T>& plan, double unit);

  /// What queries are multiplied by beforehand.
  T query_factor() const { return query_factor_; }
  /// At temperature 0 only the largest score counts.
  bool is_hard() const { return plan_->temperature == 0; }
  /// The score of a head's sink, -infinity where it has none.
  T sink(Index head) const;
  /// The keys that causality and window leave a query.
  KeyRange visible(Index query) const;
  /// Those that any query of the block sees.
  KeyRange visible(const RowBlock& block) const;
  /// Of the block's queries and keys [first, first + n). Looks at mask and bias alone.
  Coverage coverage(const RowBlock& block, Index first, Index n) const;

  /// A row's products, made with scaled queries, become scores: those at positions `computed`,
  /// counted from the key `first`, of which the query sees `seen`; the others become -infinity.
  struct Row {
    Index batch = 0, head = 0, query = 0;
    Index first = 0;
    KeyRange computed, seen;
  };
  void finish(const Row& row, Coverage coverage, T* scores) const;

 private:
  void add_bias(const Row& row, T* scores) const;

  const AttentionPlan<T>* plan_;
  T query_factor_ = 1;
  T cap_ = 0;
  T unit_ = 1;
  T sink_factor_ = 1;
};

}  // namespace eckart::detail

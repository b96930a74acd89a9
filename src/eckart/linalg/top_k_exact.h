// Scores in double, in one order of sums, on every machine: the ones that rank.
#pragma once

#include "eckart/core/tensor_view.h"
#include "eckart/linalg/top_k.h"

#include <atomic>

namespace eckart::detail {

/// Scores one query against one item. Notes what the options call an error, which the caller
/// reports when all threads have ended.
template <class T>
class ExactScore {
 public:
  ExactScore(TensorView<const T> queries, TensorView<const T> items, const TopKOptions& options)
      : queries_(queries), items_(items), options_(options) {}

  /// Larger is nearer; NaN where there is no score.
  double key(Index query, Index item) const;
  /// The score of a key.
  double score(double key) const { return options_.metric == Metric::l2 ? -key : key; }
  /// Whether a ranks before b.
  static bool is_nearer(double key_a, Index item_a, double key_b, Index item_b) {
    const bool has_a = key_a == key_a, has_b = key_b == key_b;
    if (has_a != has_b) return has_a;
    if (has_a && key_a != key_b) return key_a > key_b;
    return item_a < item_b;
  }

  bool saw_zero() const { return saw_zero_; }
  bool saw_no_number() const { return saw_no_number_; }

 private:
  double cosine(Index query, Index item) const;
  double distance(Index query, Index item) const;

  TensorView<const T> queries_;
  TensorView<const T> items_;
  const TopKOptions& options_;
  mutable std::atomic<bool> saw_zero_ = false;
  mutable std::atomic<bool> saw_no_number_ = false;
};

}  // namespace eckart::detail

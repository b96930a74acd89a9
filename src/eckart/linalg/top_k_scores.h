// Scores of tiles of items against blocks of queries, with bounds of their errors.
#pragma once

#include "eckart/blas/bf16_tiles.h"
#include "eckart/core/tensor.h"
#include "eckart/linalg/top_k.h"
#include "eckart/linalg/top_k_simd.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace eckart::detail {

/// How many items a thread scores at a time, and how many of them against many queries as a
/// product of matrices.
constexpr Index streamed_queries = 16;

/// Queries as they are scored: rows without gaps, under Metric::l2 with many queries shifted by
/// `shift` (a vector near all items, empty where there is none), which changes no distance and
/// keeps the terms of the products as small as the distances.
template <class T>
struct Block {
  Metric metric = Metric::dot;
  bool streamed = false;
  Tensor<T> queries;      // n x d
  std::vector<T> shift;   // d or empty
  std::vector<T> errors;  // n: what a weight of 1 adds to the error of a score
  /// Where the machine has tiles: the queries rounded to bf16. Scores are then some ten times as
  /// fast and as many thousand times less sure, which leaves some ten candidates more a query.
  std::optional<blas::TileRows> rounded;
};
template <class T>
Block<T> block_of(TensorView<const T> queries, const std::vector<T>& shift, Metric metric,
                  bool streamed);

/// A vector near the middle of the items: the mean of some of them.
template <class T>
std::vector<T> middle_of(TensorView<const T> items);

/// Scores of one tile. The value of score s of item j, which is larger the nearer the item is, lies
/// between s lower_factor[j] + lower_term[j] - e weight[j] and s upper_factor[j] + upper_term[j] +
/// e weight[j], with e the error of its query.
template <class T>
class TileScores {
 public:
  TileScores(const Block<T>& block, Index most_items);

  /// Scores the items (at most `most_items`) against all queries of the block.
  void score(TensorView<const T> items);

  UpperBounds<T> upper_bounds(Index query) const;
  T upper(Index query, Index item) const;
  T lower(Index query, Index item) const;

 private:
  Rows<T> rows_of(TensorView<const T> items);
  void multiply(const Rows<T>& rows);
  T excess_rounding(std::size_t item, T norm) const;
  void fill_bounds(Index n);

  const Block<T>& block_;
  Index capacity_;
  Index n_ = 0;
  Tensor<T> scores_;                       // queries x capacity
  std::optional<blas::TileRows> rounded_;  // items
  bool is_rounded_ = false;                // the scores are of rounded vectors
  Tensor<T> copied_;  // items shifted, or without the gaps that BLAS does not take
  std::vector<T> squares_;
  std::vector<T> lower_factor_, upper_factor_, lower_term_, upper_term_, weight_;
};

}  // namespace eckart::detail

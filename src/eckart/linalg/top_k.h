// The nearest neighbours of each query: exact, by scoring all items.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/vectors.h"

namespace eckart {

/// What "near" means. On vectors of length 1 the three rank alike.
enum class Metric {
  dot,     // score: the dot product; larger is nearer
  cosine,  // score: the dot product over both lengths; larger is nearer
  l2,      // score: the Euclidean distance; smaller is nearer
};

/// What becomes of NaN and infinity in queries or items.
enum class NanScores {
  error,  // throws ArgumentError with the position
  last    // scores follow IEEE arithmetic, and NaN stands behind every number
};

struct TopKOptions {
  Index k = 10;  // 1 to the number of items
  Metric metric = Metric::dot;
  ZeroVector zero_vector = ZeroVector::error;
  NanScores nan = NanScores::error;
};

template <class T>
struct TopK {
  Tensor<Index> indices;  // n_queries x k (query, neighbor): rows of items, the nearest first
  Tensor<T> scores;       // n_queries x k
};

/// The k rows of items (n_items x d) nearest to each row of queries (n_queries x d). Neighbours are
/// those of double precision: scores in T select candidates within a bound of their error
/// (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1), and scores in double rank them.
/// Equal scores (in double) are ranked by index, the lower first.
/// Result: indices and scores, n_queries x k, the same for any number of threads.
/// Cost: 2 n_queries n_items d FLOPs; up to 16 queries one pass over items in memory. Memory: some
/// MiB a thread, and 16 k bytes a query and thread.
/// Accuracy: scores are those of double, rounded to T; distances do not suffer from an offset.
/// Throws ShapeError unless both are matrices of as many columns; ArgumentError when k is not from
/// 1 to n_items, for a vector of length 0, NaN or infinity, as the options say.
/// T is float or double.
template <class T>
TopK<T> top_k(TensorView<const T> queries, TensorView<const T> items,
              const TopKOptions& options = {});
template <class T>
TopK<T> top_k(const Tensor<T>& queries, const Tensor<T>& items, const TopKOptions& options = {}) {
  return top_k(queries.view(), items.view(), options);
}

}  // namespace eckart

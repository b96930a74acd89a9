// What adapters make of rows of one stored matrix: base + delta, in float or in double.
// Included by the library alone.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/lora/merge_plan.h"

#include <cstddef>
#include <vector>

namespace eckart {

/// Rows of one of a tensor's matrices.
struct RowRange {
  Index matrix = 0;  // which one: of experts, the expert
  Index first = 0;
  Index n = 0;
};

/// Reads the base's rows (or the saved ones) as they are stored, widened to T, into `out`.
template <class T>
void read_rows(const MergeSources& sources, const PlannedTensor& tensor, const RowRange& range,
               T* out);

/// The factors of all deltas of a tensor side by side, scales and weights multiplied in, so that
/// the delta of a matrix is left right. T is float (the merge) or double (its verification).
template <class T>
class MatrixUpdate {
 public:
  /// Loads the factors; for DoRA, whose magnitudes are of whole rows, it passes over the base once, on
  /// all threads. Memory: the factors, for T = double twice. Throws ArgumentError where DoRA would
  /// divide by the norm of zeros.
  MatrixUpdate(const MergeSources& sources, const PlannedTensor& tensor);

  bool is_empty() const { return factors_.empty(); }
  /// Of a matrix: left, rows x rank, and the transposed right one, columns x rank; without DoRA the
  /// delta is their product.
  const Tensor<T>& left(Index matrix) const {
    return factors_[static_cast<std::size_t>(matrix)].left;
  }
  const Tensor<T>& right_t(Index matrix) const {
    return factors_[static_cast<std::size_t>(matrix)].right_t;
  }
  /// From the base's rows to those that are wanted, and the difference that the adapters mean.
  /// All are range.n x columns. Called on several threads.
  void apply(const RowRange& range, const T* base, T* wanted, T* delta) const;
  Index rank() const { return factors_.empty() ? 0 : factors_.front().left.size(1); }
  /// For each row of a matrix sum_k |left_ik| max_j |right_kj|: no product has larger terms.
  std::vector<double> magnitudes(Index matrix) const;
  /// The most that DoRA multiplies by, and at least 1.
  double largest_dora() const;
  bool is_dora() const { return !dora_.empty(); }

 private:
  struct Factors {
    Tensor<T> left;     // rows x rank
    Tensor<T> right_t;  // columns x rank
  };

  void add_factors(const MergeSources& sources, const PlannedTensor& tensor);
  void load_magnitudes(const MergeSources& sources, const PlannedTensor& tensor);
  std::vector<double> output_squares(const MergeSources& sources,
                                     const PlannedTensor& tensor) const;
  void multiply(const RowRange& range, T* delta) const;

  Index columns_ = 0;
  std::vector<Factors> factors_;  // one a matrix
  std::vector<T> dora_;           // one an output
  bool is_dora_by_column_ = false;
};

}  // namespace eckart

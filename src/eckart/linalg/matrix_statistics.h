// What one pass over a matrix tells: norms, the largest entry, rows and columns that stand out, and
// entries that are no numbers.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

#include <functional>
#include <optional>
#include <vector>

namespace eckart {

struct MatrixPosition {
  Index row = 0;
  Index column = 0;

  friend bool operator==(const MatrixPosition& a, const MatrixPosition& b) = default;
};

/// Norms are over the finite entries: NaN and infinities are counted, not summed.
struct MatrixStatistics {
  Shape shape;
  double frobenius_norm = 0;
  /// The largest absolute value and its first position in row-major order; nothing when the matrix
  /// has no finite entry.
  double largest = 0;
  std::optional<MatrixPosition> largest_at;
  Tensor<double> row_norms;     // one a row, 2-norm
  Tensor<double> column_norms;  // one a column
  /// A row or column stands out when its norm is above median + max(6 x 1.4826 MAD, median / 100),
  /// where MAD is the median of |norm - median| (1.4826 MAD estimates the standard deviation of
  /// normally distributed norms, however large the outliers are).
  double row_threshold = 0;
  double column_threshold = 0;
  std::vector<Index> outlier_rows;  // ascending
  std::vector<Index> outlier_columns;
  Index n_nan = 0;
  Index n_infinite = 0;
  std::optional<MatrixPosition> first_nan;
  std::optional<MatrixPosition> first_infinite;

  bool is_finite() const { return n_nan + n_infinite == 0; }
};

/// Statistics of a matrix (m x n, any strides, NaN and infinities allowed; T is float or double).
/// Cost: one pass at 4 FLOPs an element, m + n numbers of result. Sums are in double, in an order
/// that depends on the shape alone. Norms don't overflow: a double matrix with entries beyond
/// 1e+-140 is passed over twice, scaled (columns below 1e-150 of the largest entry then count as 0).
/// Throws ShapeError when `a` has not two axes.
template <class T>
MatrixStatistics matrix_statistics(TensorView<const T> a);
template <class T>
MatrixStatistics matrix_statistics(const Tensor<T>& a) {
  return matrix_statistics<T>(a.view());
}

/// Writes rows first, first + 1, … first + count - 1 of a matrix to `rows`, one behind the other.
/// Called from several threads.
template <class T>
using RowReader = std::function<void(Index first, Index count, T* rows)>;

/// The same of a matrix that is read in blocks of rows, each once (twice where `matrix_statistics`
/// passes twice), so that the whole need not be in memory. `shape` has two axes.
template <class T>
MatrixStatistics streamed_matrix_statistics(const Shape& shape, const RowReader<T>& read);

}  // namespace eckart

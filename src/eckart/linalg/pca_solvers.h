// The solvers of PCA: each finds the leading directions of centred and scaled rows.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/pca.h"

namespace eckart::detail {

/// Mean and variance (divided by n - 1) of every column.
struct ColumnStatistics {
  Tensor<double> mean;
  Tensor<double> variance;
};
template <class T>
ColumnStatistics column_statistics(TensorView<const T> x);
ColumnStatistics column_statistics(const PcaState& state);

/// Leading eigenvalues of the covariance, descending, and their vectors.
struct PcaBasis {
  Tensor<double> values;   // k
  Tensor<double> vectors;  // k x d, rows
  bool converged = true;
  Index iterations = 0;
  double residual = 0;
};

/// How many components to find: k, or where k is 0 as many as hold `share` of `total`, else all.
struct PcaCount {
  Index k = 0;
  double share = 0;
  double total = 0;
  Index limit = 0;

  /// k itself, from all eigenvalues (descending).
  Index of(const Tensor<double>& values) const;
};

/// `divisor` is d, or empty where the columns keep their scale.
PcaBasis basis_of_covariance(const PcaState& state, const Tensor<double>& divisor,
                             const PcaCount& count);
template <class T>
PcaBasis basis_of_svd(TensorView<const T> x, const Tensor<double>& mean,
                      const Tensor<double>& divisor, const PcaCount& count);
/// `count.k` is above 0.
template <class T>
PcaBasis basis_of_subspace(TensorView<const T> x, const Tensor<double>& mean,
                           const Tensor<double>& divisor, const PcaOptions& options);

/// to (n x d, row-major, without gaps) := (x - mean) / divisor, computed in double.
template <class T, class U>
void centred_rows(TensorView<const T> x, const Tensor<double>& mean, const Tensor<double>& divisor,
                  U* to);

}  // namespace eckart::detail

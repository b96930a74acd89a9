// Principal component analysis: the directions in which rows differ most.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/pca_state.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// How the components are found. `automatic` chooses by the shape.
enum class PcaSolver {
  automatic,
  covariance,  // eigenvectors of the d x d covariance: n d^2 FLOPs, for n >= d
  svd,         // singular vectors of the centred rows: for n < d
  randomized,  // subspace iteration on the centred rows: for a small k of a very large d
};
std::string_view to_string(PcaSolver solver);

/// What the columns are divided by before the components are found.
enum class PcaScale {
  none,
  standard,  // their standard deviations; a constant column stays as it is
};

struct PcaOptions {
  /// Number of components, at most min(n, d). 0: as many as `share` asks for, else all.
  Index k = 0;
  /// As many components as hold this share of the variance, above 0 and at most 1. 0: as `k` says.
  double share = 0;
  PcaScale scale = PcaScale::none;
  /// Scores are divided by their standard deviations, so that each has variance 1.
  bool whiten = false;
  PcaSolver solver = PcaSolver::automatic;
  /// Of the randomized solver.
  std::uint64_t seed = 0;
};

/// A fitted model. The sign of a component is such that its largest element in absolute value (the
/// first of them) is positive. Variances are divided by n - 1.
template <class T>
struct Pca {
  Tensor<double> mean;                      // d (feature), of the training set
  Tensor<double> scale;                     // d (feature); empty when nothing was scaled
  Tensor<T> components;                     // k x d (component, feature), orthonormal rows
  Tensor<double> explained_variance;        // k, descending
  Tensor<double> explained_variance_ratio;  // k, of the variance of all columns
  double total_variance = 0;                // of all columns, once scaled
  Index n_samples = 0;
  bool whiten = false;
  /// Components with a variance above rounding: the others can't be whitened, and their whitened
  /// scores are 0.
  Index rank = 0;
  PcaSolver solver = PcaSolver::automatic;  // the one that was used
  PcaProducts products = PcaProducts::in_double;
  bool converged = true;              // of the randomized solver, as are the next two
  Index iterations = 0;               // passes over x
  double residual = 0;                // largest |C v - lambda v| over lambda_1, C the covariance
  std::vector<std::string> warnings;  // what a reader of the result should know
};

/// Fits the components of the rows of x (n x d, n >= 2).
/// Result: the model of `options.k` components.
/// Cost: covariance n d^2 + d^3, svd n^2 d (n < d), randomized about 60 n d k FLOPs; memory 8 d^2,
/// 24 n d or 8 (n + d) k bytes. Automatic: svd for n < d, covariance for n >= d, and randomized
/// where min(n, d) > 1024, d > 16384 and k is at most an eighth of both.
/// Accuracy: eigenvalues to 1e-6 relative (products of floats only where they reach that, else
/// double), whatever the offsets of the columns; from double input or few rows to about 1e-15 of
/// the largest. The randomized solver says in `converged` whether it reached 1e-6.
/// Reference: Jolliffe, "Principal Component Analysis", 2002; Halko, Martinsson, Tropp, 2011.
/// Throws ShapeError unless x is a matrix with elements; ArgumentError for one row, a k above
/// min(n, d), a share outside (0, 1], both of them at once, and NaN or infinity, with its position.
/// T is float or double.
template <class T>
Pca<T> pca(TensorView<const T> x, const PcaOptions& options = {});
template <class T>
Pca<T> pca(const Tensor<T>& x, const PcaOptions& options = {}) {
  return pca(x.view(), options);
}

/// The same from collected rows, by the covariance solver.
template <class T>
Pca<T> pca(const PcaState& state, const PcaOptions& options = {});

/// The scores of rows x (n x d): ((x - mean) / scale) components^T, whitened where the model says.
/// Result: n x k (row axis of x, component). Cost: 2 n d k FLOPs.
/// Throws ShapeError when x has another number of columns than the model.
template <class T>
Tensor<T> transform(const Pca<T>& model, TensorView<const T> x);
template <class T>
Tensor<T> transform(const Pca<T>& model, const Tensor<T>& x) {
  return transform(model, x.view());
}

/// The rows that have the scores z (n x k): n x d, the nearest to the transformed ones that k
/// components can express. Cost: 2 n d k FLOPs.
/// Throws ShapeError when z has another number of columns than the model has components.
template <class T>
Tensor<T> inverse_transform(const Pca<T>& model, TensorView<const T> z);
template <class T>
Tensor<T> inverse_transform(const Pca<T>& model, const Tensor<T>& z) {
  return inverse_transform(model, z.view());
}

/// How many of the leading components hold `share` (above 0, at most 1) of the variance, given
/// `explained_variance_ratio`. Throws ArgumentError when all of them together don't.
Index components_for_share(TensorView<const double> ratios, double share);
inline Index components_for_share(const Tensor<double>& ratios, double share) {
  return components_for_share(ratios.view(), share);
}

}  // namespace eckart

// What a spectrum would be if the matrix were noise, and what stands above it.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

#include <optional>

namespace eckart {

/// The singular values of an m x n matrix of independent entries with standard deviation `noise`
/// fill, for large m and n, the range between noise (sqrt(m) - sqrt(n)) and noise (sqrt(m) +
/// sqrt(n)) (Marchenko, Pastur 1967). WeightWatcher fits the edge to a kernel density by a grid
/// search; here `noise` comes from the median, which values above the edge hardly move.
struct MarchenkoPastur {
  double noise = 0;       // estimated standard deviation of an entry without the values above
  double lower_edge = 0;  // of the bulk, as singular values
  double upper_edge = 0;
  Index n_above = 0;  // singular values above the upper edge
  /// The largest value of pure noise lies below this with 99% probability: the upper edge of a
  /// finite matrix and 2.0234 standard units of Tracy and Widom's law of order 1 (Johnstone 2001).
  double spike_threshold = 0;
  Index n_spikes = 0;  // singular values above the threshold
};

/// Estimates the bulk of a matrix of this shape (m x n) from its singular values (min(m, n) of them,
/// descending). noise = median / sqrt(max(m, n) mu), where mu is the median of the
/// Marchenko-Pastur law (Gavish, Donoho, "The optimal hard threshold for singular values is 4 /
/// sqrt(3)", 2014, section III.E). Nothing when the median is 0: there is no noise to be seen.
/// Throws ShapeError when the number of values is not min(m, n).
std::optional<MarchenkoPastur> marchenko_pastur(const Shape& shape,
                                                TensorView<const double> singular_values);

/// The median of the Marchenko-Pastur law of the ratio beta = min(m, n) / max(m, n), in (0, 1], for
/// eigenvalues of A^T A / max(m, n) and unit variance: 1 as beta goes to 0, 0.6528 at 1. To 1e-9.
/// Throws ArgumentError when beta is not in (0, 1].
double marchenko_pastur_median(double beta);

}  // namespace eckart

// The spectrum of a matrix and the figures that are read off it.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/estimate.h"
#include "eckart/linalg/marchenko_pastur.h"
#include "eckart/linalg/matrix_statistics.h"
#include "eckart/linalg/power_law.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eckart {

struct SpectrumOptions {
  /// All singular values; else only where there are at most `exact_limit`, and estimates beyond.
  bool exact = false;
  Index exact_limit = 512;
  Index top = 10;  // how many of the largest singular values to list
  /// Of the power law's goodness of fit: samples for its p-value, 0 for none.
  Index bootstrap = 0;
  std::uint64_t seed = 0;
  /// Of the estimates (see spectral_density.h).
  Index probes = 32;
  Index steps = 12;
};

/// The shares of the energy that `energy_ranks` are for.
inline constexpr std::array<double, 3> energy_shares = {0.5, 0.9, 0.99};

/// A histogram of the singular values: bin i holds those of [edges(i), edges(i + 1)).
struct SpectralDensity {
  Tensor<double> edges;          // bins + 1, from 0 to the largest singular value
  std::vector<Estimate> counts;  // one a bin
};

/// Figures of the singular values sigma_1 >= sigma_2 >= … of an m x n matrix. Each has the error it
/// may be off by, 0 where it was computed from all singular values. What has no value is absent: all
/// of them when an entry is no number, ratios to sigma_1 of a zero matrix.
struct Spectrum {
  Shape shape;
  bool is_exact = false;  // from all singular values
  std::string method;     // what computed them
  Index passes = 0;       // multiplications by A or A^T with a block of vectors; 0 when exact
  /// Norms, the largest entry, outlier rows and columns, and where NaN or an infinity stands first.
  MatrixStatistics statistics;
  double frobenius_norm = 0;              // ||A||_F; NaN where an entry is no finite number
  std::optional<Estimate> spectral_norm;  // sigma_1. WeightWatcher calls sigma_1^2 so
  std::optional<Estimate> stable_rank;    // ||A||_F^2 / sigma_1^2
  /// exp(H(p)), p_i = sigma_i / sum sigma (Roy, Vetterli 2007). WeightWatcher's `entropy` has p_i =
  /// lambda_i / sum lambda and divides H by ln(rank).
  std::optional<Estimate> effective_rank;
  /// Singular values above max(m, n) eps sigma_1, eps of the type computed in, as NumPy and
  /// WeightWatcher have it. An estimate can't tell values below 1e-3 sigma_1 from 0: they are its
  /// error.
  std::optional<Estimate> numerical_rank;
  /// The fewest singular values that hold 50%, 90% and 99% of ||A||_F^2.
  std::optional<std::array<Estimate, energy_shares.size()>> energy_ranks;
  std::vector<Estimate> top;          // the largest singular values, descending
  std::optional<PowerLaw> power_law;  // of at least 10 values
  double alpha_error = 0;  // of power_law->alpha against that of all values; 0 when exact
  std::optional<MarchenkoPastur> marchenko_pastur;
  double noise_error = 0;    // of marchenko_pastur->noise, and of its edges in the same proportion
  double n_above_error = 0;  // of marchenko_pastur->n_above and n_spikes
  std::optional<SpectralDensity> density;
  /// All min(m, n) singular values, descending; as the quadrature sees them when not exact.
  Tensor<double> values = Tensor<double>(Shape{0});
  /// Values of an exact spectrum below this are rounding errors, and how many there are. About 3e-7
  /// sigma_1 where the values come from A^T A.
  double floor = 0;
  Index n_below_floor = 0;
};

/// The spectrum of a matrix (m x n, any strides; T is float or double).
/// Cost: one pass for the statistics, then all singular values (see singular_values.h), or 2 steps
/// passes with `probes` vectors: 24, 25 in all. The same for every number of threads.
/// Accuracy: an estimate's interval holds the exact value in 95% of cases.
/// Throws ShapeError when `a` has not two axes, ArgumentError for options out of range.
template <class T>
Spectrum spectrum(TensorView<const T> a, const SpectrumOptions& options = {});
template <class T>
Spectrum spectrum(const Tensor<T>& a, const SpectrumOptions& options = {}) {
  return spectrum<T>(a.view(), options);
}

}  // namespace eckart

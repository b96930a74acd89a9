// The figures of a list of singular values. Included by the library alone.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/spectrum.h"

#include <cstdint>
#include <vector>

namespace eckart::detail {

inline constexpr Index n_density_bins = 64;

/// What figures depend on beside the singular values.
struct FigureContext {
  Shape shape;
  /// What energy ranks are shares of, in squares of the spectral norm; 0: that of the values.
  double energy = 0;
  double spectral_norm = 0;   // above 0
  double rank_tolerance = 0;  // values above it count in the numerical rank
  double floor = 0;           // values below are no data for a power law
  Index bootstrap = 0;        // of the power law's p-value
  std::uint64_t seed = 0;
};

/// In this order: effective rank, numerical rank, energy ranks (not yet rounded up), alpha, noise,
/// values above the edge, spikes, the density's bins. What has no value is 0.
std::vector<double> figures_of(TensorView<const double> values, const FigureContext& context);

/// Writes estimates, in the order of `figures_of`, into the spectrum. `values` must be set.
void set_figures(const std::vector<Estimate>& figures, const FigureContext& context,
                 Spectrum& spectrum);

}  // namespace eckart::detail

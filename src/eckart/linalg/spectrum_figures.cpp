#include "eckart/linalg/spectrum_figures.h"

#include <algorithm>
#include <cmath>

namespace eckart::detail {
namespace {

double effective_rank(TensorView<const double> values) {
  double sum = 0;
  for (Index i = 0; i < values.count(); ++i) sum += values(i);
  if (!(sum > 0)) return 0;
  double entropy = 0;
  for (Index i = 0; i < values.count(); ++i) {
    const double share = values(i) / sum;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

// Of the sum of these squares, so that it ends with the last value. A share that is met up to
// rounding is met: of n equal values, n / 2 hold half.
double energy_rank(TensorView<const double> values, double share) {
  double whole = 0;
  for (Index i = values.count() - 1; i >= 0; --i) whole += values(i) * values(i);
  const double wanted = share * whole * (1 - 1e-12);
  double sum = 0;
  for (Index i = 0; i < values.count(); ++i) {
    sum += values(i) * values(i);
    if (sum >= wanted) return static_cast<double>(i + 1);
  }
  return static_cast<double>(values.count());
}

std::vector<double> bins_of(TensorView<const double> values, double largest) {
  std::vector<double> counts(static_cast<std::size_t>(n_density_bins), 0.0);
  for (Index i = 0; i < values.count(); ++i) {
    const double bin = std::floor(values(i) / largest * static_cast<double>(n_density_bins));
    counts[static_cast<std::size_t>(
        std::clamp(bin, 0.0, static_cast<double>(n_density_bins - 1)))] += 1;
  }
  return counts;
}

}  // namespace

std::vector<double> figures_of(TensorView<const double> values, const FigureContext& context) {
  std::vector<double> figures;
  figures.push_back(effective_rank(values));
  double rank = 0;
  for (Index i = 0; i < values.count(); ++i) rank += values(i) > context.rank_tolerance ? 1 : 0;
  figures.push_back(rank);
  for (const double share : energy_shares) figures.push_back(energy_rank(values, share));
  const auto law = power_law(values, {.floor = context.floor});
  figures.push_back(law ? law->alpha : 0);
  const auto bulk = marchenko_pastur(context.shape, values);
  figures.push_back(bulk ? bulk->noise : 0);
  figures.push_back(bulk ? static_cast<double>(bulk->n_above) : 0);
  figures.push_back(bulk ? static_cast<double>(bulk->n_spikes) : 0);
  const std::vector<double> bins = bins_of(values, context.spectral_norm);
  figures.insert(figures.end(), bins.begin(), bins.end());
  return figures;
}

void set_figures(const std::vector<Estimate>& figures, const FigureContext& context,
                 Spectrum& spectrum) {
  auto next = figures.begin();
  spectrum.effective_rank = *next++;
  spectrum.numerical_rank = *next++;
  spectrum.energy_ranks.emplace();
  for (Estimate& rank : *spectrum.energy_ranks) rank = *next++;
  spectrum.power_law = power_law(spectrum.values, {.floor = context.floor});
  spectrum.alpha_error = (next++)->error;
  spectrum.marchenko_pastur = marchenko_pastur(context.shape, spectrum.values);
  spectrum.noise_error = (next++)->error;
  const double above = (next++)->error, spikes = (next++)->error;
  spectrum.n_above_error = std::max(above, spikes);
  SpectralDensity density{.edges = Tensor<double>(Shape{n_density_bins + 1}), .counts = {}};
  for (Index i = 0; i <= n_density_bins; ++i) {
    density.edges(i) =
        context.spectral_norm * static_cast<double>(i) / static_cast<double>(n_density_bins);
  }
  density.counts.assign(next, figures.end());
  spectrum.density = std::move(density);
}

}  // namespace eckart::detail

#include "eckart/linalg/spectrum_figures.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace eckart::detail {
namespace {

constexpr Index least_law_values = 10;

double effective_rank(TensorView<const double> values) {
  const double largest = values.count() > 0 ? values(0) : 0;
  if (!(largest > 0)) return 0;
  // Of parts of the largest, whose sum doesn't overflow.
  double sum = 0;
  for (Index i = 0; i < values.count(); ++i) sum += values(i) / largest;
  double entropy = 0;
  for (Index i = 0; i < values.count(); ++i) {
    const double share = values(i) / largest / sum;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

// How many values hold the share of the sum of squares, the last one in part: a figure that moves
// with the values, unlike the whole number above it. A share that is met up to rounding is met: of n
// equal values, n / 2 hold half.
// Squares, and `energy`, are of values in the unit of `largest`, so that none overflows.
double energy_rank(TensorView<const double> values, double largest, double energy) {
  const double wanted = energy * (1 - 1e-12);
  double sum = 0;
  for (Index i = 0; i < values.count(); ++i) {
    const double square = values(i) / largest * (values(i) / largest);
    if (sum + square >= wanted) return static_cast<double>(i) + (wanted - sum) / square;
    sum += square;
  }
  return static_cast<double>(values.count());
}

// A line through a handful of values says nothing of a law.
std::optional<PowerLaw> law_of(TensorView<const double> values, const PowerLawOptions& options) {
  if (values.count() < least_law_values) return std::nullopt;
  return power_law(values, options);
}

// What lies below is rounding, which follows no law of the matrix.
double resolved_above(const FigureContext& context) {
  return std::max(context.floor, context.rank_tolerance);
}

// The noise is read off the median: there is none where that is rounding.
std::optional<MarchenkoPastur> bulk_of(TensorView<const double> values,
                                       const FigureContext& context) {
  const Index n = values.count();
  if (n == 0 || !(values(n / 2) > context.rank_tolerance)) return std::nullopt;
  return marchenko_pastur(context.shape, values);
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
  const double unit = context.spectral_norm;
  double energy = context.energy;
  if (energy == 0) {
    for (Index i = values.count() - 1; i >= 0; --i) energy += values(i) / unit * (values(i) / unit);
  }
  for (const double share : energy_shares) {
    figures.push_back(energy_rank(values, unit, share * energy));
  }
  const auto law = law_of(values, {.floor = resolved_above(context)});
  figures.push_back(law ? law->alpha : 0);
  const auto bulk = bulk_of(values, context);
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
  for (Estimate& rank : *spectrum.energy_ranks) {
    rank = *next++;
    rank.value = std::ceil(rank.value);
  }
  spectrum.power_law = power_law(
      spectrum.values,
      {.floor = resolved_above(context), .bootstrap = context.bootstrap, .seed = context.seed});
  const double alpha_error = (next++)->error;
  // Where the tail begins may jump: the fit's own error stands for that. Single values, such as xmin
  // and the median, are off by more than sums, whose parts make up for each other: twice as much in
  // trials.
  if (alpha_error > 0 && spectrum.power_law) {
    spectrum.alpha_error = 2 * (alpha_error + spectrum.power_law->standard_error);
  }
  spectrum.marchenko_pastur = bulk_of(spectrum.values, context);
  spectrum.noise_error = 2 * (next++)->error;
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

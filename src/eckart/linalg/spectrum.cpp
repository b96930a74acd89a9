#include "eckart/linalg/spectrum.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/singular_values.h"
#include "eckart/linalg/spectral_density.h"
#include "eckart/linalg/spectrum_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace eckart {
namespace {

using detail::FigureContext;

// What the products of an estimate can't tell from 0, as a part of the largest singular value.
constexpr double estimate_floor = 1e-3;
// Random vectors beside those for the wanted values: as in any subspace iteration, the last wanted
// ones need company.
constexpr Index spare_probes = 8;

// ||A||_F^2 / sigma_1^2, whose squares alone may leave double's range.
double stable_rank_of(double frobenius_norm, double spectral_norm) {
  return frobenius_norm / spectral_norm * (frobenius_norm / spectral_norm);
}

template <class T>
FigureContext context_of(const Spectrum& spectrum, double spectral_norm,
                         const SpectrumOptions& options) {
  const auto longer = static_cast<double>(std::max(spectrum.shape.size(0), spectrum.shape.size(1)));
  return {.shape = spectrum.shape,
          .energy = spectrum.is_exact ? 0 : stable_rank_of(spectrum.frobenius_norm, spectral_norm),
          .spectral_norm = spectral_norm,
          .rank_tolerance =
              longer * static_cast<double>(std::numeric_limits<T>::epsilon()) * spectral_norm,
          .floor = spectrum.floor,
          .bootstrap = options.bootstrap,
          .seed = options.seed};
}

// Figures of a matrix without a value above 0, so far as there are any.
void set_zero(Spectrum& spectrum, Index top) {
  const Index n = std::min(spectrum.shape.size(0), spectrum.shape.size(1));
  spectrum.is_exact = true;
  spectrum.method = "every entry is 0";
  spectrum.values = Tensor<double>(Shape{n});
  spectrum.top.assign(static_cast<std::size_t>(std::min(top, n)), Estimate{});
  spectrum.spectral_norm = Estimate{};
  spectrum.numerical_rank = Estimate{};
}

void set_norms(Spectrum& spectrum, Estimate spectral_norm) {
  spectrum.spectral_norm = spectral_norm;
  const double value = stable_rank_of(spectrum.frobenius_norm, spectral_norm.value);
  const double least =
      stable_rank_of(spectrum.frobenius_norm, spectral_norm.value + spectral_norm.error);
  spectrum.stable_rank = {.value = value, .error = value - least};
}

template <class T>
void set_exact(TensorView<const T> a, const SpectrumOptions& options, Spectrum& spectrum) {
  SingularValues computed = singular_values(a);
  spectrum.is_exact = true;
  spectrum.method = std::move(computed.method);
  spectrum.values = std::move(computed.values);
  spectrum.floor = computed.floor;
  const Index n = spectrum.values.count();
  for (Index i = 0; i < n; ++i) spectrum.n_below_floor += spectrum.values(i) < spectrum.floor;
  for (Index i = 0; i < std::min(options.top, n); ++i)
    spectrum.top.push_back({spectrum.values(i), 0});
  set_norms(spectrum, {spectrum.values(0), 0});
  const FigureContext context = context_of<T>(spectrum, spectrum.values(0), options);
  std::vector<Estimate> figures;
  for (const double value : detail::figures_of(spectrum.values, context)) {
    figures.push_back({value, 0});
  }
  detail::set_figures(figures, context, spectrum);
}

// A count that was estimated is off by what is near its border and by rounding to a whole number.
void round_counts(const FigureContext& context, Spectrum& spectrum) {
  const auto whole = [](Estimate& count) {
    if (count.error > 0) count.error += 1;
  };
  whole(*spectrum.numerical_rank);
  double unresolved = 0;
  for (Index i = 0; i < spectrum.values.count(); ++i) {
    unresolved += spectrum.values(i) <= estimate_floor * context.spectral_norm ? 1 : 0;
  }
  spectrum.numerical_rank->error += unresolved;
  for (Estimate& rank : *spectrum.energy_ranks) whole(rank);
  for (Estimate& count : spectrum.density->counts) whole(count);
  if (spectrum.n_above_error > 0) spectrum.n_above_error += 1;
}

template <class T>
void set_estimated(TensorView<const T> a, Index probes, const SpectrumOptions& options,
                   Spectrum& spectrum) {
  const SpectralQuadrature quadrature =
      spectral_quadrature<T>(MatrixOperator<T>(a), {.frobenius_norm = spectrum.frobenius_norm,
                                                    .probes = probes,
                                                    .steps = options.steps,
                                                    .seed = options.seed});
  spectrum.method = "stochastic Lanczos quadrature, " + std::to_string(probes) + " probes, " +
                    std::to_string(quadrature.passes) + " passes";
  spectrum.passes = quadrature.passes;
  spectrum.top = largest_singular_values(quadrature, options.top);
  set_norms(spectrum, largest_singular_values(quadrature, 1).front());
  spectrum.values = estimated_singular_values(quadrature);
  // No data for a power law, but counted by the numerical rank (see round_counts).
  spectrum.floor = 0;
  FigureContext context = context_of<T>(spectrum, spectrum.spectral_norm->value, options);
  context.floor = estimate_floor * context.spectral_norm;
  detail::set_figures(estimate_figures(quadrature,
                                       [&](TensorView<const double> values) {
                                         return detail::figures_of(values, context);
                                       }),
                      context, spectrum);
  round_counts(context, spectrum);
}

void check(const Shape& shape, const SpectrumOptions& options) {
  check_matrix("spectrum", "a", shape);
  if (options.top < 0 || options.bootstrap < 0 || options.exact_limit < 0) {
    throw_argument_error("spectrum: top is " + std::to_string(options.top) + ", bootstrap " +
                         std::to_string(options.bootstrap) + " and exact_limit " +
                         std::to_string(options.exact_limit) + ", but none may be negative");
  }
  if (options.probes < 2 || options.steps < 1) {
    throw_argument_error("spectrum: " + counted(options.probes, "probe") + " and " +
                         counted(options.steps, "step") +
                         ", but it takes at least 2 probes and 1 step");
  }
}

}  // namespace

template <class T>
Spectrum spectrum(TensorView<const T> a, const SpectrumOptions& options) {
  check(a.shape(), options);
  Spectrum result;
  result.shape = a.shape();
  result.statistics = matrix_statistics(a);
  result.frobenius_norm = result.statistics.frobenius_norm;
  if (!result.statistics.is_finite()) {
    result.frobenius_norm = std::numeric_limits<double>::quiet_NaN();
    result.method = "none: an entry is no finite number";
    return result;
  }
  if (!(result.frobenius_norm > 0)) {
    set_zero(result, options.top);
    return result;
  }
  const Index n = std::min(a.size(0), a.size(1));
  const Index probes = std::max(options.probes, options.top + spare_probes);
  // Where the vectors would span half of the space, all values cost no more.
  const bool is_small = n <= options.exact_limit || 2 * probes * options.steps >= n;
  if (options.exact || is_small) {
    set_exact(a, options, result);
  } else {
    set_estimated(a, probes, options, result);
  }
  return result;
}

template Spectrum spectrum(TensorView<const float>, const SpectrumOptions&);
template Spectrum spectrum(TensorView<const double>, const SpectrumOptions&);

}  // namespace eckart

#include "eckart/linalg/marchenko_pastur.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace eckart {
namespace {

constexpr double tracy_widom_99 = 2.0234;  // the 99% point of the law of order 1

// The law's density over the angle t, with lambda = 1 + beta - 2 sqrt(beta) cos(t): smooth, unlike
// the density over lambda, which has roots at both edges.
double density(double beta, double t) {
  const double sine = std::sin(t);
  if (sine == 0 || t <= 0) return beta == 1 && t <= 0 ? 2 / std::numbers::pi : 0;
  const double lambda = 1 + beta - 2 * std::sqrt(beta) * std::cos(t);
  return 2 / std::numbers::pi * sine * sine / lambda;
}

double singular_value_edge(double noise, Index m, Index n, int sign) {
  return noise *
         std::abs(std::sqrt(static_cast<double>(m)) + sign * std::sqrt(static_cast<double>(n)));
}

double spike_threshold(double noise, Index longer, Index shorter) {
  const double a = std::sqrt(std::max(static_cast<double>(longer) - 1, 1.0));
  const double b = std::sqrt(static_cast<double>(shorter));
  const double center = (a + b) * (a + b);
  const double unit = (a + b) * std::cbrt(1 / a + 1 / b);
  return noise * std::sqrt(center + tracy_widom_99 * unit);
}

}  // namespace

double marchenko_pastur_median(double beta) {
  if (!(beta > 0 && beta <= 1)) {
    throw_argument_error("marchenko_pastur_median: beta is " + std::to_string(beta) +
                         ", but it must be above 0 and at most 1");
  }
  // Simpson's rule panel by panel until half of the mass is passed.
  constexpr int n_panels = 2048;
  constexpr double width = std::numbers::pi / n_panels;
  double mass = 0;
  for (int panel = 0; panel < n_panels; ++panel) {
    const double begin = panel * width;
    const double left = density(beta, begin), right = density(beta, begin + width);
    const double middle = density(beta, begin + width / 2);
    const double step = width / 6 * (left + 4 * middle + right);
    if (mass + step >= 0.5) {
      // Inside the panel the density is a line to within its curvature; two steps of Newton's
      // method on that line.
      double t = begin + width * (0.5 - mass) / step;
      for (int i = 0; i < 2; ++i) {
        const double part = t - begin;
        const double half = density(beta, begin + part / 2), end = density(beta, t);
        t += (0.5 - mass - part / 6 * (left + 4 * half + end)) / end;
      }
      return 1 + beta - 2 * std::sqrt(beta) * std::cos(t);
    }
    mass += step;
  }
  return 1 + beta;
}

std::optional<MarchenkoPastur> marchenko_pastur(const Shape& shape,
                                                TensorView<const double> singular_values) {
  const bool is_matrix = shape.rank() == 2;
  const Index shorter = is_matrix ? std::min(shape.size(0), shape.size(1)) : 0;
  if (!is_matrix || singular_values.rank() != 1 || singular_values.count() != shorter) {
    throw_shape_error("marchenko_pastur: singular_values is " + to_string(singular_values.shape()) +
                      ", but a matrix of " + to_string(shape) + " has " + std::to_string(shorter));
  }
  if (shorter == 0) return std::nullopt;
  const Index longer = std::max(shape.size(0), shape.size(1));
  const double median = (singular_values((shorter - 1) / 2) + singular_values(shorter / 2)) / 2;
  if (!(median > 0)) return std::nullopt;
  const double beta = static_cast<double>(shorter) / static_cast<double>(longer);
  const double mu = marchenko_pastur_median(beta);
  MarchenkoPastur bulk;
  bulk.noise = median / std::sqrt(static_cast<double>(longer) * mu);
  bulk.lower_edge = singular_value_edge(bulk.noise, longer, shorter, -1);
  bulk.upper_edge = singular_value_edge(bulk.noise, longer, shorter, 1);
  bulk.spike_threshold = spike_threshold(bulk.noise, longer, shorter);
  for (Index i = 0; i < shorter; ++i) {
    bulk.n_above += singular_values(i) > bulk.upper_edge ? 1 : 0;
    bulk.n_spikes += singular_values(i) > bulk.spike_threshold ? 1 : 0;
  }
  return bulk;
}

}  // namespace eckart

#include "eckart/linalg/spectral_density.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/lanczos_space.h"
#include "eckart/linalg/matrix_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace eckart {
namespace {

using detail::LanczosSpace;
using Nodes = SpectralQuadrature::Nodes;

// Part of the largest eigenvalue that products in float may be off by.
constexpr double rounding = 1e-6;
// Leading nodes count as eigenvalues when their residuals are this part of the gap behind them: the
// sine of the angle to the true vectors is then at most about as much (Davis, Kahan 1970).
constexpr double converged = 0.1;

// Eigenvalues (ascending) and vectors of T, or of T with Radau's block.
struct Eigen {
  std::vector<double> values;
  Tensor<double> vectors;  // vector i is row i
};

Eigen eigen_of(Tensor<double> matrix) {
  const Index n = matrix.size(0);
  std::vector<double> values(static_cast<std::size_t>(n));
  detail::eigenvectors_of(matrix, values.data());
  return {std::move(values), std::move(matrix)};
}

// Nodes from eigenvectors: the first rows of the vectors times what the random vectors are in the
// first block, squared.
Nodes nodes_of(const LanczosSpace& krylov, const Eigen& eigen) {
  const Index d = eigen.vectors.size(0), b = krylov.start.size(0), probes = krylov.start.size(1);
  Nodes nodes{.values = Tensor<double>(Shape{d}),
              .weights = Tensor<double>::uninitialized({d, probes})};
  const double* const last = eigen.vectors.data() + (d - 1) * d;
  blas::gemm(1.0, TensorView<const double>(last, {d, b}, {-d, 1}),
             TensorView<const double>(krylov.start.view()), 0.0, nodes.weights.view());
  for (Index i = 0; i < d; ++i) {
    nodes.values(i) = std::max(0.0, eigen.values[static_cast<std::size_t>(d - 1 - i)]);
  }
  for (Index i = 0; i < nodes.weights.count(); ++i) {
    nodes.weights.data()[i] *= nodes.weights.data()[i];
  }
  return nodes;
}

// The last components of the eigenvectors, those of the block behind which the residual stands.
TensorView<const double> last_components(const LanczosSpace& krylov, const Eigen& eigen) {
  return TensorView<const double>(eigen.vectors.view()).slice(1, {.begin = krylov.before_last});
}

// |B v - theta v| of each Ritz vector, in the order of the nodes.
Tensor<double> residuals_of(const LanczosSpace& krylov, const Eigen& eigen) {
  const TensorView<const double> last = last_components(krylov, eigen);
  Tensor<double> product = Tensor<double>::uninitialized(last.shape());
  blas::gemm(1.0, last, TensorView<const double>(krylov.residual.view()), 0.0, product.view());
  const Index d = last.size(0);
  Tensor<double> residuals(Shape{d});
  for (Index i = 0; i < d; ++i) {
    double square = 0;
    for (Index j = 0; j < last.size(1); ++j) square += last(i, j) * product(i, j);
    residuals(d - 1 - i) = std::sqrt(std::max(0.0, square));
  }
  return residuals;
}

// T with one more block such that as many eigenvalues are 0: [T, C^T; C, C T^-1 C^T], where C is the
// residual's square root behind the last block (Golub, Meurant 1994, for blocks).
Tensor<double> with_node_at_zero(const LanczosSpace& krylov, const Eigen& eigen) {
  const Index d = krylov.dimension, k = krylov.residual.size(0);
  const Eigen square = eigen_of(krylov.residual);
  Tensor<double> root(Shape{k, k});
  for (Index i = 0; i < k; ++i) {
    const double length = std::sqrt(std::max(0.0, square.values[static_cast<std::size_t>(i)]));
    for (Index r = 0; r < k; ++r) {
      for (Index c = 0; c < k; ++c) {
        root(r, c) += length * square.vectors(i, r) * square.vectors(i, c);
      }
    }
  }
  // Row i is C times eigenvector i over the root of its eigenvalue.
  Tensor<double> coupled = Tensor<double>::uninitialized({d, k});
  blas::gemm(1.0, last_components(krylov, eigen), TensorView<const double>(root.view()), 0.0,
             coupled.view());
  const double least = rounding * std::max(0.0, eigen.values.back());
  for (Index i = 0; i < d; ++i) {
    const double value = std::max(eigen.values[static_cast<std::size_t>(i)], least);
    for (Index j = 0; j < k; ++j) coupled(i, j) /= value > 0 ? std::sqrt(value) : 1;
  }
  Tensor<double> extended(Shape{d + k, d + k});
  const auto copy = [](double& to, const double& from) { to = from; };
  const auto part = [&](Index row, Index rows, Index column, Index columns) {
    return extended.view()
        .slice(0, {.begin = row, .end = row + rows})
        .slice(1, {.begin = column, .end = column + columns});
  };
  for_each_element(copy, part(0, d, 0, d), TensorView<const double>(krylov.projected.view()));
  for_each_element(copy, part(d, k, krylov.before_last, k), TensorView<const double>(root.view()));
  for_each_element(copy, part(krylov.before_last, k, d, k), TensorView<const double>(root.view()));
  const TensorView<const double> c = coupled.view();
  blas::gemm(1.0, c.transpose(), c, 0.0, part(d, k, d, k));
  return extended;
}

// The largest prefix whose residuals are small against the gap behind it, and whose random weights
// are what so many single eigenvalues have: an eigenvalue that stands more often than there are
// probes shows no more nodes than those.
Index n_converged(const SpectralQuadrature& quadrature) {
  const Tensor<double>& values = quadrature.gauss.values;
  const Tensor<double>& weights = quadrature.gauss.weights;
  const Index probes = weights.size(1);
  Index n_top = 0;
  double worst = 0, weight = 0;
  for (Index i = 0; i + 1 < values.count(); ++i) {
    worst = std::max(worst, quadrature.residuals(i));
    for (Index probe = 0; probe < probes; ++probe) {
      weight += weights(i, probe) / static_cast<double>(probes);
    }
    if (worst > converged * (values(i) - values(i + 1))) continue;
    const auto n_nodes = static_cast<double>(i + 1 - n_top);
    const double deviation = std::sqrt(2 * n_nodes / static_cast<double>(probes));
    if (i + 1 - n_top >= probes || std::abs(weight - n_nodes) > 4 * deviation) break;
    n_top = i + 1;
    weight = 0;
  }
  return n_top;
}

// Weights of the nodes behind the top: the mean over the probes but one, then so that their number
// and energy are what the top leaves.
std::vector<double> calibrated_weights(const SpectralQuadrature& quadrature, const Nodes& nodes,
                                       std::optional<Index> left_out) {
  const Index probes = nodes.weights.size(1), n = nodes.values.count();
  std::vector<double> weights(static_cast<std::size_t>(n), 0.0);
  double energy = quadrature.energy;
  for (Index i = 0; i < quadrature.n_top; ++i) energy -= quadrature.gauss.values(i);
  const auto count = static_cast<double>(quadrature.size - quadrature.n_top);
  double sum_0 = 0, sum_1 = 0, sum_2 = 0;
  for (Index i = quadrature.n_top; i < n; ++i) {
    double& weight = weights[static_cast<std::size_t>(i)];
    for (Index probe = 0; probe < probes; ++probe) {
      if (probe != left_out) weight += nodes.weights(i, probe);
    }
    sum_0 += weight;
    sum_1 += weight * nodes.values(i);
    sum_2 += weight * nodes.values(i) * nodes.values(i);
  }
  const double spread = sum_0 * sum_2 - sum_1 * sum_1;
  double constant = sum_0 > 0 ? count / sum_0 : 0, slope = 0;
  if (spread > 1e-9 * sum_0 * sum_2) {
    const double a = (count * sum_2 - energy * sum_1) / spread;
    const double c = (energy * sum_0 - count * sum_1) / spread;
    // A tilt that turns weights round is no calibration: the energy left is then rounding errors.
    const double low = (a + c * nodes.values(n - 1)) / constant;
    const double high = (a + c * nodes.values(quadrature.n_top)) / constant;
    if (std::min(low, high) > 0.25 && std::max(low, high) < 4) {
      constant = a;
      slope = c;
    }
  }
  for (Index i = quadrature.n_top; i < n; ++i) {
    weights[static_cast<std::size_t>(i)] *= constant + slope * nodes.values(i);
  }
  return weights;
}

// How a list of singular values departs from the estimate, to see what that changes.
struct Variant {
  std::optional<Index> left_out = {};  // a probe
  double shift = 0;                    // of the ranks, in parts of a node's weight
};

// Singular values by one rule: each node stands for as many as its weight, in a range that reaches
// half way to its nearer neighbour.
Tensor<double> values_of(const SpectralQuadrature& quadrature, const Nodes& nodes,
                         const Variant& variant) {
  const std::vector<double> weights = calibrated_weights(quadrature, nodes, variant.left_out);
  const auto weight_of = [&](Index node) { return weights[static_cast<std::size_t>(node)]; };
  const Index n = quadrature.size, n_nodes = nodes.values.count(), n_top = quadrature.n_top;
  const auto sigma = [&](Index node) { return std::sqrt(nodes.values(node)); };
  Tensor<double> values(Shape{n});
  for (Index i = 0; i < n_top; ++i) values(i) = std::sqrt(quadrature.gauss.values(i));
  Index node = n_top;
  auto begin = static_cast<double>(n_top);  // of the node's ranks
  for (Index i = n_top; i < n; ++i) {
    const double rank = static_cast<double>(i) + 0.5;
    while (node + 1 < n_nodes &&
           begin + weight_of(node) + variant.shift * weight_of(node + 1) <= rank) {
      begin += weight_of(node++);
    }
    const double center = sigma(node);
    double reach = n_nodes - n_top > 1 ? center : 0;
    if (node > n_top) reach = std::min(reach, (sigma(node - 1) - center) / 2);
    if (node + 1 < n_nodes) reach = std::min(reach, (center - sigma(node + 1)) / 2);
    const double weight = weight_of(node);
    const double place = weight > 0 ? (rank - begin) / weight - variant.shift : 0.5;
    const double part = std::clamp(place, 0.0, 1.0);
    values(i) = center + reach * (1 - 2 * part);
  }
  return values;
}

// Back from the units of the nodes.
Tensor<double> rescaled(Tensor<double> values, double scale) {
  for (Index i = 0; i < values.count(); ++i) values(i) *= scale;
  return values;
}

// The mean of the two rules.
Tensor<double> mean_values(const SpectralQuadrature& quadrature, const Variant& variant) {
  Tensor<double> values = values_of(quadrature, quadrature.gauss, variant);
  if (quadrature.is_exhausted) return values;
  const Tensor<double> others = values_of(quadrature, quadrature.radau, variant);
  for (Index i = 0; i < values.count(); ++i) values(i) = (values(i) + others(i)) / 2;
  return values;
}

// The spectrum as it may also be read: by either rule alone, with nodes standing for values half of
// their weight further up or down, and without what products in float can't tell from 0.
std::vector<Tensor<double>> other_readings(const SpectralQuadrature& quadrature) {
  std::vector<Tensor<double>> readings;
  if (!quadrature.is_exhausted) {
    readings.push_back(values_of(quadrature, quadrature.gauss, {}));
    readings.push_back(values_of(quadrature, quadrature.radau, {}));
  }
  readings.push_back(mean_values(quadrature, {.shift = -0.5}));
  readings.push_back(mean_values(quadrature, {.shift = 0.5}));
  Tensor<double> resolved = mean_values(quadrature, {});
  const double least = std::sqrt(rounding) * resolved(0);
  for (Index i = 0; i < resolved.count(); ++i) {
    if (resolved(i) < least) resolved(i) = 0;
  }
  readings.push_back(std::move(resolved));
  return readings;
}

// The 97.5% point of Student's distribution, to 3% from 3 degrees of freedom on.
double student(Index degrees) {
  const auto d = static_cast<double>(degrees);
  return 1.96 + 2.5 / d + 2.5 / (d * d) + 6 / (d * d * d);
}

template <class T>
void check(const LinearOperator<T>& a, const QuadratureOptions& options) {
  if (a.shape().count() == 0) {
    throw_argument_error("spectral_quadrature: a is " + to_string(a.shape()) +
                         ", but it must have at least one element");
  }
  if (!(options.frobenius_norm > 0) || !std::isfinite(options.frobenius_norm)) {
    throw_argument_error("spectral_quadrature: frobenius_norm is " +
                         std::to_string(options.frobenius_norm) +
                         ", but it must be a finite number above 0");
  }
  if (options.probes < 2 || options.steps < 1) {
    throw_argument_error("spectral_quadrature: " + counted(options.probes, "probe") + " and " +
                         counted(options.steps, "step") +
                         ", but it takes at least 2 probes and 1 step");
  }
}

}  // namespace

template <class T>
SpectralQuadrature spectral_quadrature(const LinearOperator<T>& a,
                                       const QuadratureOptions& options) {
  check(a, options);
  const LanczosSpace krylov = detail::lanczos_space(a, options);
  const Eigen eigen = eigen_of(krylov.projected);
  const double norm = options.frobenius_norm / krylov.scale;
  SpectralQuadrature quadrature{.size = krylov.size,
                                .scale = krylov.scale,
                                .energy = norm * norm,
                                .gauss = nodes_of(krylov, eigen),
                                .radau = {},
                                .residuals = residuals_of(krylov, eigen),
                                .passes = krylov.passes,
                                .is_exhausted = krylov.is_exhausted};
  // Where V spans everything, there is nothing but eigenvalues.
  quadrature.n_top = krylov.dimension == krylov.size ? krylov.size : n_converged(quadrature);
  if (!krylov.is_exhausted) {
    quadrature.radau = nodes_of(krylov, eigen_of(with_node_at_zero(krylov, eigen)));
  }
  return quadrature;
}

Tensor<double> estimated_singular_values(const SpectralQuadrature& quadrature) {
  return rescaled(mean_values(quadrature, {}), quadrature.scale);
}

std::vector<Estimate> estimate_figures(
    const SpectralQuadrature& quadrature,
    const std::function<std::vector<double>(TensorView<const double>)>& figures) {
  const std::vector<double> whole = figures(estimated_singular_values(quadrature));
  std::vector<Estimate> estimates(whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) estimates[i].value = whole[i];
  if (quadrature.n_top == quadrature.size) return estimates;
  const auto n_probes = static_cast<std::size_t>(quadrature.gauss.weights.size(1));
  const std::vector<Tensor<double>> others = other_readings(quadrature);
  std::vector<std::vector<double>> all(n_probes + others.size());
  parallel_for(static_cast<Index>(all.size()), 1, [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      Tensor<double> values = i < n_probes
                                  ? mean_values(quadrature, {.left_out = static_cast<Index>(i)})
                                  : Tensor<double>(others[i - n_probes]);
      all[i] = figures(rescaled(std::move(values), quadrature.scale));
    }
  });
  const auto n = static_cast<double>(n_probes);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    double mean = 0, square = 0, reading = 0;
    for (std::size_t j = 0; j < n_probes; ++j) mean += all[j][i] / n;
    for (std::size_t j = 0; j < n_probes; ++j) square += (all[j][i] - mean) * (all[j][i] - mean);
    for (std::size_t j = n_probes; j < all.size(); ++j) {
      reading = std::max(reading, std::abs(whole[i] - all[j][i]));
    }
    const double chance =
        student(static_cast<Index>(n_probes) - 1) * std::sqrt((n - 1) / n * square);
    estimates[i].error = chance + reading + 10 * rounding * std::abs(whole[i]);
  }
  return estimates;
}

Estimate spectral_sum(const SpectralQuadrature& quadrature,
                      const std::function<double(double)>& f) {
  const auto sum = [&](TensorView<const double> values) {
    double total = 0;
    for (Index i = 0; i < values.count(); ++i) total += f(values(i) * values(i));
    return std::vector<double>{total};
  };
  return estimate_figures(quadrature, sum).front();
}

std::vector<Estimate> largest_singular_values(const SpectralQuadrature& quadrature, Index count) {
  const Nodes& nodes = quadrature.gauss;
  const double least = rounding * (nodes.values.count() > 0 ? nodes.values(0) : 0);
  std::vector<Estimate> top;
  for (Index i = 0; i < std::min(count, nodes.values.count()); ++i) {
    const double theta = nodes.values(i), residual = quadrature.residuals(i);
    double gap = i > 0 ? nodes.values(i - 1) - theta : std::numeric_limits<double>::infinity();
    if (i + 1 < nodes.values.count()) gap = std::min(gap, theta - nodes.values(i + 1));
    // The square bounds what stands alone; what does not may be off by the residual itself.
    const bool is_alone = residual <= converged * gap;
    const double error = (is_alone ? residual * residual / gap : residual) + least;
    const double value = std::sqrt(theta);
    top.push_back({.value = quadrature.scale * value,
                   .error = quadrature.scale * (std::sqrt(theta + error) - value)});
  }
  return top;
}

template SpectralQuadrature spectral_quadrature(const LinearOperator<float>&,
                                                const QuadratureOptions&);
template SpectralQuadrature spectral_quadrature(const LinearOperator<double>&,
                                                const QuadratureOptions&);

}  // namespace eckart

#include "eckart/linalg/spectral_density.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/block_krylov.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace eckart {
namespace {

using detail::BlockKrylov;
using Nodes = SpectralQuadrature::Nodes;

// Part of the largest eigenvalue that products in float may be off by.
constexpr double rounding = 1e-6;
// Leading nodes count as eigenvalues when their residuals are this part of the gap behind them: the
// sine of the angle to the true vectors is then at most about as much (Davis, Kahan 1970).
constexpr double converged = 0.1;

// The largest prefix whose residuals are small against the gap behind it.
Index n_converged(const Nodes& nodes) {
  Index n_top = 0;
  double worst = 0;
  for (Index i = 0; i + 1 < nodes.values.count(); ++i) {
    worst = std::max(worst, nodes.residuals(i));
    if (worst <= converged * (nodes.values(i) - nodes.values(i + 1))) n_top = i + 1;
  }
  return n_top;
}

// Eigenvalues of T's first `dimension` rows and columns. `residual` is W^T W behind the last block,
// whose first column is `last_block`.
Nodes nodes_of(const BlockKrylov& krylov, Index dimension, Index last_block,
               const Tensor<double>& residual) {
  const Index d = dimension;
  Tensor<double> vectors(
      krylov.projected.view().slice(0, {.begin = 0, .end = d}).slice(1, {.begin = 0, .end = d}));
  std::vector<double> ascending(static_cast<std::size_t>(d));
  blas::syevd(d, vectors.data(), d, ascending.data());  // row i of memory is eigenvector i
  const Index b = krylov.start.size(0), probes = krylov.start.size(1);
  Nodes nodes{.values = Tensor<double>(Shape{d}),
              .residuals = Tensor<double>(Shape{d}),
              .weights = Tensor<double>::uninitialized({d, probes})};
  // First rows of the vectors times what the random vectors are in the first block.
  blas::gemm(1.0, TensorView<const double>(vectors.data(), {d, b}, {d, 1}),
             TensorView<const double>(krylov.start.view()), 0.0, nodes.weights.view());
  const double unit = krylov.scale * krylov.scale;
  for (Index i = 0; i < d; ++i) {
    nodes.values(i) = std::max(0.0, ascending[static_cast<std::size_t>(d - 1 - i)]) * unit;
    const double* const last = vectors.data() + (d - 1 - i) * d + last_block;
    double square = 0;
    for (Index j = 0; j < residual.size(0); ++j) {
      for (Index k = 0; k < residual.size(1); ++k) square += last[j] * residual(j, k) * last[k];
    }
    nodes.residuals(i) = std::sqrt(std::max(0.0, square)) * unit;
  }
  for (Index i = 0; i < d / 2; ++i) {  // ascending as the vectors were: turned round
    for (Index probe = 0; probe < probes; ++probe) {
      std::swap(nodes.weights(i, probe), nodes.weights(d - 1 - i, probe));
    }
  }
  for (Index i = 0; i < nodes.weights.count(); ++i) {
    nodes.weights.data()[i] *= nodes.weights.data()[i];
  }
  return nodes;
}

// Weights of the nodes behind the top: the mean over the probes but one, then so that their number
// and energy are what the top leaves.
std::vector<double> calibrated_weights(const SpectralQuadrature& quadrature, const Nodes& nodes,
                                       std::optional<Index> left_out) {
  const Index probes = nodes.weights.size(1);
  const auto n = static_cast<std::size_t>(nodes.values.count());
  std::vector<double> weights(n, 0.0);
  double count = static_cast<double>(quadrature.size), energy = quadrature.energy;
  double sum_0 = 0, sum_1 = 0, sum_2 = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = static_cast<Index>(i);
    const double value = nodes.values(at);
    if (at < nodes.n_top) {
      weights[i] = 1;
      count -= 1;
      energy -= value;
      continue;
    }
    for (Index probe = 0; probe < probes; ++probe) {
      if (probe != left_out) weights[i] += nodes.weights(at, probe);
    }
    sum_0 += weights[i];
    sum_1 += weights[i] * value;
    sum_2 += weights[i] * value * value;
  }
  const double spread = sum_0 * sum_2 - sum_1 * sum_1;
  const double last = n == 0 ? 0 : nodes.values(static_cast<Index>(n) - 1);
  const double first = static_cast<std::size_t>(nodes.n_top) < n ? nodes.values(nodes.n_top) : 0;
  double constant = sum_0 > 0 ? count / sum_0 : 0, slope = 0;
  if (spread > 1e-9 * sum_0 * sum_2) {
    const double a = (count * sum_2 - energy * sum_1) / spread;
    const double c = (energy * sum_0 - count * sum_1) / spread;
    // A tilt that turns weights round is no calibration: the energy left is then rounding errors.
    const double low = (a + c * last) / constant, high = (a + c * first) / constant;
    if (std::min(low, high) > 0.25 && std::max(low, high) < 4) {
      constant = a;
      slope = c;
    }
  }
  for (auto i = static_cast<std::size_t>(nodes.n_top); i < n; ++i) {
    weights[i] *= constant + slope * nodes.values(static_cast<Index>(i));
  }
  return weights;
}

Tensor<double> values_of(const SpectralQuadrature& quadrature, const Nodes& nodes,
                         std::optional<Index> left_out) {
  const std::vector<double> weights = calibrated_weights(quadrature, nodes, left_out);
  const Index n = quadrature.size, n_nodes = nodes.values.count();
  const auto sigma = [&](Index node) { return std::sqrt(nodes.values(node)); };
  Tensor<double> values(Shape{n});
  for (Index i = 0; i < nodes.n_top; ++i) values(i) = sigma(i);
  Index node = nodes.n_top;
  double begin = static_cast<double>(nodes.n_top);  // of the node's ranks
  for (Index i = nodes.n_top; i < n; ++i) {
    const double rank = static_cast<double>(i) + 0.5;
    while (node + 1 < n_nodes && begin + weights[static_cast<std::size_t>(node)] <= rank) {
      begin += weights[static_cast<std::size_t>(node++)];
    }
    // Each node stands for a range that reaches half way to its nearer neighbour.
    const double center = sigma(node);
    double reach = center;
    if (node > nodes.n_top) reach = std::min(reach, (sigma(node - 1) - center) / 2);
    if (node + 1 < n_nodes) reach = std::min(reach, (center - sigma(node + 1)) / 2);
    if (nodes.n_top + 1 == n_nodes) reach = 0;
    const double weight = weights[static_cast<std::size_t>(node)];
    const double part = weight > 0 ? std::clamp((rank - begin) / weight, 0.0, 1.0) : 0.5;
    values(i) = std::max(0.0, center + reach * (1 - 2 * part));
  }
  return values;
}

// The 97.5% point of Student's distribution, to 3% from 3 degrees of freedom on.
double student(Index degrees) {
  const auto d = static_cast<double>(degrees);
  return 1.96 + 2.5 / d + 2.5 / (d * d) + 6 / (d * d * d);
}

template <class T>
void check(const BlockOperator<T>& a, const QuadratureOptions& options) {
  if (a.rows < 1 || a.columns < 1) {
    throw_argument_error("spectral_quadrature: a is " + std::to_string(a.rows) + "x" +
                         std::to_string(a.columns) + ", but it must have at least one element");
  }
  if (!(options.frobenius_norm > 0) || !std::isfinite(options.frobenius_norm)) {
    throw_argument_error("spectral_quadrature: frobenius_norm is " +
                         std::to_string(options.frobenius_norm) +
                         ", but it must be a finite number above 0");
  }
  if (options.probes < 2 || options.steps < 1) {
    throw_argument_error("spectral_quadrature: " + std::to_string(options.probes) + " probes and " +
                         std::to_string(options.steps) +
                         " steps, but it takes at least 2 probes and 1 step");
  }
}

}  // namespace

template <class T>
BlockOperator<T> block_operator(TensorView<const T> a) {
  if (a.rank() != 2) {
    throw_shape_error("block_operator: a is " + to_string(a.shape()) +
                      ", but it must be a matrix, with two axes");
  }
  return {.rows = a.size(0),
          .columns = a.size(1),
          .apply = [a](TensorView<const T> x, TensorView<T> y) { blas::gemm(T{1}, a, x, T{0}, y); },
          .apply_adjoint = [a](TensorView<const T> x,
                               TensorView<T> y) { blas::gemm(T{1}, a.transpose(), x, T{0}, y); }};
}

template <class T>
SpectralQuadrature spectral_quadrature(const BlockOperator<T>& a,
                                       const QuadratureOptions& options) {
  check(a, options);
  const BlockKrylov krylov = detail::block_krylov(a, options);
  SpectralQuadrature quadrature{
      .size = krylov.size,
      .energy = options.frobenius_norm * options.frobenius_norm,
      .nodes = nodes_of(krylov, krylov.dimension, krylov.before_last, krylov.last_residual),
      .coarse = {},
      .passes = krylov.passes,
      .is_exhausted = krylov.is_exhausted};
  // Where V spans everything, there is nothing but eigenvalues.
  quadrature.nodes.n_top =
      krylov.dimension == krylov.size ? krylov.size : n_converged(quadrature.nodes);
  if (!krylov.is_exhausted && krylov.before_last > 0) {
    const Index block = krylov.earlier_residual.size(0);
    quadrature.coarse =
        nodes_of(krylov, krylov.before_last, krylov.before_last - block, krylov.earlier_residual);
    quadrature.coarse.n_top = std::min(n_converged(quadrature.coarse), quadrature.nodes.n_top);
  }
  return quadrature;
}

Tensor<double> estimated_singular_values(const SpectralQuadrature& quadrature) {
  return values_of(quadrature, quadrature.nodes, {});
}

std::vector<Estimate> estimate_figures(
    const SpectralQuadrature& quadrature,
    const std::function<std::vector<double>(TensorView<const double>)>& figures) {
  const std::vector<double> whole = figures(estimated_singular_values(quadrature));
  std::vector<Estimate> estimates(whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) estimates[i].value = whole[i];
  if (quadrature.nodes.n_top == quadrature.size) return estimates;
  const Index probes = quadrature.nodes.weights.size(1);
  std::vector<std::vector<double>> without(static_cast<std::size_t>(probes));
  parallel_for(probes, 1, [&](Index begin, Index end) {
    for (Index probe = begin; probe < end; ++probe) {
      without[static_cast<std::size_t>(probe)] =
          figures(values_of(quadrature, quadrature.nodes, probe));
    }
  });
  const bool has_coarse = quadrature.coarse.values.count() > 0;
  const std::vector<double> coarse =
      has_coarse ? figures(values_of(quadrature, quadrature.coarse, {})) : whole;
  const auto n = static_cast<double>(probes);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    double mean = 0, square = 0;
    for (const std::vector<double>& one : without) mean += one[i] / n;
    for (const std::vector<double>& one : without) square += (one[i] - mean) * (one[i] - mean);
    const double chance = student(probes - 1) * std::sqrt((n - 1) / n * square);
    estimates[i].error = chance + std::abs(whole[i] - coarse[i]);
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
  const Nodes& nodes = quadrature.nodes;
  const double least = rounding * (nodes.values.count() > 0 ? nodes.values(0) : 0);
  std::vector<Estimate> top;
  for (Index i = 0; i < std::min(count, nodes.values.count()); ++i) {
    const double theta = nodes.values(i), residual = nodes.residuals(i);
    double gap = i > 0 ? nodes.values(i - 1) - theta : std::numeric_limits<double>::infinity();
    if (i + 1 < nodes.values.count()) gap = std::min(gap, theta - nodes.values(i + 1));
    // The square bounds what stands alone; what does not may be off by the residual itself.
    const bool is_alone = residual <= converged * gap;
    const double error = (is_alone ? residual * residual / gap : residual) + least;
    top.push_back(
        {.value = std::sqrt(theta), .error = std::sqrt(theta + error) - std::sqrt(theta)});
  }
  return top;
}

template BlockOperator<float> block_operator(TensorView<const float>);
template BlockOperator<double> block_operator(TensorView<const double>);
template SpectralQuadrature spectral_quadrature(const BlockOperator<float>&,
                                                const QuadratureOptions&);
template SpectralQuadrature spectral_quadrature(const BlockOperator<double>&,
                                                const QuadratureOptions&);

}  // namespace eckart

#include "eckart/linalg/spectral_density.h"

#include "eckart/core/parallel.h"

#include <cmath>

#include "spectrum_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::matrix_with_values;
using testing::values_by;

template <class T>
double frobenius_norm(const Tensor<T>& a) {
  double sum = 0;
  for (Index i = 0; i < a.count(); ++i)
    sum += static_cast<double>(a.data()[i]) * static_cast<double>(a.data()[i]);
  return std::sqrt(sum);
}

template <class T>
SpectralQuadrature quadrature_of(const Tensor<T>& a, Index probes, Index steps) {
  return spectral_quadrature<T>(
      MatrixOperator<T>(a.view()),
      {.frobenius_norm = frobenius_norm(a), .probes = probes, .steps = steps, .seed = 3});
}

TEST(SpectralQuadrature, WeightsOfEachProbeAddUpToTheSize) {
  const auto a =
      matrix_with_values<double>(60, 40, values_by(40, [](double i) { return 1 / (1 + i); }), 1);
  const SpectralQuadrature q = quadrature_of(a, 4, 5);
  EXPECT_EQ(q.size, 40);
  EXPECT_EQ(q.passes, 10);
  for (const SpectralQuadrature::Nodes* nodes : {&q.gauss, &q.radau}) {
    for (Index probe = 0; probe < 4; ++probe) {
      double sum = 0;
      for (Index i = 0; i < nodes->values.count(); ++i) sum += nodes->weights(i, probe);
      EXPECT_NEAR(sum, 40, 1e-10);
    }
  }
}

TEST(SpectralQuadrature, IsExactForPolynomialsOfTwiceTheSteps) {
  // With the block's s steps, x^T B^k x is that of the nodes for k < 2 s.
  const auto a =
      matrix_with_values<double>(30, 24, values_by(24, [](double i) { return 1 + i / 24; }), 2);
  const SpectralQuadrature q = quadrature_of(a, 2, 3);
  Tensor<double> omega = testing::normal_matrix<double>(24, 2, 3);
  for (Index probe = 0; probe < 2; ++probe) {
    std::vector<double> x(24);
    double length = 0;
    for (Index i = 0; i < 24; ++i) length += omega(i, probe) * omega(i, probe);
    for (Index i = 0; i < 24; ++i)
      x[static_cast<std::size_t>(i)] = omega(i, probe) * std::sqrt(24 / length);
    std::vector<double> y = x;
    for (int power = 0; power < 6; ++power) {
      double exact = 0, by_nodes = 0, by_radau = 0;
      for (std::size_t i = 0; i < 24; ++i) exact += x[i] * y[i];
      for (Index i = 0; i < q.gauss.values.count(); ++i)
        by_nodes +=
            q.gauss.weights(i, probe) * std::pow(q.scale * q.scale * q.gauss.values(i), power);
      for (Index i = 0; i < q.radau.values.count(); ++i)
        by_radau +=
            q.radau.weights(i, probe) * std::pow(q.scale * q.scale * q.radau.values(i), power);
      EXPECT_NEAR(by_nodes, exact, 1e-10 * exact) << power;
      EXPECT_NEAR(by_radau, exact, 1e-10 * exact) << power;
      std::vector<double> ax(30, 0.0), next(24, 0.0);
      for (Index i = 0; i < 30; ++i) {
        for (Index j = 0; j < 24; ++j)
          ax[static_cast<std::size_t>(i)] += a(i, j) * y[static_cast<std::size_t>(j)];
      }
      for (Index i = 0; i < 30; ++i) {
        for (Index j = 0; j < 24; ++j)
          next[static_cast<std::size_t>(j)] += a(i, j) * ax[static_cast<std::size_t>(i)];
      }
      y = next;
    }
  }
}

TEST(SpectralQuadrature, TheTwoRulesHaveTheSumOfSingularValuesBetweenThem) {
  // Of one probe: sqrt is concave in all even derivatives, whatever the weights.
  const auto a = testing::normal_matrix<double>(50, 50, 8);
  const SpectralQuadrature few = quadrature_of(a, 2, 4), many = quadrature_of(a, 2, 25);
  for (Index probe = 0; probe < 2; ++probe) {
    const auto sum = [&](const SpectralQuadrature::Nodes& nodes) {
      double total = 0;
      for (Index i = 0; i < nodes.values.count(); ++i)
        total += nodes.weights(i, probe) * std::sqrt(nodes.values(i));
      return total;
    };
    EXPECT_GT(sum(few.gauss), sum(many.gauss));
    EXPECT_LT(sum(few.radau), sum(many.gauss));
  }
}

TEST(SpectralQuadrature, OfVectorsThatSpanEverythingIsTheSpectrum) {
  const std::vector<double> values = values_by(24, [](double i) { return 24 - i; });
  const SpectralQuadrature q = quadrature_of(matrix_with_values<double>(24, 31, values, 5), 8, 10);
  EXPECT_EQ(q.n_top, 24);
  EXPECT_EQ(q.passes, 6);
  const Tensor<double> found = estimated_singular_values(q);
  for (Index i = 0; i < 24; ++i) EXPECT_NEAR(found(i), values[static_cast<std::size_t>(i)], 1e-9);
  EXPECT_EQ(spectral_sum(q, [](double lambda) { return std::sqrt(lambda); }).error, 0);
}

TEST(SpectralQuadrature, FindsTheRankThatSingleVectorsCannotSee) {
  // Rank 3, 60 columns: the space ends after two steps, and the top is exact.
  const auto a = matrix_with_values<float>(
      70, 60, values_by(60, [](double i) { return i < 3 ? 3 - i : 0; }), 6);
  const SpectralQuadrature q = quadrature_of(a, 8, 6);
  EXPECT_TRUE(q.is_exhausted);
  EXPECT_EQ(q.n_top, 3);
  EXPECT_LT(q.passes, 12);
  const std::vector<Estimate> top = largest_singular_values(q, 3);
  for (Index i = 0; i < 3; ++i) {
    EXPECT_NEAR(top[static_cast<std::size_t>(i)].value, static_cast<double>(3 - i), 1e-5);
  }
}

TEST(SpectralQuadrature, AnEigenvalueOfHighMultiplicityIsNoTop) {
  // 30 equal values and 8 probes: 8 nodes stand for 30.
  const auto a =
      matrix_with_values<double>(90, 90, values_by(90, [](double i) { return i < 30 ? 2 : 1; }), 7);
  const SpectralQuadrature q = quadrature_of(a, 8, 4);
  EXPECT_EQ(q.n_top, 0);
  const Estimate sum = spectral_sum(q, [](double lambda) { return std::sqrt(lambda); });
  EXPECT_NEAR(sum.value, 120, sum.error);
  EXPECT_LT(sum.error, 5);
}

TEST(SpectralQuadrature, DoesNotDependOnScaleOrThreads) {
  auto a = testing::normal_matrix<float>(80, 64, 9);
  set_thread_count(1);
  const SpectralQuadrature one = quadrature_of(a, 4, 4);
  set_thread_count(3);
  const SpectralQuadrature three = quadrature_of(a, 4, 4);
  set_thread_count(0);
  EXPECT_TRUE(testing::is_near(one.gauss.values, three.gauss.values));
  for (const float scale : {1e-30F, 1e30F}) {
    Tensor<float> scaled(a);
    for (Index i = 0; i < scaled.count(); ++i) scaled.data()[i] *= scale;
    const SpectralQuadrature q = quadrature_of(scaled, 4, 4);
    const double unit = q.scale / (static_cast<double>(scale) * one.scale);
    for (Index i = 0; i < 5; ++i) {
      EXPECT_NEAR(q.gauss.values(i) * unit * unit, one.gauss.values(i), 1e-5 * one.gauss.values(i));
    }
  }
}

TEST(SpectralQuadrature, RefusesOptionsOutOfRange) {
  using testing::thrown_by;
  const Tensor<double> a({3, 3}, 1.0);
  const MatrixOperator<double> op(a.view());
  const MatrixOperator<double> nothing(TensorView<const double>(a.data(), {0, 3}));
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { spectral_quadrature<double>(op, {.frobenius_norm = 0}); }),
      "spectral_quadrature: frobenius_norm is 0.000000, but it must be a finite number above 0");
  EXPECT_EQ(thrown_by<ArgumentError>(
                [&] { spectral_quadrature<double>(op, {.frobenius_norm = 3, .probes = 1}); }),
            "spectral_quadrature: 1 probe and 12 steps, but it takes at least 2 probes and 1 step");
  EXPECT_EQ(thrown_by<ArgumentError>(
                [&] { spectral_quadrature<double>(nothing, {.frobenius_norm = 3}); }),
            "spectral_quadrature: a is 0x3, but it must have at least one element");
}

}  // namespace
}  // namespace eckart

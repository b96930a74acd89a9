#include "eckart/linalg/spectrum.h"

#include <cmath>
#include <limits>
#include <string>

#include "spectrum_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::matrix_with_values;
using testing::normal_matrix;
using testing::values_by;

Tensor<double> identity(Index n) {
  Tensor<double> a(Shape{n, n});
  for (Index i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

TEST(Spectrum, OfTheIdentityIsFlat) {
  const Spectrum s = spectrum(identity(16));
  EXPECT_TRUE(s.is_exact);
  EXPECT_NEAR(s.spectral_norm->value, 1, 1e-15);
  EXPECT_NEAR(s.stable_rank->value, 16, 1e-13);
  EXPECT_NEAR(s.effective_rank->value, 16, 1e-12);
  EXPECT_EQ(s.numerical_rank->value, 16);
  EXPECT_EQ((*s.energy_ranks)[0].value, 8);
  EXPECT_EQ((*s.energy_ranks)[1].value, 15);
  EXPECT_EQ((*s.energy_ranks)[2].value, 16);
  EXPECT_FALSE(s.power_law);
  EXPECT_EQ(s.spectral_norm->error, 0);
}

TEST(Spectrum, OfARankOneMatrixHasOneValue) {
  Tensor<double> a(Shape{7, 5});
  for (Index i = 0; i < 7; ++i) {
    for (Index j = 0; j < 5; ++j) a(i, j) = static_cast<double>((i + 1) * (j + 1));
  }
  const Spectrum s = spectrum(a);
  // |u| |v| = sqrt(140 x 55).
  EXPECT_NEAR(s.spectral_norm->value, std::sqrt(7700.0), 1e-12);
  EXPECT_NEAR(s.stable_rank->value, 1, 1e-12);
  EXPECT_NEAR(s.effective_rank->value, 1, 1e-6);
  EXPECT_EQ(s.numerical_rank->value, 1);
  for (const Estimate& rank : *s.energy_ranks) EXPECT_EQ(rank.value, 1);
}

TEST(Spectrum, OfAHadamardMatrixIsTheRootOfItsSize) {
  constexpr Index n = 32;
  Tensor<float> a(Shape{n, n});
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j)
      a(i, j) =
          __builtin_popcountll(static_cast<unsigned long long>(i & j)) % 2 == 0 ? 1.0F : -1.0F;
  }
  const Spectrum s = spectrum(a, {.top = 32});
  ASSERT_EQ(s.top.size(), 32U);
  for (const Estimate& value : s.top) EXPECT_NEAR(value.value, std::sqrt(32.0), 1e-6);
  EXPECT_NEAR(s.frobenius_norm, 32, 1e-12);
}

TEST(Spectrum, OfPowersOfTwoAddsUpToTheGeometricSum) {
  constexpr Index n = 20;
  Tensor<double> a(Shape{n, n});
  for (Index i = 0; i < n; ++i) a(i, i) = std::ldexp(1.0, -static_cast<int>(i));
  const Spectrum s = spectrum(a, {.top = n});
  EXPECT_NEAR(s.frobenius_norm * s.frobenius_norm, (1 - std::pow(4.0, -n)) / 0.75, 1e-14);
  EXPECT_EQ((*s.energy_ranks)[0].value, 1);
  EXPECT_EQ((*s.energy_ranks)[1].value, 2);  // 1 + 1/4 of 4/3 is 93.75%
  EXPECT_EQ((*s.energy_ranks)[2].value, 4);  // 1 - 4^-3 is 98.4%, 1 - 4^-4 is 99.6%
}

TEST(Spectrum, OfAZeroMatrixHasNoRatios) {
  const Spectrum s = spectrum(Tensor<float>({5, 3}));
  EXPECT_EQ(s.spectral_norm->value, 0);
  EXPECT_EQ(s.numerical_rank->value, 0);
  EXPECT_FALSE(s.stable_rank);
  EXPECT_FALSE(s.effective_rank);
  EXPECT_FALSE(s.energy_ranks);
  EXPECT_FALSE(s.power_law);
  EXPECT_FALSE(s.marchenko_pastur);
  EXPECT_EQ(s.values.count(), 3);
  for (const Shape& shape : {Shape{0, 4}, Shape{4, 0}}) {
    EXPECT_EQ(spectrum(Tensor<float>(shape)).values.count(), 0);
  }
}

TEST(Spectrum, ScaleTwiceTheColumnsTransposeAndRowOrderChangeWhatTheyShould) {
  const auto a = normal_matrix<double>(12, 9, 1);
  const Spectrum s = spectrum(a, {.top = 9});
  const auto compare = [&](const Spectrum& other, double factor, const std::string& what) {
    for (std::size_t i = 0; i < 9; ++i) {
      EXPECT_NEAR(other.top[i].value, factor * s.top[i].value, 1e-12 * factor * s.top[0].value)
          << what;
    }
    EXPECT_NEAR(other.stable_rank->value, s.stable_rank->value, 1e-10) << what;
    EXPECT_NEAR(other.effective_rank->value, s.effective_rank->value, 1e-10) << what;
    EXPECT_EQ(other.numerical_rank->value, s.numerical_rank->value) << what;
  };
  for (const double scale : {1e-300, 1e-30, 3.0, 1e30, 1e200}) {
    Tensor<double> scaled(a);
    for (Index i = 0; i < scaled.count(); ++i) scaled.data()[i] *= scale;
    compare(spectrum(scaled, {.top = 9}), scale, "scaled");
  }
  compare(spectrum(TensorView<const double>(a.view()).transpose(), {.top = 9}), 1, "transposed");
  Tensor<double> doubled(Shape{12, 18}), reversed(Shape{12, 9});
  for (Index i = 0; i < 12; ++i) {
    for (Index j = 0; j < 9; ++j) {
      doubled(i, j) = doubled(i, j + 9) = a(i, j);
      reversed(11 - i, j) = a(i, j);
    }
  }
  compare(spectrum(doubled, {.top = 9}), std::sqrt(2.0), "doubled");
  compare(spectrum(reversed, {.top = 9}), 1, "rows in another order");
}

// Squares of the values leave double's range from 1e154 on and below 1e-162.
TEST(Spectrum, FiguresOfVeryLargeAndSmallMatricesAreThoseOfAnyScale) {
  const auto a =
      matrix_with_values<double>(120, 100, values_by(100, [](double i) { return 1 / (1 + i); }), 3);
  for (const bool exact : {true, false}) {
    const SpectrumOptions options{
        .exact = exact, .exact_limit = 0, .top = 2, .probes = 4, .steps = 4};
    const Spectrum s = spectrum(a, options);
    ASSERT_EQ(s.is_exact, exact);
    for (const double scale : {0x1p-960, 0x1p660, 0x1p1000}) {
      Tensor<double> scaled(a);
      for (Index i = 0; i < scaled.count(); ++i) scaled.data()[i] *= scale;
      const Spectrum other = spectrum(scaled, options);
      // Powers of two round nothing; what is scaled inside rounds 100 values.
      EXPECT_NEAR(other.effective_rank->value, s.effective_rank->value, 1e-9) << scale;
      for (std::size_t i = 0; i < energy_shares.size(); ++i) {
        EXPECT_EQ((*other.energy_ranks)[i].value, (*s.energy_ranks)[i].value) << scale;
      }
      ASSERT_TRUE(other.power_law && other.marchenko_pastur) << scale;
      EXPECT_NEAR(other.power_law->alpha, s.power_law->alpha, 1e-9) << scale;
      EXPECT_NEAR(other.power_law->sigma_min / scale / s.power_law->sigma_min, 1, 1e-9) << scale;
      EXPECT_NEAR(other.marchenko_pastur->noise / scale / s.marchenko_pastur->noise, 1, 1e-9)
          << scale;
      EXPECT_EQ(other.marchenko_pastur->n_above, s.marchenko_pastur->n_above) << scale;
    }
  }
}

TEST(Spectrum, OfAMatrixWithNanSaysWhereAndComputesNothing) {
  auto a = normal_matrix<float>(6, 4, 1);
  a(2, 3) = std::numeric_limits<float>::quiet_NaN();
  const Spectrum s = spectrum(a);
  EXPECT_EQ(s.statistics.first_nan, (MatrixPosition{2, 3}));
  EXPECT_FALSE(s.spectral_norm);
  EXPECT_FALSE(s.numerical_rank);
  EXPECT_TRUE(s.top.empty());
  EXPECT_EQ(s.method, "none: an entry is no finite number");
  EXPECT_TRUE(std::isnan(s.frobenius_norm));
  EXPECT_GT(s.statistics.frobenius_norm, 0);  // of the entries that are numbers
}

TEST(Spectrum, ATopOfNoneOrMoreThanThereAreIsTaken) {
  const auto a = normal_matrix<float>(6, 4, 1);
  EXPECT_TRUE(spectrum(a, {.top = 0}).top.empty());
  EXPECT_EQ(spectrum(a, {.top = 100}).top.size(), 4U);
}

// How often an interval holds the exact figure.
struct Coverage {
  int held = 0;
  int all = 0;

  void add(const Estimate& estimate, double exact, const std::string& what) {
    ++all;
    const bool holds = std::abs(estimate.value - exact) <= estimate.error + 1e-9 * std::abs(exact);
    if (holds) ++held;
    if (!holds)
      missed += what + ": " + std::to_string(exact) + " is not " + std::to_string(estimate.value) +
                " +- " + std::to_string(estimate.error) + "\n";
  }

  std::string missed;
};

Tensor<float> corpus_matrix(int kind, Index m, Index n, std::uint64_t seed) {
  const Index k = std::min(m, n);
  const auto count = static_cast<double>(k);
  const auto with = [&](const auto& value) {
    return matrix_with_values<float>(m, n, values_by(k, value), seed);
  };
  switch (kind) {
    case 0:
      return normal_matrix<float>(m, n, seed);
    case 1: {  // noise and spikes, as a trained matrix has them
      auto a = normal_matrix<float>(m, n, seed);
      const auto spikes =
          with([&](double i) { return i < 12 ? 6 * std::sqrt(count) * std::pow(1 + i, -0.7) : 0; });
      for (Index i = 0; i < a.count(); ++i) a.data()[i] += spikes.data()[i];
      return a;
    }
    case 2:
      return with([](double i) { return 1 / (1 + i); });
    case 3:
      return with([](double i) { return 1 / std::sqrt(1 + i); });
    case 4:
      return with([&](double i) { return std::pow(10.0, -3 * i / count); });
    case 5:
      return with([&](double i) { return i < count / 4 ? 3 : i < count / 2 ? 2 : 1; });
    case 6:
      return with([&](double i) { return i < count / 10 ? 1 + i / 10 : 0; });
    default:
      return with([&](double i) { return 1 - i / count; });
  }
}

TEST(Spectrum, IntervalsHoldTheExactValueInNineteenOfTwentyCases) {
  Coverage sums, ranks, values, laws, edges;
  for (int i = 0; i < 40; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const Index m = i % 3 == 0 ? 128 : 96, n = i % 3 == 1 ? 144 : 96;
    const auto a = corpus_matrix(i % 8, m, n, seed);
    const Spectrum exact = spectrum(a, {.exact = true, .top = 2});
    const Spectrum estimate =
        spectrum(a, {.exact_limit = 0, .top = 2, .seed = seed, .probes = 10, .steps = 4});
    ASSERT_FALSE(estimate.is_exact);
    EXPECT_LE(estimate.passes, 8);
    const std::string what = "matrix " + std::to_string(i) + " ";
    for (std::size_t j = 0; j < 2; ++j)
      values.add(estimate.top[j], exact.top[j].value, what + "top");
    values.add(*estimate.stable_rank, exact.stable_rank->value, what + "stable_rank");
    sums.add(*estimate.effective_rank, exact.effective_rank->value, what + "effective_rank");
    if (estimate.marchenko_pastur && exact.marchenko_pastur) {
      sums.add({estimate.marchenko_pastur->noise, estimate.noise_error},
               exact.marchenko_pastur->noise, what + "noise");
      edges.add({static_cast<double>(estimate.marchenko_pastur->n_above), estimate.n_above_error},
                static_cast<double>(exact.marchenko_pastur->n_above), what + "n_above");
      edges.add({static_cast<double>(estimate.marchenko_pastur->n_spikes), estimate.n_above_error},
                static_cast<double>(exact.marchenko_pastur->n_spikes), what + "n_spikes");
    }
    if (estimate.power_law && exact.power_law) {
      laws.add({estimate.power_law->alpha, estimate.alpha_error}, exact.power_law->alpha,
               what + "alpha");
    }
    ranks.add(*estimate.numerical_rank, exact.numerical_rank->value, what + "numerical_rank");
    for (std::size_t j = 0; j < energy_shares.size(); ++j) {
      ranks.add((*estimate.energy_ranks)[j], (*exact.energy_ranks)[j].value, what + "energy_rank");
    }
  }
  for (const Coverage* coverage : {&values, &sums, &ranks, &laws, &edges}) {
    EXPECT_GE(coverage->all, 30);
    EXPECT_GE(coverage->held, 0.95 * coverage->all) << coverage->missed;
  }
}

TEST(Spectrum, AnEstimateTakesAtMostTwentyFivePasses) {
  const auto a = normal_matrix<float>(900, 800, 2);
  const Spectrum s = spectrum(a, {.top = 5});
  EXPECT_FALSE(s.is_exact);
  // One more for the statistics.
  EXPECT_LE(s.passes + 1, 25);
  // Random matrices of this size have sigma_1 within 2% of sqrt(m) + sqrt(n).
  EXPECT_NEAR(s.spectral_norm->value, std::sqrt(900.0) + std::sqrt(800.0), 0.02 * 58.3);
  EXPECT_NEAR(s.marchenko_pastur->noise, 1, s.noise_error + 0.01);
  double counted = 0;
  for (const Estimate& bin : s.density->counts) counted += bin.value;
  EXPECT_EQ(counted, 800);
}

TEST(Spectrum, RefusesWhatIsNoMatrixAndOptionsOutOfRange) {
  using testing::thrown_by;
  EXPECT_EQ(thrown_by<ShapeError>([] {
              spectrum(Tensor<float>(Shape{2, 2, 2}));
            }),
            "spectrum: a is 2x2x2, but it must be a matrix");
  EXPECT_EQ(thrown_by<ArgumentError>([] {
              spectrum(Tensor<float>({2, 2}), {.top = -1});
            }),
            "spectrum: top is -1, bootstrap 0 and exact_limit 512, but none may be negative");
  EXPECT_EQ(thrown_by<ArgumentError>([] {
              spectrum(Tensor<float>({2, 2}), {.probes = 1});
            }),
            "spectrum: 1 probe and 12 steps, but it takes at least 2 probes and 1 step");
}

}  // namespace
}  // namespace eckart

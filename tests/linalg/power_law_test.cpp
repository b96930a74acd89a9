#include "eckart/linalg/power_law.h"

#include "eckart/core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

// Singular values whose squares follow lambda^-alpha from 1 on.
Tensor<double> pareto(Index n, double alpha, std::uint64_t seed) {
  Tensor<double> sigma(Shape{n});
  for (Index i = 0; i < n; ++i) {
    const double u = 1 - RandomStream(seed).uniform(static_cast<std::uint64_t>(i));
    sigma(i) = std::sqrt(std::pow(u, -1 / (alpha - 1)));
  }
  return sigma;
}

struct Plain {
  double alpha = 0, xmin = 0, distance = std::numeric_limits<double>::infinity();
};

// The definition, with all pairs looked at.
Plain plain_fit(const Tensor<double>& sigma) {
  std::vector<double> x;
  for (Index i = 0; i < sigma.count(); ++i) x.push_back(sigma(i) * sigma(i));
  std::sort(x.begin(), x.end());
  Plain best;
  for (std::size_t first = 0; first + 1 < x.size(); ++first) {
    if (first > 0 && x[first] == x[first - 1]) continue;
    const auto n = static_cast<double>(x.size() - first);
    double sum = 0;
    for (std::size_t i = first; i < x.size(); ++i) sum += std::log(x[i] / x[first]);
    if (sum / n < 1e-5) continue;
    const double slope = n / sum;
    double distance = 0;
    for (std::size_t i = first; i < x.size(); ++i) {
      const double law = 1 - std::pow(x[i] / x[first], -slope);
      const auto k = static_cast<double>(i - first);
      distance = std::max({distance, law - k / n, (k + 1) / n - law});
    }
    if (distance < best.distance) best = {1 + slope, x[first], distance};
  }
  return best;
}

TEST(PowerLaw, IsThatOfThePlainDefinition) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Tensor<double> mixed = pareto(150, 2.5, seed);
    for (Index i = 0; i < 60; ++i)
      mixed(i) *= 0.3 * RandomStream(9).uniform(static_cast<std::uint64_t>(i));
    for (const Tensor<double>& sigma : {pareto(200, 3, seed), mixed}) {
      const auto law = power_law(sigma);
      const Plain plain = plain_fit(sigma);
      ASSERT_TRUE(law);
      EXPECT_NEAR(law->ks_distance, plain.distance, 1e-12);
      EXPECT_NEAR(law->alpha, plain.alpha, 1e-9);
      EXPECT_NEAR(law->xmin, plain.xmin, 1e-9 * plain.xmin);
    }
  }
}

TEST(PowerLaw, FindsTheExponentWithinItsStandardError) {
  for (const double alpha : {1.8, 2.5, 4.0}) {
    const auto law = power_law(pareto(2000, alpha, 7));
    ASSERT_TRUE(law);
    // 4 standard errors: the xmin is chosen, too.
    EXPECT_NEAR(law->alpha, alpha, 4 * law->standard_error);
    EXPECT_DOUBLE_EQ(law->standard_error,
                     (law->alpha - 1) / std::sqrt(static_cast<double>(law->n_tail)));
  }
}

TEST(PowerLaw, DoesNotDependOnTheScale) {
  const Tensor<double> sigma = pareto(300, 3, 4);
  const auto law = power_law(sigma);
  for (const double scale : {1e-30, 1e-5, 1e30}) {
    Tensor<double> scaled(sigma);
    for (Index i = 0; i < scaled.count(); ++i) scaled(i) *= scale;
    const auto other = power_law(scaled);
    ASSERT_TRUE(law && other);
    EXPECT_NEAR(other->alpha, law->alpha, 1e-9);
    EXPECT_EQ(other->n_tail, law->n_tail);
    EXPECT_NEAR(other->xmin / (law->xmin * scale * scale), 1, 1e-9);
    EXPECT_NEAR(other->sigma_min / (law->sigma_min * scale), 1, 1e-9);
  }
}

// The square of 1e200 is beyond double, that of 1e-200 below it; their logarithms are neither.
TEST(PowerLaw, OfValuesWhoseSquaresLeaveTheRangeOfDouble) {
  const Tensor<double> sigma = pareto(300, 3, 4);
  const auto law = power_law(sigma);
  ASSERT_TRUE(law);
  EXPECT_NEAR(law->sigma_min * law->sigma_min / law->xmin, 1, 1e-12);
  for (const double scale : {1e-200, 1e200}) {
    Tensor<double> scaled(sigma);
    for (Index i = 0; i < scaled.count(); ++i) scaled(i) *= scale;
    const auto other = power_law(scaled);
    ASSERT_TRUE(other);
    EXPECT_NEAR(other->alpha, law->alpha, 1e-9);
    EXPECT_NEAR(other->sigma_min / scale / law->sigma_min, 1, 1e-9);
    EXPECT_EQ(other->xmin, scale > 1 ? std::numeric_limits<double>::infinity() : 0);
  }
}

TEST(PowerLaw, PassesOverTheValuesUpToTheFloor) {
  Tensor<double> sigma = pareto(100, 3, 4);
  const auto law = power_law(sigma);
  Tensor<double> longer(Shape{130});
  for (Index i = 0; i < 100; ++i) longer(i) = sigma(i);
  for (Index i = 100; i < 130; ++i) longer(i) = i % 2 == 0 ? 0 : 1e-9;
  const auto other = power_law(longer, {.floor = 1e-8});
  ASSERT_TRUE(law && other);
  EXPECT_EQ(other->alpha, law->alpha);
  EXPECT_EQ(other->n_values, 100);
}

TEST(PowerLaw, IsAbsentWhereNothingDiffers) {
  EXPECT_FALSE(power_law(Tensor<double>(Shape{0})));
  EXPECT_FALSE(power_law(Tensor<double>(Shape{1}, 2.0)));
  EXPECT_FALSE(power_law(Tensor<double>(Shape{50}, 2.0)));
  EXPECT_FALSE(power_law(Tensor<double>(Shape{50})));
}

TEST(PowerLaw, IsPlausibleForItsOwnSampleAndNotForUniformValues) {
  const auto law = power_law(pareto(200, 2.5, 3), {.bootstrap = 40, .seed = 1});
  ASSERT_TRUE(law && law->p_value);
  EXPECT_GT(*law->p_value, 0.1);
  // Two lumps: no tail of them is a straight line.
  Tensor<double> lumps(Shape{300});
  for (Index i = 0; i < 300; ++i)
    lumps(i) = (i % 2 == 0 ? 1 : 5) + 1e-3 * static_cast<double>(i % 7);
  const auto none = power_law(lumps, {.bootstrap = 40, .seed = 1});
  ASSERT_TRUE(none && none->p_value);
  EXPECT_LT(*none->p_value, 0.1);
  const auto again = power_law(lumps, {.bootstrap = 40, .seed = 1});
  EXPECT_EQ(again->p_value, none->p_value);
}

TEST(PowerLaw, RefusesWhatIsNoListOfSingularValues) {
  using testing::thrown_by;
  EXPECT_EQ(thrown_by<ShapeError>([] {
              power_law(Tensor<double>(Shape{2, 2}));
            }),
            "power_law: singular_values is 2x2, but it must be a vector");
  EXPECT_EQ(thrown_by<ArgumentError>([] {
              power_law(Tensor<double>::vector({1, -1}));
            }),
            "power_law: singular_values has -1.000000 at 1, but singular values are finite and at "
            "least 0");
  EXPECT_EQ(
      thrown_by<ArgumentError>([] { power_law(Tensor<double>::vector({1}), {.bootstrap = -1}); }),
      "power_law: bootstrap is -1, but it must be at least 0");
}

}  // namespace
}  // namespace eckart

#include "eckart/linalg/ridge.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/lstsq.h"
#include "eckart/linalg/solve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/linalg/hard_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::difference;
using testing::product;
using testing::transposed;

TEST(Ridge, OfASmallMatrix) {
  // a^T a + 1 = [2 0; 0 5], a^T b = (1, 4).
  const Ridge<double> fit =
      ridge(Tensor<double>::matrix({{1, 0}, {0, 2}}), Tensor<double>::vector({1, 2}), 1);
  EXPECT_TRUE(testing::is_near(fit.x, Tensor<double>::vector({0.5, 0.8}), {.absolute = 1e-15}));
  EXPECT_NEAR(fit.residual_norm, std::hypot(0.5, 0.4), 1e-15);
  EXPECT_EQ(fit.strength, 1);
  EXPECT_EQ(fit.rank, 2);
  EXPECT_NEAR(fit.condition_number, 2, 1e-15);
}

// The definition, on matrices whose normal equations are well-conditioned.
Tensor<double> by_normal_equations(const Tensor<double>& a, const Tensor<double>& b,
                                   double strength) {
  Tensor<double> gram = product(transposed(a), a);
  for (Index i = 0; i < gram.size(0); ++i) gram(i, i) += strength;
  return solve(gram, product(transposed(a), b));
}

TEST(Ridge, SolvesTheRegularisedNormalEquations) {
  for (const auto& [m, n] : {std::pair<Index, Index>{20, 5}, {5, 20}, {9, 9}}) {
    const Tensor<double> a = testing::random_matrix<double>(m, n);
    const Tensor<double> b = testing::random_matrix<double>(m, 3, 2);
    for (const double strength : {0.5, 10.0}) {
      EXPECT_LE(difference(ridge(a, b, strength).x, by_normal_equations(a, b, strength)), 1e-13);
    }
  }
}

TEST(Ridge, OfStrengthZeroIsLeastSquares) {
  const Tensor<double> a =
      product(testing::random_matrix<double>(12, 3), testing::random_matrix<double>(3, 7, 2));
  const Tensor<double> b = testing::random_matrix<double>(12, 2, 3);
  EXPECT_LE(difference(ridge(a, b, 0).x, lstsq(a, b).x), 1e-13);
}

TEST(Ridge, HugeAndTinyScalesAreHarmless) {
  for (const double scale : {1e-140, 1e140}) {
    const Tensor<double> a = Tensor<double>::matrix({{scale, 0}, {0, 2 * scale}});
    const Ridge<double> fit = ridge(a, Tensor<double>::vector({scale, 2 * scale}), scale * scale);
    EXPECT_TRUE(testing::is_near(fit.x, Tensor<double>::vector({0.5, 0.8}), {.absolute = 1e-15}));
  }
}

// Leaving out each row in turn, literally.
double loo_by_hand(const Tensor<double>& a, const Tensor<double>& b, double strength) {
  const Index m = a.size(0);
  double sum = 0;
  for (Index out = 0; out < m; ++out) {
    Tensor<double> rest({m - 1, a.size(1)});
    Tensor<double> sides({m - 1, b.size(1)});
    for (Index row = 0; row + 1 < m; ++row) {
      const Index from = row < out ? row : row + 1;
      for (Index j = 0; j < a.size(1); ++j) rest(row, j) = a(from, j);
      for (Index j = 0; j < b.size(1); ++j) sides(row, j) = b(from, j);
    }
    const Tensor<double> x = ridge(rest, sides, strength).x;
    for (Index j = 0; j < b.size(1); ++j) {
      double predicted = 0;
      for (Index i = 0; i < a.size(1); ++i) predicted += a(out, i) * x(i, j);
      sum += (b(out, j) - predicted) * (b(out, j) - predicted);
    }
  }
  return sum / static_cast<double>(m * b.size(1));
}

TEST(RidgeCv, ErrorsAreThoseOfLeavingEachRowOut) {
  for (const auto& [m, n] : {std::pair<Index, Index>{15, 4}, {6, 14}, {8, 8}}) {
    const Tensor<double> a = testing::random_matrix<double>(m, n);
    const Tensor<double> b = testing::random_matrix<double>(m, 2, 2);
    const RidgeCv<double> fit = ridge_cv(a, b, {.strengths = {1e-3, 0.1, 1, 30}});
    ASSERT_EQ(fit.loo_errors.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      const double expected = loo_by_hand(a, b, fit.strengths[i]);
      // The closed form divides by 1 - h, which is above 1e-4 here.
      EXPECT_NEAR(fit.loo_errors[i], expected, 1e-10 * expected) << m << "x" << n << ", " << i;
    }
    const auto best = std::min_element(fit.loo_errors.begin(), fit.loo_errors.end());
    EXPECT_EQ(fit.strength, fit.strengths[static_cast<std::size_t>(best - fit.loo_errors.begin())]);
    EXPECT_TRUE(testing::is_near(fit.x, ridge(a, b, fit.strength).x, {.absolute = 1e-14}));
  }
}

TEST(RidgeCv, NoiseAsksForStrengthAndExactDataForNone) {
  const Tensor<double> a = testing::random_matrix<double>(40, 20);
  const Tensor<double> exact = product(a, testing::random_matrix<double>(20, 1, 2));
  const RidgeCv<double> of_exact = ridge_cv(a, exact);
  const RidgeCv<double> of_noise = ridge_cv(a, testing::random_matrix<double>(40, 1, 3));
  EXPECT_EQ(of_exact.strengths.size(), 25U);
  EXPECT_EQ(of_exact.strength, of_exact.strengths.front());
  EXPECT_GT(of_noise.strength, 1e6 * of_exact.strength);
}

TEST(RidgeCv, ARowThatOthersCannotPredictIsAnInfiniteError) {
  // The first row alone has the first column: without strength, nothing is known of it.
  const Tensor<double> a = Tensor<double>::matrix({{1, 0}, {0, 1}, {0, 2}});
  const RidgeCv<double> fit = ridge_cv(a, Tensor<double>::vector({1, 1, 2}), {.strengths = {0, 1}});
  EXPECT_TRUE(std::isinf(fit.loo_errors[0]));
  EXPECT_EQ(fit.strength, 1);
}

TEST(RidgeCv, OfAZeroMatrixIsZero) {
  const RidgeCv<float> fit = ridge_cv(Tensor<float>(Shape{3, 2}), Tensor<float>::vector({1, 2, 3}));
  EXPECT_TRUE(testing::has_elements(fit.x.view(), {0, 0}));
  EXPECT_NEAR(fit.loo_errors[0], 14.0 / 3, 1e-6);
  EXPECT_EQ(fit.rank, 0);
  EXPECT_TRUE(std::isinf(fit.condition_number));
}

TEST(RidgeCv, NamesTravel) {
  const Tensor<float> a = testing::random_matrix<float>(5, 3).named({"sample", "feature"});
  EXPECT_EQ(to_string(ridge_cv(a, Tensor<float>(Shape{5})).x.shape()), "3 (feature)");
  EXPECT_EQ(to_string(ridge(a, Tensor<float>(Shape{5}), 1).x.shape()), "3 (feature)");
}

TEST(Ridge, BadArgumentsAreRefused) {
  const Tensor<double> a({2, 2});
  const Tensor<double> b({2});
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { ridge(a, b, -1); }),
            "ridge: strength is -1, but it must be a number from 0");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] {
              ridge_cv(a, b, {.strengths = {1, std::numeric_limits<double>::infinity()}});
            }),
            "ridge_cv: strength is inf, but it must be a number from 0");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] { ridge(a, Tensor<double>(Shape{3}), 1); }),
            "ridge: a is 2x2 and b is 3, but b's 3 elements must equal a's 2 rows");
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              ridge_cv(Tensor<double>(Shape{0, 2}), Tensor<double>(Shape{0}));
            }),
            "ridge_cv: a is 0x2, but there must be a row to leave out");
  EXPECT_EQ(
      testing::thrown_by<ArgumentError>([&] {
        ridge_cv(Tensor<double>({2, 2}, 1e200), b);
      }),
      "ridge_cv: a's largest singular value is 2e+200, but strengths in the units of its square "
      "must be in the range of a double\n"
      "  hint: a times a constant has the same answers divided by it");
}

}  // namespace
}  // namespace eckart

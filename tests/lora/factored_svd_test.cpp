#include "eckart/lora/factored_svd.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/linalg/hard_matrices.h"
#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::departure;
using testing::difference;
using testing::eps;
using testing::frobenius;
using testing::is_near;
using testing::product;
using testing::random_matrix;
using testing::thrown_by;

Tensor<double> wide(const Tensor<float>& a, double factor = 1) {
  Tensor<double> result(a.shape());
  for_each_element([&](double& to, const float& x) { to = static_cast<double>(x) * factor; },
                   result.view(), a.view());
  return result;
}

Tensor<float> times(const Tensor<float>& a, double factor) {
  Tensor<float> result = a;
  for_each_element([&](float& x) { x = static_cast<float>(static_cast<double>(x) * factor); },
                   result.view());
  return result;
}

Tensor<double> rebuilt(const Svd<double>& svd) {
  Tensor<double> u = svd.u;
  for (Index i = 0; i < u.size(0); ++i) {
    for (Index j = 0; j < u.size(1); ++j) u(i, j) *= svd.s(j);
  }
  return product(u, svd.vt);
}

// Factorisations are backward stable to small multiples of the size times eps (Higham, Accuracy and
// Stability, 2002, chapter 19); 20 is such a multiple.
double bound_of(Index m, Index n, Index r) {
  return 20 * eps<double>() * static_cast<double>(std::max({m, n, r}));
}

TEST(FactoredSvd, OfAProductThatCanBeReadOff) {
  // 2 [[3 0] [0 4] [0 0]] [[0 1] [1 0]] = [[0 6] [8 0] [0 0]]: values 8 and 6.
  const auto b = Tensor<float>::matrix({{3, 0}, {0, 4}, {0, 0}});
  const auto a = Tensor<float>::matrix({{0, 1}, {1, 0}});
  const Svd<double> found = factored_svd(b, a, 2);
  EXPECT_TRUE(is_near(found.s, Tensor<double>::vector({8, 6}), {.relative = 1e-15}));
  EXPECT_TRUE(
      is_near(found.u, Tensor<double>::matrix({{0, 1}, {1, 0}, {0, 0}}), {.absolute = 1e-15}));
  EXPECT_TRUE(is_near(found.vt, Tensor<double>::matrix({{1, 0}, {0, 1}}), {.absolute = 1e-15}));
}

TEST(FactoredSvd, RebuildsTheProductWithOrthonormalFactorsWhateverTheShapes) {
  const std::vector<std::vector<Index>> shapes = {{1, 1, 1},   {40, 3, 30}, {3, 40, 2},
                                                  {5, 7, 20},  {64, 9, 64}, {2, 2, 9},
                                                  {30, 1, 50}, {17, 16, 16}};
  for (const auto& shape : shapes) {
    const Index m = shape[0], r = shape[1], n = shape[2];
    SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(r) + "x" + std::to_string(n));
    const Tensor<float> b = random_matrix<float>(m, r, 1);
    const Tensor<float> a = random_matrix<float>(r, n, 2);
    const Svd<double> found = factored_svd(b, a, -0.5);
    const Index k = std::min({m, n, r});
    ASSERT_EQ(found.u.shape(), (Shape{m, k}));
    ASSERT_EQ(found.s.shape(), (Shape{k}));
    ASSERT_EQ(found.vt.shape(), (Shape{k, n}));
    const Tensor<double> expected = product(wide(b, -0.5), wide(a));
    EXPECT_LE(difference(rebuilt(found), expected),
              bound_of(m, n, r) * frobenius(wide(b)) * frobenius(wide(a)));
    EXPECT_LE(departure(found.u), bound_of(m, n, r));
    EXPECT_LE(departure(testing::transposed(found.vt)), bound_of(m, n, r));
    for (Index i = 0; i + 1 < k; ++i) EXPECT_GE(found.s(i), found.s(i + 1));
    EXPECT_TRUE(is_near(factored_svd_values(b, a, -0.5), found.s,
                        {.absolute = bound_of(m, n, r) * found.s(0)}));
  }
}

TEST(FactoredSvd, OfDependentColumnsHasZerosBehindItsRank) {
  // Rank 2 in factors of 6: the columns of b are two, three times over.
  const Tensor<float> b = product(random_matrix<float>(30, 2, 3),
                                  Tensor<float>::matrix({{1, 0, 2, 0, 4, 0}, {0, 1, 0, 2, 0, 4}}));
  const Tensor<float> a = random_matrix<float>(6, 25, 4);
  const Svd<double> found = factored_svd(b, a);
  EXPECT_GT(found.s(1), 1);
  for (Index i = 2; i < 6; ++i)
    EXPECT_LE(found.s(i), bound_of(30, 25, 6) * frobenius(wide(b)) * frobenius(wide(a)));
  EXPECT_LE(departure(found.u), bound_of(30, 25, 6));
}

TEST(FactoredSvd, OfAFactorThatIsZeroIsZero) {
  // PEFT starts with b = 0.
  const Svd<double> found = factored_svd(Tensor<float>(Shape{8, 4}), random_matrix<float>(4, 6), 2);
  EXPECT_TRUE(is_near(found.s, Tensor<double>(Shape{4})));
  EXPECT_LE(departure(found.u), bound_of(8, 6, 4));
  EXPECT_TRUE(is_near(factored_svd(random_matrix<float>(8, 4), random_matrix<float>(4, 6), 0).s,
                      Tensor<double>(Shape{4})));
}

struct Scales {
  double b, a, scale;
};

TEST(FactoredSvd, TinyAndHugeScalesMultiplyTheValuesAndNothingElse) {
  const Tensor<float> b = random_matrix<float>(20, 5, 5);
  const Tensor<float> a = random_matrix<float>(5, 30, 6);
  const Svd<double> expected = factored_svd(b, a);
  const Scales list[] = {{1, 1, 1e-30},         {1, 1, 1e30},       {1e-30, 1, 1},   {1, 1e30, 1},
                         {1e-30, 1e-30, 1e-30}, {1e30, 1e30, 1e30}, {1e-30, 1e30, 1}};
  for (const Scales& scales : list) {
    SCOPED_TRACE(scales.b * scales.a * scales.scale);
    const Svd<double> found = factored_svd(times(b, scales.b), times(a, scales.a), scales.scale);
    const double factor = scales.b * scales.a * scales.scale;
    // The factors of the test were rounded to float: 2^-24 each, which the values can magnify by
    // their number at most.
    for (Index i = 0; i < 5; ++i)
      EXPECT_NEAR(found.s(i) / factor, expected.s(i), 5e-7 * expected.s(0));
    EXPECT_LE(departure(found.u), bound_of(20, 30, 5));
  }
}

TEST(FactoredSvd, TermsOfUnlikeFactorsAreAllExact) {
  // Two terms of length 1: 1e12 x 1e-12 and 1 x 1. Unbalanced, the second would be off by 1e-4.
  const auto b = Tensor<float>::matrix({{0x1p40F, 0}, {0x1p40F, 1}});
  const auto a = Tensor<float>::matrix({{0x1p-40F, 0}, {0, 1}});
  // b a = [[1 0] [1 1]], whose values are the golden ratio and its reciprocal.
  const double golden = (1 + std::sqrt(5.0)) / 2;
  EXPECT_TRUE(is_near(factored_svd_values(b, a), Tensor<double>::vector({golden, 1 / golden}),
                      {.relative = 1e-14}));
}

TEST(FactoredSvd, OfNothingHasNoValues) {
  EXPECT_EQ(factored_svd_values(Tensor<float>(Shape{3, 0}), Tensor<float>(Shape{0, 4})).count(), 0);
}

TEST(FactoredSvd, RefusesFactorsThatDoNotGoTogetherAndWhatIsNoNumber) {
  const Tensor<float> b(Shape{3, 2});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              factored_svd(b, Tensor<float>(Shape{3, 4}));
            }),
            "factored_svd: b is 3x2 and a is 3x4, but b's columns must be as many as a's rows");
  Tensor<float> bad(Shape{2, 4});
  bad(1, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(thrown_by<ArgumentError>([&] { factored_svd(b, bad); }),
            "factored_svd: a has a NaN at (1, 2), but every element must be finite");
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              factored_svd(b, Tensor<float>(Shape{2, 4}), std::numeric_limits<double>::infinity());
            }),
            "factored_svd: scale is no finite number");
}

TEST(BalancedFactors, HaveTheRootOfEachValueOnBothSides) {
  const auto b = Tensor<float>::matrix({{4, 0}, {0, 9}});
  const auto a = Tensor<float>::matrix({{1, 0}, {0, 1}});
  const LowRankFactors<float> one = balanced_factors(factored_svd(b, a), 1);
  EXPECT_TRUE(is_near(one.b, Tensor<float>::matrix({{0}, {3}}), {.absolute = 1e-6}));
  EXPECT_TRUE(is_near(one.a, Tensor<float>::matrix({{0, 3}}), {.absolute = 1e-6}));
}

TEST(BalancedFactors, RefuseARankThatIsNotThereAndValuesBeyondFloat) {
  const Svd<double> svd =
      factored_svd(Tensor<float>::matrix({{1e30F}}), Tensor<float>::matrix({{1e30F}}), 1e30);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { balanced_factors(svd, 2); }),
            "balanced_factors: rank is 2, but it must be from 0 to 1");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { balanced_factors(svd, 1); }),
            "balanced_factors: an entry is too large for a float: the largest singular value is "
            "beyond 1e76");
}

TEST(ProductDistance, IsThatOfTheProductsThemselves) {
  const Tensor<float> b = random_matrix<float>(12, 3, 1), a = random_matrix<float>(3, 9, 2);
  const Tensor<float> d = random_matrix<float>(12, 5, 3), c = random_matrix<float>(5, 9, 4);
  const double expected = difference(product(wide(b, 2), wide(a)), product(wide(d, 0.25), wide(c)));
  EXPECT_NEAR(product_distance({b, a, 2}, {d, c, 0.25}), expected, 1e-13 * expected);
  EXPECT_NEAR(product_norm({b, a, 2}), frobenius(product(wide(b, 2), wide(a))), 1e-13 * expected);
}

TEST(ProductDistance, SeesWhatRoundingToBf16Changes) {
  // One entry of one factor changed by 2^-8: the distance is 2^-8 times the length of a's row.
  const auto b = Tensor<float>::matrix({{1}, {1}});
  const auto changed = Tensor<float>::matrix({{1}, {1.00390625F}});
  const auto a = Tensor<float>::matrix({{3, 4}});
  EXPECT_NEAR(product_distance({changed, a, 1}, {b, a, 1}), 5.0 / 256, 1e-15);
  EXPECT_LE(product_distance({b, a, 1}, {b, a, 1}), 1e-15);
}

TEST(ProductDistance, RefusesProductsOfOtherShapes) {
  const Tensor<float> b(Shape{3, 2}), a(Shape{2, 4}), other(Shape{2, 5});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              product_distance({b, a, 1}, {b, other, 1});
            }),
            "product_distance: x is 3x4 and y is 3x5, but they must have one shape");
}

}  // namespace
}  // namespace eckart

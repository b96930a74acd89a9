#include "tests/matchers.h"

#include "eckart/core/tensor.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace eckart::testing {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::string message(const ::testing::AssertionResult& result) { return result.message(); }

TEST(Matchers, EqualArraysAreNear) {
  const auto a = Tensor<double>::matrix({{1, 2}, {3, infinity}});
  EXPECT_TRUE(is_near(a, a));
  EXPECT_TRUE(is_near(a.view(), a.view()));
}

TEST(Matchers, AWrongElementIsNamedWithBothValuesAndTheBound) {
  const auto expected = Tensor<double>::matrix({{1, 2, 3}, {4, 5, 6}});
  const auto actual = Tensor<double>::matrix({{1, 2.25, 3}, {4, 5, 7.5}});
  const auto result = is_near(actual, expected, {.absolute = 0.125});
  EXPECT_FALSE(result);
  EXPECT_EQ(message(result),
            "2 of 6 elements beyond the bound; the worst, at (1, 2), is 7.5 and must be within "
            "0.125 of 6");
}

TEST(Matchers, TheBoundItselfIsStillNear) {
  const auto expected = Tensor<double>::vector({8, -8});
  const auto actual = Tensor<double>::vector({9, -9});
  EXPECT_TRUE(is_near(actual, expected, {.absolute = 1}));
  EXPECT_TRUE(is_near(actual, expected, {.relative = 0.125}));
  EXPECT_TRUE(is_near(actual, expected, {.absolute = 0.5, .relative = 0.0625}));
  EXPECT_FALSE(is_near(actual, expected, {.absolute = 0.999}));
  EXPECT_FALSE(is_near(actual, expected, {.relative = 0.124}));
}

TEST(Matchers, NanIsNearNothingWhateverTheBound) {
  const auto number = Tensor<double>::vector({0, 1});
  const auto with_nan = Tensor<double>::vector({0, nan});
  const Bound any{.absolute = infinity};
  EXPECT_FALSE(is_near(with_nan, number, any));
  EXPECT_FALSE(is_near(number, with_nan, any));
  EXPECT_FALSE(is_near(with_nan, with_nan, any));
  EXPECT_EQ(
      message(is_near(with_nan, number, {.absolute = 2})),
      "1 of 2 elements beyond the bound; the worst, at (1), is nan and must be within 2 of 1");
}

TEST(Matchers, InfinityIsNearItselfAlone) {
  const auto one = Tensor<double>::vector({1});
  const auto plus = Tensor<double>::vector({infinity});
  const auto minus = Tensor<double>::vector({-infinity});
  const Bound any{.absolute = 1e300, .relative = 1};
  EXPECT_TRUE(is_near(plus, plus, any));
  EXPECT_FALSE(is_near(plus, minus, any));
  EXPECT_FALSE(is_near(plus, one, any));
  EXPECT_FALSE(is_near(one, plus, any));
}

TEST(Matchers, OtherSizesAreNotNear) {
  const auto row = Tensor<float>::matrix({{1, 2}});
  const auto column = Tensor<float>::matrix({{1}, {2}});
  EXPECT_EQ(message(is_near(row, column)), "actual is 1x2 and expected is 2x1");
}

TEST(Matchers, ViewsAreComparedInTheirOwnOrder) {
  const auto a = Tensor<float>::matrix({{1, 2}, {3, 4}});
  const auto b = Tensor<float>::matrix({{1, 3}, {2, 4}});
  EXPECT_TRUE(is_near(a.view().transpose(), b.view()));
  EXPECT_FALSE(is_near(a.view(), b.view()));
  EXPECT_TRUE(has_elements(a.view().transpose(), {1, 3, 2, 4}));
  EXPECT_FALSE(has_elements(a.view().transpose(), {1, 2, 3, 4}));
  EXPECT_EQ(message(has_elements(a.view(), {1, 2, 3})),
            "actual is 2x2, and expected are 3 elements");
}

}  // namespace
}  // namespace eckart::testing

#include "eckart/linalg/power_iteration.h"

#include "eckart/core/errors.h"

#include <cmath>

#include "tests/linalg/hard_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

TEST(PowerIteration, FindsTheDominantValue) {
  const PowerIteration<double> found = power_iteration(Tensor<double>::matrix({{2, 1}, {1, 2}}));
  EXPECT_TRUE(found.converged);
  // The error of the value is residual^2 over the gap of 2, the residual at most 1.5e-8 * 3.
  EXPECT_NEAR(found.value, 3, 1e-14);
  EXPECT_NEAR(found.vector(0), std::sqrt(0.5), 1e-8);
  EXPECT_NEAR(found.vector(1), std::sqrt(0.5), 1e-8);
  EXPECT_LE(found.residual, 1.5e-8 * 3);
  // The error falls by 3 an iteration: 1e-8 takes about 17.
  EXPECT_LE(found.iterations, 40);
}

TEST(PowerIteration, FindsANegativeValueOfAMatrixThatIsNotSymmetric) {
  const PowerIteration<double> found =
      power_iteration(Tensor<double>::matrix({{-5, 1}, {0, 2}}), {.tolerance = 1e-13});
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.value, -5, 1e-12);
  EXPECT_NEAR(found.vector(0), 1, 1e-12);
}

TEST(PowerIteration, SaysWhenItDoesNotConverge) {
  const PowerIteration<double> rotation =
      power_iteration(Tensor<double>::matrix({{0, -1}, {1, 0}}), {.max_iterations = 50});
  EXPECT_FALSE(rotation.converged);
  EXPECT_EQ(rotation.iterations, 50);
  EXPECT_NEAR(rotation.residual, 1, 1e-12);
  const PowerIteration<float> opposite =
      power_iteration(Tensor<float>::matrix({{1, 0}, {0, -1}}), {.max_iterations = 50});
  EXPECT_FALSE(opposite.converged);
}

TEST(PowerIteration, ASeedGivesOneResult) {
  const Tensor<float> a = testing::random_matrix<float>(12, 12);
  const PowerIterationOptions options{.max_iterations = 3, .seed = 4};
  EXPECT_TRUE(
      testing::is_near(power_iteration(a, options).vector, power_iteration(a, options).vector));
  EXPECT_FALSE(testing::is_near(power_iteration(a, options).vector,
                                power_iteration(a, {.max_iterations = 3, .seed = 5}).vector));
}

TEST(PowerIteration, HugeAndTinyScalesAreHarmless) {
  for (const float scale : {1e-30F, 1e30F}) {
    const PowerIteration<float> found =
        power_iteration(Tensor<float>::matrix({{2 * scale, scale}, {scale, 2 * scale}}));
    EXPECT_TRUE(found.converged);
    EXPECT_NEAR(static_cast<double>(found.value / scale), 3, 1e-5);
  }
}

TEST(PowerIteration, AZeroMatrixConvergesAtOnce) {
  const PowerIteration<double> found = power_iteration(Tensor<double>(Shape{3, 3}));
  EXPECT_TRUE(found.converged);
  EXPECT_EQ(found.value, 0);
  EXPECT_EQ(found.iterations, 1);
  EXPECT_NEAR(testing::frobenius(found.vector), 1, 1e-15);
}

TEST(PowerIteration, ANilpotentMatrixHasTheValueZero) {
  const PowerIteration<double> found = power_iteration(Tensor<double>::matrix({{0, 1}, {0, 0}}));
  EXPECT_TRUE(found.converged);
  EXPECT_EQ(found.value, 0);
  EXPECT_TRUE(testing::has_elements(found.vector.view(), {1, 0}));
}

TEST(PowerIteration, BadArgumentsAreRefused) {
  const Tensor<double> a({2, 2});
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { power_iteration(a, {.max_iterations = 0}); }),
            "power_iteration: max_iterations is 0, but it must be at least 1");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { power_iteration(a, {.tolerance = -1}); }),
            "power_iteration: tolerance is -1, but it must be a number from 0");
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              power_iteration(Tensor<double>(Shape{0, 0}));
            }),
            "power_iteration: a is 0x0, but it must have an element");
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              power_iteration(Tensor<double>(Shape{1, 2}));
            }),
            "power_iteration: a is 1x2, but it must have as many rows as columns");
}

}  // namespace
}  // namespace eckart

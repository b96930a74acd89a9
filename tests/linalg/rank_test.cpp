#include "eckart/linalg/rank.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/svd.h"

#include <cmath>
#include <limits>

#include "tests/linalg/hard_matrices.h"
#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::departure;
using testing::eps;
using testing::frobenius;
using testing::product;
using testing::tensor_of;

template <class T>
Tensor<T> of_rank(Index m, Index n, Index rank) {
  return product(testing::random_matrix<T>(m, rank, 5), testing::random_matrix<T>(rank, n, 6));
}

TEST(MatrixRank, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("matrix_rank")) {
    EXPECT_EQ(matrix_rank(tensor_of(example.inputs["a"])), example.expect.get<Index>());
  }
}

TEST(MatrixRank, IsThatOfTheFactors) {
  EXPECT_EQ(matrix_rank(of_rank<double>(30, 20, 7)), 7);
  EXPECT_EQ(matrix_rank(of_rank<float>(20, 30, 7)), 7);
  EXPECT_EQ(matrix_rank(testing::random_matrix<float>(1, 9)), 1);
  EXPECT_EQ(matrix_rank(testing::random_matrix<float>(9, 1)), 1);
  EXPECT_EQ(matrix_rank(testing::identity<double>(5)), 5);
}

TEST(MatrixRank, OfAZeroOrEmptyMatrixIsZero) {
  EXPECT_EQ(matrix_rank(Tensor<double>(Shape{3, 4})), 0);
  EXPECT_EQ(matrix_rank(Tensor<double>(Shape{0, 4})), 0);
}

TEST(MatrixRank, DoesNotDependOnTheScale) {
  for (const double scale : {1e-300, 1e-30, 1e30, 1e300}) {
    Tensor<double> a = of_rank<double>(12, 9, 4);
    for_each_element([&](double& x) { x *= scale; }, a.view());
    EXPECT_EQ(matrix_rank(a), 4) << scale;
  }
}

TEST(MatrixRank, TheToleranceIsTheLargestValueThatCountsAsZero) {
  Tensor<double> a({3, 3});
  a(0, 0) = 4;
  a(1, 1) = 1;
  a(2, 2) = 1e-8;
  EXPECT_EQ(matrix_rank(a), 3);
  EXPECT_EQ(matrix_rank(a, {.tolerance = 1e-6}), 2);
  EXPECT_EQ(matrix_rank(a, {.tolerance = 1}), 1);
  EXPECT_EQ(matrix_rank(a, {.tolerance = 0}), 3);
}

TEST(MatrixRank, BadTolerancesAreRefused) {
  const Tensor<double> a({2, 2});
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { matrix_rank(a, {.tolerance = -1}); }),
            "matrix_rank: tolerance is -1, but it must be a number from 0");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] {
              null_space(a, {.tolerance = std::numeric_limits<double>::quiet_NaN()});
            }).substr(0, 25),
            "null_space: tolerance is ");
  EXPECT_EQ(testing::thrown_by<ArgumentError>(
                [&] { column_space(a, {.tolerance = std::numeric_limits<double>::infinity()}); }),
            "column_space: tolerance is inf, but it must be a number from 0");
}

TEST(NullSpace, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("null_space")) {
    const Tensor<double> basis = null_space(tensor_of(example.inputs["a"]));
    const Tensor<double> direction = tensor_of(example.expect["direction"]);
    ASSERT_EQ(basis.shape(), (Shape{2, 1}));
    const double length = std::hypot(direction(0), direction(1));
    EXPECT_NEAR(basis(0, 0), direction(0) / length, example.tolerance);
    EXPECT_NEAR(basis(1, 0), direction(1) / length, example.tolerance);
  }
}

template <class T>
void expect_null_space(const Tensor<T>& a, Index rank) {
  const Tensor<T> basis = null_space(a);
  ASSERT_EQ(basis.shape(), (Shape{a.size(1), a.size(1) - rank}));
  // Orthonormal, and a times it is rounding: n eps ||a||, with a margin.
  const double bound = 20 * static_cast<double>(a.size(0) + a.size(1)) * eps<T>();
  EXPECT_LE(departure(basis), bound);
  EXPECT_LE(frobenius(product(a, basis)), bound * frobenius(a));
}

TEST(NullSpace, IsOrthonormalAndIsTakenToZero) {
  expect_null_space(of_rank<double>(20, 12, 5), 5);
  expect_null_space(of_rank<double>(12, 20, 5), 5);
  expect_null_space(of_rank<float>(5, 40, 5), 5);
  expect_null_space(testing::random_matrix<double>(1, 9), 1);
  expect_null_space(testing::random_matrix<double>(9, 1), 1);
  expect_null_space(Tensor<double>(Shape{3, 4}), 0);
  expect_null_space(Tensor<double>(Shape{4, 3}), 0);
  expect_null_space(Tensor<double>(Shape{0, 3}), 0);
  expect_null_space(Tensor<double>(Shape{3, 0}), 0);
}

TEST(NullSpace, HasTheNameOfTheColumns) {
  const Tensor<double> a(Shape({2, 3}, {"equation", "unknown"}));
  EXPECT_EQ(to_string(null_space(a).shape()), "3x3 (unknown, component)");
}

TEST(ColumnSpace, HoldsEveryColumn) {
  const Tensor<double> a = of_rank<double>(20, 12, 5);
  const Tensor<double> basis = column_space(a);
  ASSERT_EQ(basis.shape(), (Shape{20, 5}));
  EXPECT_LE(departure(basis), 1e-13);
  const Tensor<double> again = product(basis, product(testing::transposed(basis), a));
  EXPECT_LE(testing::difference(again, a), 1e-13 * frobenius(a));
  EXPECT_EQ(column_space(Tensor<double>(Shape{3, 4})).shape(), (Shape{3, 0}));
}

TEST(ConditionNumber, IsTheRatioOfSingularValues) {
  EXPECT_DOUBLE_EQ(condition_number(Tensor<double>::matrix({{4, 0}, {0, -0.5}})), 8);
  EXPECT_DOUBLE_EQ(condition_number(Tensor<double>::matrix({{3, 0, 0}, {0, 0, 1}})), 3);
  // The 5x5 Hilbert matrix, from its exact inverse: 4.766072502425608e5.
  EXPECT_NEAR(condition_number(testing::hilbert<double>(5)), 4.766072502425608e5, 1e-4);
}

TEST(ConditionNumber, OfARankDeficientMatrixIsInfinity) {
  EXPECT_TRUE(std::isinf(condition_number(Tensor<double>::matrix({{1, 2}, {2, 4}}))));
  EXPECT_TRUE(std::isinf(condition_number(Tensor<float>(Shape{3, 2}))));
}

TEST(ConditionNumber, OfAnEmptyMatrixIsRefused) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              condition_number(Tensor<float>(Shape{0, 3}));
            }),
            "condition_number: a is 0x3, but an empty matrix has no singular values");
}

}  // namespace
}  // namespace eckart

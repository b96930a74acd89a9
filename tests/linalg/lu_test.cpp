#include "eckart/linalg/lu.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>

#include "tests/linalg/hard_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::eps;

TEST(Lu, ExchangesRowsForTheLargerPivot) {
  const Lu<double> factors = lu(Tensor<double>::matrix({{1, 2}, {4, 4}}));
  EXPECT_TRUE(testing::has_elements(factors.l.view(), {1, 0, 0.25, 1}));
  EXPECT_TRUE(testing::has_elements(factors.u.view(), {4, 4, 0, 1}));
  EXPECT_EQ(factors.permutation, (std::vector<Index>{1, 0}));
}

TEST(Lu, OfASingularMatrixHasAZeroOnTheDiagonal) {
  const Lu<double> factors = lu(Tensor<double>::matrix({{1, 2}, {2, 4}}));
  EXPECT_TRUE(testing::has_elements(factors.u.view(), {2, 4, 0, 0}));
}

template <class T>
void expect_factors_rebuild(const Tensor<T>& a) {
  const Lu<T> factors = lu(a);
  const Index k = std::min(a.size(0), a.size(1));
  ASSERT_EQ(factors.l.shape(), (Shape{a.size(0), k}));
  ASSERT_EQ(factors.u.shape(), (Shape{k, a.size(1)}));
  Tensor<T> permuted = a;
  for (Index row = 0; row < a.size(0); ++row) {
    for (Index column = 0; column < a.size(1); ++column) {
      permuted(row, column) = a(factors.permutation[static_cast<std::size_t>(row)], column);
      if (column < k) {
        EXPECT_LE(std::abs(factors.l(row, column)), T{1});
        if (row == column) {
          EXPECT_EQ(factors.l(row, column), T{1});
        }
        if (row < column) {
          EXPECT_EQ(factors.l(row, column), T{0});
        }
      }
      if (row < k && row > column) {
        EXPECT_EQ(factors.u(row, column), T{0});
      }
    }
  }
  // |P a - l u| <= k eps |l| |u| element by element, and |l| <= 1.
  const double bound = static_cast<double>(std::max<Index>(k, 1)) * eps<T>() *
                       testing::frobenius(factors.l) * testing::frobenius(factors.u);
  EXPECT_LE(testing::difference(testing::product(factors.l, factors.u), permuted), bound);
}

TEST(Lu, OfHardMatricesRebuildsThem) {
  for (const auto& [name, a] : testing::hard_matrices<double>()) {
    SCOPED_TRACE(name);
    expect_factors_rebuild(a);
  }
  for (const auto& [name, a] : testing::hard_matrices<float>()) {
    SCOPED_TRACE(name);
    expect_factors_rebuild(a);
  }
}

TEST(Lu, OfAViewIsThatOfItsCopy) {
  const Tensor<double> a = testing::random_matrix<double>(12, 10);
  const TensorView<const double> view = a.view().slice(0, {0, 12, 2}).transpose();
  EXPECT_TRUE(testing::is_near(lu(view).u, lu(Tensor<double>(view)).u));
}

TEST(Lu, TheNamesOfTheAxesTravelToTheFactors) {
  const Lu<double> factors = lu(Tensor<double>(Shape{3, 2}, 1.0).named({"row", "column"}));
  EXPECT_EQ(to_string(factors.l.shape()), "3x2 (row, ?)");
  EXPECT_EQ(to_string(factors.u.shape()), "2x2 (?, column)");
}

TEST(Lu, BadArgumentsAreRefused) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              lu(Tensor<double>(Shape{2, 2, 2}));
            }),
            "lu: a is 2x2x2, but it must be a matrix");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              lu(Tensor<double>(Shape{2, 2}, std::numeric_limits<double>::infinity()));
            }),
            "lu: a has an Inf at (0, 0), but every element must be finite");
}

}  // namespace
}  // namespace eckart

#include "eckart/linalg/qr.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/linalg/hard_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::departure;
using testing::difference;
using testing::eps;
using testing::frobenius;
using testing::product;

template <class T>
class QrOf : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(QrOf, Types);

template <class T>
double bound_of(const Tensor<T>& a) {
  // Theorem 19.4 of Higham: a small multiple of m k eps; here of max(m, n) eps, which is what
  // rounding comes to in practice.
  return 20 * eps<T>() * static_cast<double>(std::max(a.size(0), a.size(1)));
}

template <class T>
void expect_triangle(const Tensor<T>& r) {
  for (Index row = 0; row < r.size(0); ++row) {
    EXPECT_GE(r(row, row), T{0});
    for (Index column = 0; column < row; ++column) EXPECT_EQ(r(row, column), T{0});
  }
}

TEST(Qr, OfASmallMatrixHasAPositiveDiagonal) {
  const Qr<double> factors = qr(Tensor<double>::matrix({{3, 5}, {4, 10}}));
  // q's first column is (3, 4) / 5; r = q^T a.
  EXPECT_TRUE(
      testing::is_near(factors.r, Tensor<double>::matrix({{5, 11}, {0, 2}}), {.absolute = 1e-14}));
  EXPECT_TRUE(testing::is_near(factors.q, Tensor<double>::matrix({{0.6, -0.8}, {0.8, 0.6}}),
                               {.absolute = 1e-15}));
}

TYPED_TEST(QrOf, HardMatricesRebuildsThem) {
  using T = TypeParam;
  for (const auto& [name, a] : testing::hard_matrices<T>()) {
    SCOPED_TRACE(name);
    const Qr<T> factors = qr(a);
    const Index k = std::min(a.size(0), a.size(1));
    ASSERT_EQ(factors.q.shape(), (Shape{a.size(0), k}));
    ASSERT_EQ(factors.r.shape(), (Shape{k, a.size(1)}));
    expect_triangle(factors.r);
    EXPECT_LE(difference(product(factors.q, factors.r), a), bound_of(a) * frobenius(a));
    EXPECT_LE(departure(factors.q), bound_of(a));
  }
}

TYPED_TEST(QrOf, HardMatricesWithPivotsRebuildsThemAndDescends) {
  using T = TypeParam;
  for (const auto& [name, a] : testing::hard_matrices<T>()) {
    SCOPED_TRACE(name);
    const PivotedQr<T> factors = qr_pivoted(a);
    Tensor<T> permuted = a;
    for (Index row = 0; row < a.size(0); ++row) {
      for (Index column = 0; column < a.size(1); ++column) {
        permuted(row, column) = a(row, factors.permutation[static_cast<std::size_t>(column)]);
      }
    }
    expect_triangle(factors.r);
    EXPECT_LE(difference(product(factors.q, factors.r), permuted), bound_of(a) * frobenius(a));
    EXPECT_LE(departure(factors.q), bound_of(a));
    for (Index i = 1; i < factors.r.size(0); ++i) {
      // Column norms are updated, not computed anew: they descend to rounding.
      EXPECT_LE(
          static_cast<double>(factors.r(i, i)),
          static_cast<double>(factors.r(i - 1, i - 1)) * (1 + 1e-3) + eps<T>() * frobenius(a));
    }
  }
}

TEST(Qr, PivotsShowTheRank) {
  const Tensor<double> a =
      product(testing::random_matrix<double>(30, 4), testing::random_matrix<double>(4, 20, 2));
  const PivotedQr<double> factors = qr_pivoted(a);
  EXPECT_GT(factors.r(3, 3), 0.1);
  EXPECT_LT(factors.r(4, 4), 1e-13);
}

TEST(Qr, PivotsTakeTheLongestColumnFirst) {
  const PivotedQr<double> factors = qr_pivoted(Tensor<double>::matrix({{1, 0, 2}, {0, 3, 0}}));
  EXPECT_EQ(factors.permutation, (std::vector<Index>{1, 2, 0}));
}

TEST(Qr, OfAViewIsThatOfItsCopy) {
  const Tensor<double> a = testing::random_matrix<double>(12, 10);
  const TensorView<const double> view = a.view().slice(1, {1, 10, 3}).transpose();
  EXPECT_TRUE(testing::is_near(qr(view).r, qr(Tensor<double>(view)).r));
}

TEST(Qr, TheNamesOfTheAxesTravelToTheFactors) {
  const Tensor<float> a = testing::random_matrix<float>(4, 3).named({"token", "d_model"});
  EXPECT_EQ(to_string(qr(a).q.shape()), "4x3 (token, component)");
  EXPECT_EQ(to_string(qr(a).r.shape()), "3x3 (component, d_model)");
  EXPECT_EQ(to_string(qr_pivoted(a).r.shape()), "3x3 (component, ?)");
}

TEST(Qr, BadArgumentsAreRefused) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] { qr(Tensor<double>(Shape{3})); }),
            "qr: a is 3, but it must be a matrix\n"
            "  hint: reshaped it fits: as one column it is 3x1, as one row 1x3");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              qr_pivoted(Tensor<double>(Shape{1, 1}, std::numeric_limits<double>::quiet_NaN()));
            }),
            "qr_pivoted: a has a NaN at (0, 0), but every element must be finite");
}

}  // namespace
}  // namespace eckart

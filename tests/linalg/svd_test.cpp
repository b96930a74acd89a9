#include "eckart/linalg/svd.h"

#include "eckart/core/errors.h"

#include <algorithm>
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
using testing::difference;
using testing::eps;
using testing::frobenius;
using testing::product;

template <class T>
class SvdOf : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SvdOf, Types);

template <class T>
Tensor<T> rebuilt(const Svd<T>& factors) {
  Tensor<T> u = factors.u;
  for (Index row = 0; row < u.size(0); ++row) {
    for (Index column = 0; column < u.size(1); ++column) u(row, column) *= factors.s(column);
  }
  return product(u, factors.vt);
}

TEST(Svd, OfTheWorkedExampleIsThreeAndOne) {
  for (const testing::WorkedExample& example : testing::worked_examples("svd")) {
    const Svd<double> factors = svd(testing::tensor_of(example.inputs["a"]));
    EXPECT_TRUE(testing::is_near(factors.s, testing::tensor_of(example.expect["s"]),
                                 {.absolute = example.tolerance}));
  }
}

TYPED_TEST(SvdOf, HardMatricesRebuildsThemWithOrthonormalFactors) {
  using T = TypeParam;
  for (const auto& [name, a] : testing::hard_matrices<T>()) {
    SCOPED_TRACE(name);
    for (const SvdMethod method : {SvdMethod::divide_and_conquer, SvdMethod::qr_iteration}) {
      const Svd<T> factors = svd(a, {.method = method});
      const Index k = std::min(a.size(0), a.size(1));
      ASSERT_EQ(factors.u.shape(), (Shape{a.size(0), k}));
      ASSERT_EQ(factors.s.shape(), (Shape{k}));
      ASSERT_EQ(factors.vt.shape(), (Shape{k, a.size(1)}));
      // Backward error and departure from orthonormality are small multiples of the size times eps
      // (LAPACK Users' Guide, section 4.9); 20 is such a multiple.
      const double bound = 20 * eps<T>() * static_cast<double>(std::max(a.size(0), a.size(1)));
      EXPECT_LE(difference(rebuilt(factors), a), bound * frobenius(a));
      EXPECT_LE(departure(factors.u), bound);
      EXPECT_LE(departure(testing::transposed(factors.vt)), bound);
      for (Index i = 0; i < k; ++i) EXPECT_GE(factors.s(i), i + 1 < k ? factors.s(i + 1) : T{0});
    }
  }
}

TYPED_TEST(SvdOf, HardMatricesGivesTheSameValuesWithoutVectors) {
  using T = TypeParam;
  for (const auto& [name, a] : testing::hard_matrices<T>()) {
    SCOPED_TRACE(name);
    const Svd<T> factors = svd(a);
    for (const SvdMethod method : {SvdMethod::divide_and_conquer, SvdMethod::qr_iteration}) {
      const Tensor<T> values = svd_values(a, {.method = method});
      // Either may be off by a small multiple of eps times the largest value.
      const double largest = values.count() > 0 ? static_cast<double>(values(0)) : 0;
      EXPECT_TRUE(testing::is_near(
          values, factors.s,
          {.absolute =
               20 * eps<T>() * largest * static_cast<double>(std::max<Index>(1, a.size(0)))}));
    }
  }
}

TEST(Svd, OfTheHilbertMatrixIsAccurateToEpsOfTheLargestValue) {
  // Singular values of the 3x3 Hilbert matrix are its eigenvalues, roots of the characteristic
  // polynomial x^3 - 23/15 x^2 + 127/720 x - 1/2160.
  const Tensor<double> s = svd_values(testing::hilbert<double>(3));
  EXPECT_TRUE(testing::is_near(
      s, Tensor<double>::vector({1.408318927123654, 0.12232706585390586, 0.0026873403557735279}),
      {.absolute = 1e-15}));
}

TEST(Svd, NearTheEndsOfTheRangeIsThatOfTheScaledMatrix) {
  const Tensor<double> a = testing::random_matrix<double>(14, 9);
  const Tensor<double> s = svd_values(a);
  for (const double scale : {0x1p-1000, 0x1p1000}) {
    Tensor<double> scaled = a;
    for_each_element([&](double& x) { x *= scale; }, scaled.view());
    // Scaling by powers of two is exact: what differs is rounding, a small multiple of eps s[0].
    for (Tensor<double> found : {svd(scaled).s, svd_values(scaled)}) {
      for_each_element([&](double& x) { x /= scale; }, found.view());
      EXPECT_TRUE(testing::is_near(found, s, {.absolute = 100 * eps<double>()}));
    }
  }
}

TEST(Svd, OfARankOneMatrixHasOneSingularValue) {
  const Svd<double> factors = svd(Tensor<double>::matrix({{3, 4}, {6, 8}, {6, 8}}));
  // |(1, 2, 2)| |(3, 4)| = 15
  EXPECT_NEAR(factors.s(0), 15, 1e-13);
  EXPECT_NEAR(factors.s(1), 0, 1e-14);
  EXPECT_NEAR(factors.u(1, 0), 2.0 / 3, 1e-14);
  EXPECT_NEAR(factors.vt(0, 1), 0.8, 1e-14);
}

TEST(Svd, TheLargestComponentOfEachLeftVectorIsPositive) {
  const Tensor<double> a = testing::random_matrix<double>(9, 6);
  for (const bool negative : {false, true}) {
    Tensor<double> signed_a = a;
    if (negative) for_each_element([](double& x) { x = -x; }, signed_a.view());
    const Svd<double> factors = svd(signed_a);
    for (Index column = 0; column < 6; ++column) {
      Index largest = 0;
      for (Index row = 0; row < 9; ++row) {
        if (std::abs(factors.u(row, column)) > std::abs(factors.u(largest, column))) largest = row;
      }
      EXPECT_GT(factors.u(largest, column), 0);
    }
  }
}

TEST(Svd, OfTwoEqualComponentsTheFirstIsPositive) {
  // Vectors (1, 1) and (1, -1) over sqrt(2): which of two equal magnitudes is larger is rounding.
  const Svd<double> factors = svd(Tensor<double>::matrix({{2, 1}, {1, 2}}));
  EXPECT_GT(factors.u(0, 0), 0);
  EXPECT_GT(factors.u(0, 1), 0);
  EXPECT_LT(factors.u(1, 1), 0);
}

TEST(Svd, TransposedAndSlicedViewsAreTheMatricesTheyShow) {
  const Tensor<float> big = testing::random_matrix<float>(40, 30);
  for (const TensorView<const float>& view :
       {big.view().transpose(), big.view().slice(0, {1, 40, 3}).slice(1, {2, 30, 2}),
        big.view().slice(1, {5, 9}).transpose()}) {
    const Svd<float> of_view = svd(view);
    const Svd<float> of_copy = svd(Tensor<float>(view));
    EXPECT_TRUE(testing::is_near(of_view.s, of_copy.s));
    EXPECT_TRUE(testing::is_near(of_view.u, of_copy.u));
  }
}

TEST(Svd, AViewThatCouldBeWrittenNeedsNoConversion) {
  Tensor<double> a = Tensor<double>::matrix({{0, 2}, {1, 0}});
  const Tensor<double> expected = Tensor<double>::vector({2, 1});
  EXPECT_TRUE(testing::is_near(svd(a.view().transpose()).s, expected, {.absolute = 1e-15}));
  EXPECT_TRUE(testing::is_near(svd_values(a.view()), expected, {.absolute = 1e-15}));
}

TEST(Svd, TheNamesOfTheAxesTravelToTheFactors) {
  const Svd<float> factors = svd(testing::random_matrix<float>(4, 3).named({"token", "d_model"}));
  EXPECT_EQ(to_string(factors.u.shape()), "4x3 (token, component)");
  EXPECT_EQ(to_string(factors.s.shape()), "3 (component)");
  EXPECT_EQ(to_string(factors.vt.shape()), "3x3 (component, d_model)");
  const Svd<float> again = svd(factors.u);
  EXPECT_EQ(to_string(again.u.shape()), "4x3 (token, component)");
  EXPECT_EQ(to_string(again.vt.shape()), "3x3 (component, ?)");
}

TEST(Svd, WhatIsNoMatrixIsRefused) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] { svd(Tensor<float>(Shape{5}).named({"token"})); }),
            "svd: a is 5 (token), but it must be a matrix\n"
            "  hint: reshaped it fits: as one column it is 5x1, as one row 1x5");
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              svd_values(Tensor<float>(Shape{2, 3, 4}));
            }),
            "svd_values: a is 2x3x4, but it must be a matrix");
}

TEST(Svd, ANotFiniteMatrixIsRefusedWithThePosition) {
  Tensor<float> a({4, 9});
  a(3, 7) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { svd(a); }),
            "svd: a has a NaN at (3, 7), but every element must be finite");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { svd_values(a); }),
            "svd_values: a has a NaN at (3, 7), but every element must be finite");
}

TEST(Svd, AMatrixTooLargeForLapackIsRefusedBeforeItIsRead) {
  const float one = 1;
  const TensorView<const float> large(&one, {Index{1} << 16, Index{1} << 16}, {0, 0});
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { svd(large); }),
            "svd: a is 65536x65536 and has 4294967296 elements, but LAPACK's 32-bit integers count "
            "at most 2147483647\n  hint: low_rank takes matrices of any size");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { svd_values(large); }),
            "svd_values: a is 65536x65536 and has 4294967296 elements, but LAPACK's 32-bit "
            "integers count at most 2147483647");
  const TensorView<const float> square(&one, {30000, 30000}, {0, 0});
  EXPECT_EQ(
      testing::thrown_by<ArgumentError>([&] { svd(square); }),
      "svd: a is 30000x30000, but divide and conquer takes at most 23000 rows or columns\n"
      "  hint: method = qr_iteration takes it, svd_values gives the values alone, and low_rank "
      "the largest values with their vectors");
}

}  // namespace
}  // namespace eckart

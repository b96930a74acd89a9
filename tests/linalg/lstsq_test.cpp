#include "eckart/linalg/lstsq.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/pinv.h"

#include <cmath>
#include <limits>

#include "tests/linalg/hard_matrices.h"
#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::difference;
using testing::eps;
using testing::frobenius;
using testing::product;
using testing::tensor_of;
using testing::transposed;

TEST(Lstsq, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("lstsq")) {
    const Tensor<double> x = tensor_of(example.inputs["x"]);
    const Tensor<double> y = tensor_of(example.inputs["y"]);
    Tensor<double> a({x.count(), 2}, 1.0);
    for (Index i = 0; i < x.count(); ++i) a(i, 0) = x.data()[i];
    const LeastSquares<double> fit = lstsq(a, y);
    EXPECT_TRUE(
        testing::is_near(fit.x, tensor_of(example.expect), {.absolute = example.tolerance}));
    EXPECT_EQ(fit.rank, 2);
    EXPECT_EQ(fit.method, LstsqMethod::qr);
  }
}

TEST(Lstsq, OfThreePointsIsTheLineBetweenThem) {
  // y = 1, 2, 2 at t = 0, 1, 2: slope 1/2, intercept 7/6, residuals -1/6, 1/3, -1/6.
  const Tensor<double> a = Tensor<double>::matrix({{0, 1}, {1, 1}, {2, 1}});
  const LeastSquares<double> fit = lstsq(a, Tensor<double>::vector({1, 2, 2}));
  EXPECT_TRUE(testing::is_near(fit.x, Tensor<double>::vector({0.5, 7.0 / 6}), {.absolute = 1e-15}));
  EXPECT_NEAR(fit.residual_norm, std::sqrt(1.0 / 6), 1e-15);
  // a^T a = [5 3; 3 3] has eigenvalues 4 +- sqrt(10).
  EXPECT_NEAR(fit.condition_number, std::sqrt((4 + std::sqrt(10.0)) / (4 - std::sqrt(10.0))),
              1e-14);
}

// The residual is orthogonal to every column: ||a^T r|| is rounding of a and b (Higham, theorem
// 20.3: (da)^T r with ||da|| a small multiple of n eps ||a||, and a^T times the rounding of r).
template <class T>
void expect_least(const Tensor<T>& a, const Tensor<T>& x, const Tensor<T>& b) {
  Tensor<T> residual = product(a, x);
  for_each_element([](T& r, const T& side) { r = side - r; }, residual.view(), b.view());
  const double size = static_cast<double>(a.size(0) + a.size(1));
  EXPECT_LE(frobenius(product(transposed(a), residual)),
            20 * size * eps<T>() * frobenius(a) * (frobenius(a) * frobenius(x) + frobenius(b)));
}

template <class T>
void expect_least_on_hard_matrices() {
  for (const auto& [name, a] : testing::hard_matrices<T>()) {
    SCOPED_TRACE(name);
    if (sizeof(T) == 4 && (name == "huge" || name == "tiny"))
      continue;  // a^T a leaves float's range
    const Tensor<T> b = testing::random_matrix<T>(a.size(0), 2, 9);
    const LeastSquares<T> fit = lstsq(a, b);
    ASSERT_EQ(fit.x.shape(), (Shape{a.size(1), 2}));
    expect_least(a, fit.x, b);
    EXPECT_EQ(fit.rank, matrix_rank(a));
    EXPECT_EQ(fit.method == LstsqMethod::qr,
              fit.rank == a.size(1) && a.size(0) >= a.size(1) && a.size(1) > 0);
  }
}

TEST(Lstsq, OfHardMatricesLeavesAResidualOrthogonalToTheColumns) {
  expect_least_on_hard_matrices<float>();
  expect_least_on_hard_matrices<double>();
}

TEST(Lstsq, OfARankDeficientMatrixHasTheSmallestNorm) {
  const LeastSquares<double> fit =
      lstsq(Tensor<double>::matrix({{1, 2}, {2, 4}, {0, 0}}), Tensor<double>::vector({3, 6, 2}));
  EXPECT_TRUE(testing::is_near(fit.x, Tensor<double>::vector({0.6, 1.2}), {.absolute = 1e-14}));
  EXPECT_EQ(fit.rank, 1);
  EXPECT_EQ(fit.method, LstsqMethod::svd);
  EXPECT_TRUE(std::isinf(fit.condition_number));
  EXPECT_NEAR(fit.residual_norm, 2, 1e-14);
}

TEST(Lstsq, OfAWideMatrixHasTheSmallestNorm) {
  const LeastSquares<double> fit =
      lstsq(Tensor<double>::matrix({{3, 4, 0}}), Tensor<double>::vector({25}));
  EXPECT_TRUE(testing::is_near(fit.x, Tensor<double>::vector({3, 4, 0}), {.absolute = 1e-14}));
  EXPECT_NEAR(fit.condition_number, 1, 1e-15);
}

TEST(Lstsq, IsThePseudoInverseTimesB) {
  const Tensor<double> a =
      product(testing::random_matrix<double>(20, 4), testing::random_matrix<double>(4, 9, 2));
  const Tensor<double> b = testing::random_matrix<double>(20, 3, 4);
  EXPECT_LE(difference(product(pinv(a), b), lstsq(a, b).x), 1e-13);
}

TEST(Lstsq, DoesNotSquareTheConditionNumber) {
  // Läuchli's matrix: columns (1, e, 0, 0), (1, 0, e, 0), … With e = 1e-10, a^T a is 1 everywhere to
  // rounding, and the normal equations are singular. The answer for b = a (1, 1, 1) is 1, 1, 1.
  Tensor<double> a({4, 3});
  for (Index j = 0; j < 3; ++j) {
    a(0, j) = 1;
    a(j + 1, j) = 1e-10;
  }
  const Tensor<double> ones(Shape{3, 1}, 1.0);
  const LeastSquares<double> fit = lstsq(a, product(a, ones));
  EXPECT_EQ(fit.rank, 3);
  // The condition number is sqrt(3 + e^2) / e; the error eps times that, with a margin of 20.
  EXPECT_NEAR(fit.condition_number, std::sqrt(3.0) * 1e10, 1e4 * 1e10 * 1e-6);
  EXPECT_LE(difference(fit.x, ones), 20 * eps<double>() * fit.condition_number);
}

TEST(Lstsq, TheToleranceDecidesWhatCounts) {
  Tensor<double> a = testing::identity<double>(2);
  a(1, 1) = 1e-6;
  const Tensor<double> b = Tensor<double>::vector({1, 1});
  EXPECT_TRUE(
      testing::is_near(lstsq(a, b).x, Tensor<double>::vector({1, 1e6}), {.relative = 1e-14}));
  EXPECT_TRUE(testing::is_near(lstsq(a, b, {.tolerance = 1e-3}).x, Tensor<double>::vector({1, 0}),
                               {.absolute = 1e-14}));
}

TEST(Lstsq, ResidualsDoNotOverflow) {
  const Tensor<double> a = Tensor<double>::matrix({{1}, {0}, {0}});
  const LeastSquares<double> fit = lstsq(a, Tensor<double>::vector({1e200, 3e200, 4e200}));
  EXPECT_NEAR(fit.residual_norm / 1e200, 5, 1e-14);
}

TEST(Lstsq, NearTheEndsOfTheRangeIsThatOfTheScaledMatrix) {
  const Tensor<double> a = testing::random_matrix<double>(14, 5);
  const Tensor<double> b = testing::random_matrix<double>(14, 2, 3);
  const LeastSquares<double> fit = lstsq(a, b);
  for (const double scale : {0x1p-1000, 0x1p1000}) {
    Tensor<double> scaled_a = a;
    Tensor<double> scaled_b = b;
    for_each_element([&](double& x) { x *= scale; }, scaled_a.view());
    for_each_element([&](double& x) { x *= scale; }, scaled_b.view());
    const LeastSquares<double> scaled = lstsq(scaled_a, scaled_b);
    EXPECT_EQ(scaled.rank, 5);
    EXPECT_TRUE(testing::is_near(scaled.x, fit.x, {.absolute = 1e-14}));
    EXPECT_NEAR(scaled.residual_norm / scale, fit.residual_norm, 1e-13);
  }
}

TEST(Lstsq, OfEmptyMatricesIsZero) {
  EXPECT_EQ(lstsq(Tensor<double>(Shape{0, 2}), Tensor<double>(Shape{0})).x.shape(), (Shape{2}));
  const LeastSquares<double> none =
      lstsq(Tensor<double>(Shape{2, 0}), Tensor<double>::vector({3, 4}));
  EXPECT_EQ(none.x.shape(), (Shape{0}));
  EXPECT_DOUBLE_EQ(none.residual_norm, 5);
}

TEST(Lstsq, ViewsAndNames) {
  const Tensor<double> a = testing::random_matrix<double>(4, 9).named({"feature", "sample"});
  const Tensor<double> b = testing::random_matrix<double>(9, 2).named({"sample", "target"});
  const LeastSquares<double> fit = lstsq(a.view().transpose(), b);
  EXPECT_EQ(to_string(fit.x.shape()), "4x2 (feature, target)");
  EXPECT_TRUE(testing::is_near(fit.x, lstsq(transposed(a), b).x));
  EXPECT_EQ(to_string(fit.method), "qr");
  EXPECT_EQ(to_string(LstsqMethod::svd), "svd");
}

TEST(Lstsq, BadArgumentsAreRefused) {
  const Tensor<double> a({3, 2});
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] { lstsq(a, Tensor<double>(Shape{2})); }),
            "lstsq: a is 3x2 and b is 2, but b's 2 elements must equal a's 3 rows\n"
            "  hint: with a transposed it fits: x is then 3");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] {
              lstsq(a, Tensor<double>(Shape{4, 2}));
            }),
            "lstsq: a is 3x2 and b is 4x2, but b's 4 rows must equal a's 3 rows\n"
            "  hint: with both transposed it fits: x is then 3x4");
  EXPECT_EQ(
      testing::thrown_by<ShapeError>([&] {
        lstsq(a, Tensor<double>(Shape{2, 3}));
      }),
      "lstsq: a is 3x2 and b is 2x3, but b's 2 rows must equal a's 3 rows\n"
      "  hint: with b transposed it fits: x is then 2x2; with a transposed it fits: x is then "
      "3x3");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] {
              lstsq(a, Tensor<double>(Shape{3}, std::numeric_limits<double>::infinity()));
            }),
            "lstsq: b has an Inf at (0), but every element must be finite");
  EXPECT_EQ(testing::thrown_by<ArgumentError>(
                [&] { lstsq(a, Tensor<double>(Shape{3}), {.tolerance = -2}); }),
            "lstsq: tolerance is -2, but it must be a number from 0");
}

}  // namespace
}  // namespace eckart

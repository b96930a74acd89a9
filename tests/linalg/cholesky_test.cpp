#include "eckart/linalg/cholesky.h"

#include "eckart/core/errors.h"

#include "tests/linalg/hard_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::eps;
using testing::product;

TEST(Cholesky, OfASmallMatrixIsItsSquareRoot) {
  const Tensor<double> l = cholesky(Tensor<double>::matrix({{4, 2}, {2, 10}}));
  EXPECT_TRUE(testing::has_elements(l.view(), {2, 0, 1, 3}));
}

template <class T>
void expect_rebuilt(const Tensor<T>& a) {
  const Tensor<T> l = cholesky(a);
  // Theorem 10.3 of Higham: |a - l l^T| <= (n + 1) eps |l| |l^T|, and || |l| ||_F^2 = trace(a).
  double trace = 0;
  for (Index i = 0; i < a.size(0); ++i) trace += static_cast<double>(a(i, i));
  EXPECT_LE(testing::difference(product(l, testing::transposed(l)), a),
            static_cast<double>(a.size(0) + 1) * eps<T>() * trace);
}

TEST(Cholesky, OfHardMatricesRebuildsThem) {
  expect_rebuilt(testing::hilbert<double>(12));
  expect_rebuilt(testing::hilbert<float>(5));
  expect_rebuilt(Tensor<double>::matrix({{1e-30}}));
  expect_rebuilt(Tensor<double>::matrix({{1e30, 1}, {1, 1e-20}}));
  const Tensor<double> b = testing::random_matrix<double>(60, 33);
  expect_rebuilt(product(testing::transposed(b), b));
  expect_rebuilt(Tensor<double>(Shape{0, 0}));
}

TEST(Cholesky, TheNameOfTheRowsStays) {
  const Tensor<double> a = testing::identity<double>(2).named({"d_model", "d_model'"});
  EXPECT_EQ(to_string(cholesky(a).shape()), "2x2 (d_model, ?)");
}

TEST(Cholesky, AMatrixThatIsNotSymmetricIsRefusedWithAPair) {
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              cholesky(Tensor<double>::matrix({{4, 2, 0}, {2, 4, 1}, {0, 1.5, 4}}));
            }),
            "cholesky: a has 1 at (1, 2) and 1.5 at (2, 1), but it must be symmetric\n"
            "  hint: lu takes any matrix, eigh any symmetric one");
}

TEST(Cholesky, AMatrixThatIsNotPositiveDefiniteIsRefusedWithThePivot) {
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              cholesky(Tensor<double>::matrix({{1, 2}, {2, 1}}));
            }),
            "cholesky: a is 2x2 and its pivot 2 is -3 (the leading minor of order 2 is not "
            "positive), but every pivot of a positive definite matrix is above 0\n"
            "  hint: lu takes any matrix, eigh any symmetric one");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              cholesky(Tensor<float>(Shape{3, 3}));
            }),
            "cholesky: a is 3x3 and its pivot 1 is 0 (the leading minor of order 1 is not "
            "positive), but every pivot of a positive definite matrix is above 0\n"
            "  hint: lu takes any matrix, eigh any symmetric one");
  // Beyond the block size of LAPACK: pivot 101 is what is left of 99 - 100.
  Tensor<double> large = testing::identity<double>(120);
  for (Index i = 0; i < 100; ++i) large(i, 100) = large(100, i) = 1;
  large(100, 100) = 99;
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { cholesky(large); }),
            "cholesky: a is 120x120 and its pivot 101 is -1 (the leading minor of order 101 is not "
            "positive), but every pivot of a positive definite matrix is above 0\n"
            "  hint: lu takes any matrix, eigh any symmetric one");
}

TEST(Cholesky, OtherShapesAreRefused) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              cholesky(Tensor<double>(Shape{2, 3}));
            }),
            "cholesky: a is 2x3, but it must have as many rows as columns");
}

}  // namespace
}  // namespace eckart

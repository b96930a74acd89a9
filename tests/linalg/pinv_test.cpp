#include "eckart/linalg/pinv.h"

#include "eckart/core/errors.h"

#include "tests/linalg/hard_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::difference;
using testing::product;
using testing::transposed;

// Penrose's four conditions, which only the pseudo-inverse meets.
void expect_pseudo_inverse(const Tensor<double>& a, double bound) {
  const Tensor<double> p = pinv(a);
  ASSERT_EQ(p.shape(), (Shape{a.size(1), a.size(0)}));
  const Tensor<double> ap = product(a, p);
  const Tensor<double> pa = product(p, a);
  EXPECT_LE(difference(product(ap, a), a), bound);
  EXPECT_LE(difference(product(pa, p), p), bound);
  EXPECT_LE(difference(transposed(ap), ap), bound);
  EXPECT_LE(difference(transposed(pa), pa), bound);
}

TEST(Pinv, MeetsPenrosesConditions) {
  // Well-conditioned, apart from what is zero: 1e-12 is 50 eps times sizes and norms up to 100.
  expect_pseudo_inverse(testing::random_matrix<double>(12, 5), 1e-12);
  expect_pseudo_inverse(testing::random_matrix<double>(5, 12), 1e-12);
  expect_pseudo_inverse(
      product(testing::random_matrix<double>(9, 3), testing::random_matrix<double>(3, 8, 2)),
      1e-12);
  expect_pseudo_inverse(Tensor<double>(Shape{3, 2}), 0);
  expect_pseudo_inverse(Tensor<double>(Shape{0, 2}), 0);
}

TEST(Pinv, OfARankOneMatrixIsItsTransposeOverItsEnergy) {
  // [1 2; 2 4]: energy 25.
  EXPECT_TRUE(testing::is_near(pinv(Tensor<double>::matrix({{1, 2}, {2, 4}})),
                               Tensor<double>::matrix({{0.04, 0.08}, {0.08, 0.16}}),
                               {.absolute = 1e-15}));
}

TEST(Pinv, ExchangesTheNamesOfTheAxes) {
  const Tensor<float> a = testing::random_matrix<float>(3, 2).named({"token", "d_model"});
  EXPECT_EQ(to_string(pinv(a).shape()), "2x3 (d_model, token)");
}

TEST(Pinv, BadArgumentsAreRefused) {
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              pinv(Tensor<double>(Shape{1, 1}), {.tolerance = -1});
            }),
            "pinv: tolerance is -1, but it must be a number from 0");
}

}  // namespace
}  // namespace eckart

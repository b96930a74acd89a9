#include "eckart/linalg/energy.h"

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

using testing::tensor_of;

TEST(EnergyShare, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("energy_share")) {
    SCOPED_TRACE(example.id);
    const Tensor<double> s = svd_values(tensor_of(example.inputs["a"]));
    const Tensor<double> shares =
        energy_share(s, example.inputs["ranks"].get<std::vector<Index>>());
    EXPECT_TRUE(
        testing::is_near(shares, tensor_of(example.expect), {.absolute = example.tolerance}));
  }
}

TEST(EnergyShare, OfTwoValues) {
  EXPECT_TRUE(testing::is_near(energy_share(Tensor<double>::vector({3, 1}), {0, 1, 2}),
                               Tensor<double>::vector({0, 0.9, 1}), {.absolute = 1e-15}));
}

TEST(EnergyShare, OfAZeroMatrixIsOne) {
  EXPECT_TRUE(
      testing::has_elements(energy_share(Tensor<float>(Shape{3}), {0, 1, 3}).view(), {1, 1, 1}));
  EXPECT_TRUE(testing::has_elements(energy_share(Tensor<float>(Shape{0}), {0}).view(), {1}));
}

TEST(EckartYoungError, IsWhatTheCutLeaves) {
  const EckartYoungError error = eckart_young_error(Tensor<double>::vector({5, 4, 3}), 1);
  EXPECT_DOUBLE_EQ(error.frobenius, 5);
  EXPECT_DOUBLE_EQ(error.spectral, 4);
  EXPECT_DOUBLE_EQ(error.relative_frobenius, 5 / std::sqrt(50.0));
  EXPECT_EQ(eckart_young_error(Tensor<double>::vector({5, 4, 3}), 3).frobenius, 0);
  EXPECT_EQ(eckart_young_error(Tensor<double>(Shape{2}), 0).relative_frobenius, 0);
}

TEST(EckartYoungError, IsTheErrorOfTheCutSvd) {
  const Tensor<double> a = testing::random_matrix<double>(12, 9);
  const Svd<double> factors = svd(a);
  Tensor<double> left = Tensor<double>(factors.u.view().slice(1, {0, 4}));
  for (Index row = 0; row < 12; ++row) {
    for (Index i = 0; i < 4; ++i) left(row, i) *= factors.s(i);
  }
  const Tensor<double> cut =
      testing::product(left, Tensor<double>(factors.vt.view().slice(0, {0, 4})));
  EXPECT_NEAR(testing::difference(cut, a), eckart_young_error(factors.s, 4).frobenius, 1e-13);
}

TEST(EffectiveRank, OfEqualValuesIsTheirNumber) {
  EXPECT_NEAR(effective_rank(Tensor<double>({7}, 3.0)), 7, 1e-13);
  EXPECT_NEAR(effective_rank(Tensor<double>({7}, 3.0), EffectiveRankOf::energies), 7, 1e-13);
  EXPECT_EQ(effective_rank(Tensor<double>::vector({2, 0, 0})), 1);
}

TEST(EffectiveRank, OfTwoValues) {
  // Shares 3/4, 1/4 and 9/10, 1/10.
  const Tensor<float> s = Tensor<float>::vector({3, 1});
  EXPECT_NEAR(effective_rank(s), std::pow(4.0 / 3, 0.75) * std::pow(4.0, 0.25), 1e-15);
  EXPECT_NEAR(effective_rank(s, EffectiveRankOf::energies),
              std::pow(10.0 / 9, 0.9) * std::pow(10.0, 0.1), 1e-15);
}

TEST(StableRank, IsEnergyOverTheLargestSquare) {
  EXPECT_DOUBLE_EQ(stable_rank(Tensor<double>::vector({2, 1, 1})), 1.5);
  EXPECT_DOUBLE_EQ(stable_rank(Tensor<double>({5}, 4.0)), 5);
}

TEST(StableRank, AndEffectiveRankOfAZeroMatrixAreZero) {
  for (const Index n : {0, 3}) {
    EXPECT_EQ(stable_rank(Tensor<double>(Shape{n})), 0);
    EXPECT_EQ(effective_rank(Tensor<double>(Shape{n})), 0);
  }
}

TEST(Energy, HugeAndTinyScalesAreHarmless) {
  for (const double scale : {1e-300, 1e300}) {
    const Tensor<double> s = Tensor<double>::vector({3 * scale, scale});
    EXPECT_NEAR(energy_share(s, {1})(0), 0.9, 1e-15);
    EXPECT_NEAR(stable_rank(s), 10.0 / 9, 1e-15);
    EXPECT_NEAR(effective_rank(s), std::pow(4.0 / 3, 0.75) * std::pow(4.0, 0.25), 1e-15);
    EXPECT_NEAR(eckart_young_error(s, 1).frobenius / scale, 1, 1e-15);
  }
}

TEST(SpectralNorm, IsTheLargestSingularValue) {
  EXPECT_NEAR(spectral_norm(Tensor<double>::matrix({{2, 1}, {1, 2}})), 3, 1e-15);
  EXPECT_EQ(spectral_norm(Tensor<double>(Shape{0, 3})), 0);
  EXPECT_EQ(spectral_norm(Tensor<float>(Shape{2, 3})), 0);
}

TEST(Energy, WhatIsNoListOfSingularValuesIsRefused) {
  const auto text = [](const Tensor<double>& s) {
    return testing::thrown_by<ArgumentError>([&] { stable_rank(s); });
  };
  EXPECT_EQ(text(Tensor<double>::vector({1, 2})),
            "stable_rank: s rises from 1 to 2 at (1), but singular values descend");
  EXPECT_EQ(text(Tensor<double>::vector({1, -2})),
            "stable_rank: s has -2 at (1), but singular values are at least 0");
  EXPECT_EQ(text(Tensor<double>::vector({std::numeric_limits<double>::quiet_NaN()})),
            "stable_rank: s has a NaN at (0), but every element must be finite");
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              effective_rank(Tensor<double>(Shape{2, 2}));
            }),
            "effective_rank: s is 2x2, but singular values are a vector\n"
            "  hint: svd_values gives those of a matrix");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              energy_share(Tensor<double>::vector({2, 1}), {1, 3});
            }),
            "energy_share: a rank is 3, but it must be from 0 to the 2 singular values");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              eckart_young_error(Tensor<double>::vector({2, 1}), -1);
            }),
            "eckart_young_error: k is -1, but it must be from 0 to the 2 singular values");
}

}  // namespace
}  // namespace eckart

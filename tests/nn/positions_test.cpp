#include "eckart/nn/positions.h"

#include "eckart/core/errors.h"

#include <cmath>
#include <vector>

#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::random_matrix;
using testing::thrown_by;

TEST(Positions, LearnedAreRowsOfTheirTable) {
  const Tensor<float> table = random_matrix<float>(4, 3).named({"position", "d_model"});
  const Tensor<float> rows = learned_positions(table, {2, 3, 0});
  EXPECT_EQ(rows.shape(), Shape({3, 3}, {"token", "d_model"}));
  EXPECT_TRUE(is_near(rows.view().select(0, 1), table.view().select(0, 3)));
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] {
        learned_positions(table, {3, 4});
      }),
      "learned_positions: position 4 at place 1, but table is 4x3 (position, d_model) and its "
      "positions are 0 to 3");
}

TEST(Positions, SinusoidsAreThePapersFormula) {
  const Tensor<double> table = sinusoidal_positions<double>(3, 4);
  EXPECT_EQ(table.shape(), Shape({3, 4}, {"token", "d_model"}));
  EXPECT_TRUE(is_near(
      table,
      Tensor<double>::matrix({{0, 1, 0, 1},
                              {std::sin(1.0), std::cos(1.0), std::sin(0.01), std::cos(0.01)},
                              {std::sin(2.0), std::cos(2.0), std::sin(0.02), std::cos(0.02)}}),
      {.absolute = 0x1p-52}));
  // An odd number of columns ends with a sine.
  const Tensor<float> odd = sinusoidal_positions<float>(2, 3);
  EXPECT_EQ(odd(1, 2), static_cast<float>(std::sin(std::pow(10000.0, -2.0 / 3))));
}

TEST(Positions, SinusoidsAShiftApartAreARotation) {
  // What the paper chose them for: row p + k is a fixed linear function of row p, pair by pair.
  const Tensor<double> table = sinusoidal_positions<double>(50, 8);
  for (Index p = 0; p + 7 < 50; ++p) {
    for (Index pair = 0; pair < 4; ++pair) {
      const double angle = 7 * std::pow(10000.0, -2.0 * static_cast<double>(pair) / 8);
      const double sine = table(p, 2 * pair);
      const double cosine = table(p, 2 * pair + 1);
      // Angles up to 50 are off by 50 2^-52.
      EXPECT_NEAR(table(p + 7, 2 * pair), sine * std::cos(angle) + cosine * std::sin(angle),
                  100 * 0x1p-52);
    }
  }
}

TEST(Positions, SinusoidsOfNothingAreEmpty) {
  EXPECT_EQ(sinusoidal_positions<float>(0, 4).count(), 0);
  EXPECT_EQ(sinusoidal_positions<float>(4, 0).count(), 0);
  EXPECT_EQ(thrown_by<ArgumentError>([] { sinusoidal_positions<float>(-1, 4); }),
            "sinusoidal_positions: n_positions is -1 and d_model 4, but both must be at least 0");
}

TEST(Positions, AlibiOfAPowerOfTwoIsAGeometricSeries) {
  EXPECT_TRUE(has_elements(alibi_slopes<double>(8).view(),
                           {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}));
  EXPECT_TRUE(has_elements(alibi_slopes<float>(1).view(), {0.00390625F}));
  EXPECT_TRUE(has_elements(alibi_slopes<float>(2).view(), {0.0625F, 0.00390625F}));
  const Tensor<double> sixteen = alibi_slopes<double>(16);
  EXPECT_EQ(sixteen.shape(), Shape({16}, {"head"}));
  EXPECT_NEAR(sixteen(0), std::sqrt(0.5), 0x1p-52);
  EXPECT_NEAR(sixteen(15), 1.0 / 256, 0x1p-60);
}

TEST(Positions, AlibiOfOtherHeadCountsTakesEverySecondOfTwiceAsMany) {
  const Tensor<double> twelve = alibi_slopes<double>(12);
  const Tensor<double> eight = alibi_slopes<double>(8);
  const Tensor<double> sixteen = alibi_slopes<double>(16);
  for (Index head = 0; head < 8; ++head) EXPECT_EQ(twelve(head), eight(head));
  for (Index head = 8; head < 12; ++head) EXPECT_EQ(twelve(head), sixteen(2 * (head - 8)));
  // Three heads: two of a power of two, and the first of four.
  EXPECT_TRUE(has_elements(alibi_slopes<double>(3).view(), {0.0625, 0.00390625, 0.25}));
  EXPECT_EQ(thrown_by<ArgumentError>([] { alibi_slopes<float>(0); }),
            "alibi_slopes: n_heads is 0, but there must be at least one head");
}

}  // namespace
}  // namespace eckart

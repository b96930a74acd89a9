#include "eckart/linalg/marchenko_pastur.h"

#include "eckart/linalg/singular_values.h"

#include <cmath>

#include "spectrum_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::normal_matrix;

TEST(MarchenkoPasturMedian, IsThatOfGavishAndDonoho) {
  // Their table, good to about 2e-4: omega(beta) = lambda(beta) / sqrt(mu), with the optimal
  // threshold lambda(beta).
  const auto omega = [](double beta) {
    const double root = std::sqrt(beta * beta + 14 * beta + 1);
    return std::sqrt((2 * (beta + 1) + 8 * beta / (beta + 1 + root)) /
                     marchenko_pastur_median(beta));
  };
  EXPECT_NEAR(omega(0.05), 1.5194, 2e-4);
  EXPECT_NEAR(omega(0.10), 1.6089, 2e-4);
  EXPECT_NEAR(omega(0.20), 1.7650, 2e-4);
  EXPECT_NEAR(omega(1.00), 2.8582, 2e-4);
  EXPECT_NEAR(marchenko_pastur_median(1e-6), 1, 1e-6);
  // Of square matrices, the angle t of 2 - 2 cos(t) has the distribution (t + sin t) / pi.
  const double t = std::acos(1 - marchenko_pastur_median(1) / 2);
  EXPECT_NEAR(t + std::sin(t), std::acos(-1.0) / 2, 1e-10);
}

TEST(MarchenkoPastur, FindsTheNoiseAndNothingAboveIt) {
  for (const Shape& shape : {Shape{120, 60}, Shape{60, 120}, Shape{90, 90}}) {
    auto a = normal_matrix<double>(shape.size(0), shape.size(1), 11);
    for (Index i = 0; i < a.count(); ++i) a.data()[i] *= 0.25;
    const auto bulk =
        marchenko_pastur(shape, singular_values(TensorView<const double>(a.view())).values);
    ASSERT_TRUE(bulk);
    // The median of 60 values or more is good to a few per cent.
    EXPECT_NEAR(bulk->noise, 0.25, 0.02) << to_string(shape);
    EXPECT_EQ(bulk->n_spikes, 0);
    const double m = static_cast<double>(shape.size(0)), n = static_cast<double>(shape.size(1));
    EXPECT_NEAR(bulk->upper_edge, bulk->noise * (std::sqrt(m) + std::sqrt(n)), 1e-12);
    EXPECT_NEAR(bulk->lower_edge, bulk->noise * std::abs(std::sqrt(m) - std::sqrt(n)), 1e-12);
  }
}

TEST(MarchenkoPastur, CountsTheSpikesThatWerePlanted) {
  auto a = normal_matrix<double>(120, 80, 3);
  const auto spikes = testing::matrix_with_values<double>(
      120, 80, testing::values_by(80, [](double i) { return i < 5 ? 60 + 5 * i : 0; }), 4);
  for (Index i = 0; i < a.count(); ++i) a.data()[i] += spikes.data()[i];
  const auto bulk =
      marchenko_pastur({120, 80}, singular_values(TensorView<const double>(a.view())).values);
  ASSERT_TRUE(bulk);
  EXPECT_EQ(bulk->n_above, 5);
  EXPECT_EQ(bulk->n_spikes, 5);
}

TEST(MarchenkoPastur, IsAbsentWhereHalfOfTheValuesAreZero) {
  EXPECT_FALSE(marchenko_pastur({4, 3}, Tensor<double>::vector({1, 0, 0})));
  EXPECT_FALSE(marchenko_pastur({0, 3}, Tensor<double>(Shape{0})));
}

TEST(MarchenkoPastur, RefusesWhatDoesNotFit) {
  using testing::thrown_by;
  EXPECT_EQ(thrown_by<ShapeError>([] {
              marchenko_pastur({4, 3}, Tensor<double>::vector({1, 0}));
            }),
            "marchenko_pastur: singular_values is 2, but a matrix of 4x3 has 3");
  EXPECT_EQ(thrown_by<ArgumentError>([] { marchenko_pastur_median(1.5); }),
            "marchenko_pastur_median: beta is 1.500000, but it must be above 0 and at most 1");
}

}  // namespace
}  // namespace eckart

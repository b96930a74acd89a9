#include "eckart/linalg/reduce.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <cmath>
#include <limits>

#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::random_tensor;
using testing::thrown_by;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Tensor<double> counting(const Shape& shape) {
  Tensor<double> tensor(shape);
  for (Index i = 0; i < tensor.count(); ++i) tensor.data()[i] = static_cast<double>(i);
  return tensor;
}

TEST(Reduce, SumsOverAxesByPlaceAndByName) {
  const Tensor<double> x = counting({2, 3}).named({"token", "d_model"});
  EXPECT_EQ(*sum(x).data(), 15);
  EXPECT_EQ(sum(x).rank(), 0);
  EXPECT_TRUE(has_elements(sum(x, {.axes = {0}}).view(), {3, 5, 7}));
  EXPECT_TRUE(has_elements(sum(x, {.axes = {"d_model"}}).view(), {3, 12}));
  EXPECT_TRUE(has_elements(sum(x, {.axes = {-1, "token"}}).view(), {15}));
  EXPECT_EQ(sum(x, {.axes = {-1}}).shape(), Shape({2}, {"token"}));
  EXPECT_EQ(sum(x, {.axes = {-1}, .keep_axes = true}).shape(), Shape({2, 1}, {"token", "d_model"}));
}

TEST(Reduce, OfEveryChoiceOfAxesIsWhatALoopGives) {
  // Long enough for several blocks and pieces, with sizes that divide nothing.
  const Tensor<double> base = random_tensor<double>({7, 131, 9, 11}, 7);
  const TensorView<const double> turned = base.view().permute({2, 0, 3, 1});
  for (const TensorView<const double>& x : {base.view(), turned}) {
    for (unsigned chosen = 1; chosen < 16; ++chosen) {
      ReduceOptions options{.axes = {}, .keep_axes = true};
      std::vector<Index> sizes = x.shape().sizes();
      for (Index axis = 0; axis < 4; ++axis) {
        if ((chosen >> static_cast<unsigned>(axis) & 1U) == 0) continue;
        options.axes.emplace_back(axis);
        sizes[static_cast<std::size_t>(axis)] = 1;
      }
      Tensor<double> expected{Shape(sizes)};
      Tensor<double> magnitude{Shape(sizes)};
      Tensor<double> largest(Shape(sizes), -100.0);
      for (Index i = 0; i < x.count(); ++i) {
        Index left = i;
        Index from = 0;
        Index to = 0;
        Index stride = 1;
        for (Index axis = 3; axis >= 0; --axis) {
          const Index at = left % x.size(axis);
          left /= x.size(axis);
          from += at * x.strides()[static_cast<std::size_t>(axis)];
          if (sizes[static_cast<std::size_t>(axis)] > 1) to += at * stride;
          stride *= sizes[static_cast<std::size_t>(axis)];
        }
        expected.data()[to] += x.data()[from];
        magnitude.data()[to] += std::abs(x.data()[from]);
        largest.data()[to] = std::max(largest.data()[to], x.data()[from]);
      }
      // The loop's own error: n eps/2 of the sum of magnitudes, n at most 90,783; in practice its
      // root.
      EXPECT_TRUE(is_near(sum(x, options), expected, {.absolute = 1e-10})) << chosen;
      EXPECT_TRUE(is_near(max(x, options), largest)) << chosen;
    }
  }
}

TEST(Reduce, MeansAndVariancesOfTextbookNumbers) {
  const Tensor<double> x = Tensor<double>::vector({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(*mean(x).data(), 5);
  EXPECT_EQ(*variance(x).data(), 4);
  EXPECT_EQ(*standard_deviation(x).data(), 2);
  EXPECT_DOUBLE_EQ(*variance(x, {.correction = 1}).data(), 32.0 / 7);
  const Tensor<double> rows = Tensor<double>::matrix({{1, 3}, {10, 20}});
  EXPECT_TRUE(has_elements(variance(rows, {.axes = {1}}).view(), {1, 25}));
  EXPECT_TRUE(has_elements(mean(rows, {.axes = {0}}).view(), {5.5, 11.5}));
}

TEST(Reduce, AMillionTenthsInFloatAddUp) {
  const Index n = 1'000'000;
  const Tensor<float> x({n}, 0.1F);
  // n times the float nearest to 0.1, rounded once: the plain loop in float gives 100958.3.
  EXPECT_EQ(*sum(x).data(), static_cast<float>(static_cast<double>(n) * static_cast<double>(0.1F)));
  EXPECT_EQ(*mean(x).data(), 0.1F);
  // The same down the columns of a matrix, which goes another way.
  const Tensor<float> tall({62'500, 16}, 0.1F);
  const Tensor<float> sums = sum(tall, {.axes = {0}});
  for (Index i = 0; i < 16; ++i) {
    EXPECT_EQ(sums(i), static_cast<float>(62'500 * static_cast<double>(0.1F)));
  }
}

TEST(Reduce, ASumKeepsWhatALargeTermHides) {
  // Blocks of 4096: the ones stand in other blocks than the two large terms.
  Tensor<double> x({3 * 4096});
  x(0) = 1e20;
  x(5000) = 1;
  x(2 * 4096) = -1e20;
  EXPECT_EQ(*sum(x).data(), 1);
}

TEST(Reduce, AVarianceSurvivesALargeMean) {
  Tensor<float> x({1000});
  for (Index i = 0; i < 1000; ++i) x(i) = 1e6F + (i % 2 == 0 ? 1.0F : -1.0F);
  EXPECT_EQ(*variance(x).data(), 1);
  Tensor<double> y({1000});
  for (Index i = 0; i < 1000; ++i) y(i) = 1e9 + (i % 2 == 0 ? 1.0 : -1.0);
  EXPECT_EQ(*variance(y).data(), 1);
}

TEST(Reduce, ScalesFarFromOneLoseNothing) {
  for (const double scale : {1e-30, 1e30}) {
    const Tensor<float> x = Tensor<float>::vector(
        {static_cast<float>(scale), static_cast<float>(3 * scale), static_cast<float>(5 * scale)});
    // Rounding of the elements, of the result, of the divisor: each half an eps of float.
    EXPECT_NEAR(static_cast<double>(*mean(x).data()) / scale, 3, 3e-7);
    // The squares, 1e-60 and 1e60, are beyond float but not their root.
    EXPECT_NEAR(static_cast<double>(*standard_deviation(x).data()) / scale, std::sqrt(8.0 / 3),
                6e-7);
  }
}

TEST(Reduce, FindsExtremesAndWhereTheyStand) {
  const Tensor<double> x = Tensor<double>::matrix({{3, 9, -2}, {9, 0, 4}});
  EXPECT_EQ(*max(x).data(), 9);
  EXPECT_EQ(*min(x).data(), -2);
  EXPECT_EQ(*argmax(x).data(), 1);  // the first of two nines
  EXPECT_EQ(*argmin(x).data(), 2);
  EXPECT_TRUE(has_elements(argmax(x, {.axes = {1}}).view(), {1, 0}));
  EXPECT_TRUE(has_elements(argmin(x, {.axes = {0}}).view(), {0, 1, 0}));
  EXPECT_TRUE(has_elements(max(x, {.axes = {0}}).view(), {9, 9, 4}));
}

TEST(Reduce, ANanIsTheExtremeAndTheFirstOneIsNamed) {
  Tensor<double> x({100'000}, 1.0);
  x(70'000) = nan;
  x(99'999) = nan;
  x(5) = 7;
  EXPECT_TRUE(std::isnan(*max(x).data()));
  EXPECT_TRUE(std::isnan(*min(x).data()));
  EXPECT_EQ(*argmax(x).data(), 70'000);
  EXPECT_TRUE(std::isnan(*sum(x).data()));
}

TEST(Reduce, InfinitiesStayInfinite) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(*sum(Tensor<double>::vector({1, infinity, 2})).data(), infinity);
  EXPECT_EQ(*sum(Tensor<double>({2, 16}, infinity), {.axes = {0}}).data(), infinity);
  EXPECT_TRUE(std::isnan(*sum(Tensor<double>::vector({-infinity, infinity})).data()));
}

TEST(Reduce, OfNothing) {
  EXPECT_EQ(*sum(Tensor<double>({0, 3})).data(), 0);
  EXPECT_TRUE(has_elements(sum(Tensor<double>({0, 3}), {.axes = {0}}).view(), {0, 0, 0}));
  EXPECT_EQ(sum(Tensor<double>({0, 3}), {.axes = {1}}).shape(), Shape({0}));
  EXPECT_EQ(max(Tensor<double>({0, 3}), {.axes = {1}}).shape(), Shape({0}));
  EXPECT_EQ(*sum(Tensor<double>(Shape{}, 4.0)).data(), 4);
  EXPECT_EQ(thrown_by<ArgumentError>([] {
              max(Tensor<double>({0, 3}), {.axes = {0}});
            }),
            "max: x is 0x3, but there must be at least one element to reduce");
  EXPECT_EQ(thrown_by<ArgumentError>([] { mean(Tensor<double>()); }),
            "mean: x is 0, but there must be at least one element to reduce");
  EXPECT_EQ(thrown_by<ArgumentError>([] { variance(Tensor<double>({1}), {.correction = 1}); }),
            "variance: 1 element less a correction of 1 is 0, but it divides and must be above 0");
}

TEST(Reduce, RefusesAxesThatAreNotThere) {
  const Tensor<double> x = counting({2, 3}).named({"token", "d_model"});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              sum(x, {.axes = {0, "token"}});
            }),
            "sum: x is 2x3 (token, d_model), and its axis token is listed twice, but an axis is "
            "reduced once");
  EXPECT_EQ(thrown_by<ShapeError>([&] { sum(x, {.axes = {"head"}}); }),
            "axis: no axis of 2x3 (token, d_model) is named head\n"
            "  hint: its axes are (token, d_model)");
  EXPECT_THROW(sum(x, {.axes = {2}}), ShapeError);
}

TEST(Reduce, GivesTheSameBitsForEveryNumberOfThreads) {
  const Tensor<float> x = random_tensor<float>({300'000}, 7);
  const Tensor<float> wide = random_tensor<float>({1000, 300}, 7);
  set_thread_count(1);
  const float one = *sum(x).data();
  const Tensor<float> columns = variance(wide, {.axes = {0}});
  for (const int threads : {2, 5}) {
    set_thread_count(threads);
    EXPECT_EQ(*sum(x).data(), one);
    EXPECT_TRUE(is_near(variance(wide, {.axes = {0}}), columns));
  }
  set_thread_count(0);
}

}  // namespace
}  // namespace eckart

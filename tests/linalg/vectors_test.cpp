#include "eckart/linalg/vectors.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/elementwise.h"
#include "eckart/linalg/norms.h"

#include <cmath>
#include <limits>

#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::random_tensor;
using testing::tensor_of;
using testing::thrown_by;
using testing::worked_examples;

TEST(Dot, OfTheWorkedExamples) {
  for (const auto& example : worked_examples("dot")) {
    const Tensor<double> u = tensor_of(example.inputs["u"]);
    const Tensor<double> v = tensor_of(example.inputs["v"]);
    EXPECT_EQ(dot(u, v), example.expect.get<double>()) << example.id;
  }
}

TEST(Dot, OfEveryLengthAndStrideIsWhatALoopGives) {
  // Lengths around every vector width, block and piece.
  for (const Index n : {0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 255, 4095, 4096, 4097, 65'535, 65'537}) {
    const Tensor<float> u = random_tensor<float>({2 * n}, 1);
    const Tensor<float> v = random_tensor<float>({3 * n}, 2);
    for (const Index step : {1, 2}) {
      const auto a = u.view().slice(0, {.end = n * step, .step = step});
      const auto b = v.view().slice(0, {.begin = n, .end = 2 * n});
      double expected = 0;
      double magnitude = 0;
      for (Index i = 0; i < n; ++i) {
        const double product = static_cast<double>(a(i)) * static_cast<double>(b(i));
        expected += product;
        magnitude += std::abs(product);
      }
      // Both sums are in double; the loop's error is n 2^-53 of the magnitudes at most.
      EXPECT_NEAR(dot(a, b), expected, (static_cast<double>(n) + 600) * 0x1p-53 * magnitude) << n;
    }
  }
}

TEST(Dot, OfFloatsIsExactWhereFloatWouldLoseEverything) {
  // 1e4 of 1e8 + 1 - 1e8 is lost in float, whose digits end at 8 below 2^27.
  const Tensor<float> u = Tensor<float>::vector({1e4F, 1, -1e4F});
  const Tensor<float> v = Tensor<float>::vector({1e4F, 1, 1e4F});
  EXPECT_EQ(dot(u, v), 1);
}

TEST(Dot, GivesTheSameBitsForEveryNumberOfThreads) {
  const Tensor<double> u = random_tensor<double>({200'000}, 3);
  const Tensor<double> v = random_tensor<double>({200'000}, 4);
  set_thread_count(1);
  const double one = dot(u, v);
  for (const int threads : {2, 3, 8}) {
    set_thread_count(threads);
    EXPECT_EQ(dot(u, v), one);
  }
  set_thread_count(0);
}

TEST(Dot, RefusesWhatDoesNotFit) {
  const Tensor<double> u = Tensor<double>::vector({1, 2});
  EXPECT_EQ(thrown_by<ShapeError>([&] { dot(u, Tensor<double>({3})); }),
            "dot: u is 2 and v is 3, but the vectors must have as many elements in both");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              dot(u, Tensor<double>({2, 1}));
            }),
            "dot: u is 2 and v is 2x1, but both must be vectors");
  EXPECT_EQ(
      thrown_by<ShapeError>([&] { dot(u.named({"d_model"}), u.named({"d_ff"})); }),
      "dot: u is 2 (d_model) and v is 2 (d_ff), but axis d_model of u would meet axis d_ff of "
      "v");
}

TEST(Distance, OfTheWorkedExamples) {
  for (const auto& example : worked_examples("distance")) {
    EXPECT_NEAR(distance(tensor_of(example.inputs["x"]), tensor_of(example.inputs["y"])),
                example.expect.get<double>(), example.tolerance);
  }
  for (const auto& example : worked_examples("property")) {
    const Tensor<double> u = tensor_of(example.inputs["u"]);
    const Tensor<double> v = tensor_of(example.inputs["v"]);
    const double squared = distance(u, v) * distance(u, v);
    EXPECT_NEAR(squared, example.expect["value"].get<double>(), example.tolerance);
    EXPECT_NEAR(squared, 2 - 2 * cosine_similarity(u, v), example.tolerance);
  }
}

TEST(Distance, NeitherOverflowsNorUnderflows) {
  for (const double scale : {1e-300, 1e-30, 1.0, 1e30, 1e300}) {
    const Tensor<double> x = Tensor<double>::vector({5 * scale, scale});
    const Tensor<double> y = Tensor<double>::vector({2 * scale, 5 * scale});
    EXPECT_NEAR(distance(x, y) / scale, 5, 1e-14) << scale;
  }
  EXPECT_EQ(distance(Tensor<float>::vector({1e-30F}), Tensor<float>::vector({-1e-30F})),
            2 * static_cast<double>(1e-30F));
  EXPECT_EQ(distance(Tensor<double>({3}, 7.0), Tensor<double>({3}, 7.0)), 0);
}

TEST(Normalize, GivesLengthOneAtEveryScale) {
  for (const double scale : {1e-310, 1e-300, 1e-30, 1.0, 1e30, 1e300, 4e307}) {
    const Tensor<double> unit = normalize(Tensor<double>::vector({3 * scale, 4 * scale}));
    // A subnormal number has as many digits as it is above 5e-324: 1e-310 has 14.
    EXPECT_NEAR(unit(0), 0.6, 1e-13) << scale;
    EXPECT_NEAR(unit(1), 0.8, 1e-13) << scale;
  }
  for (const float scale : {1e-42F, 1e-30F, 1e30F, 5e37F}) {
    const Tensor<float> unit = normalize(Tensor<float>::vector({3 * scale, 4 * scale}));
    EXPECT_NEAR(unit(0), 0.6F, scale < 1e-38F ? 1e-3F : 1e-7F) << scale;
  }
}

TEST(Normalize, TakesEachRowAndNamesAZeroOne) {
  const Tensor<double> rows =
      Tensor<double>::matrix({{3, 4}, {0, 0}, {0, -2}}).named({"token", "d"});
  EXPECT_EQ(thrown_by<ArgumentError>([&] { normalize(rows); }),
            "normalize: row 1 of x is a zero vector, but a zero vector has no direction\n"
            "  hint: ask for 0 or NaN in its place with zero_vector");
  const Tensor<double> units = normalize(rows, {.zero_vector = ZeroVector::zero});
  EXPECT_TRUE(
      is_near(units, Tensor<double>::matrix({{0.6, 0.8}, {0, 0}, {0, -1}}), {.absolute = 1e-15}));
  EXPECT_EQ(units.shape(), rows.shape());
  EXPECT_TRUE(std::isnan(normalize(rows, {.zero_vector = ZeroVector::nan})(1, 0)));
  EXPECT_TRUE(is_near(normalize(rows.view().transpose().slice(1, {.end = 1})),
                      Tensor<double>::matrix({{1}, {1}})));
  EXPECT_THROW(normalize(Tensor<double>(Shape{}, 1.0)), ShapeError);
}

TEST(CosineSimilarity, OfTheWorkedExamples) {
  for (const auto& example : worked_examples("cosine_similarity")) {
    const Tensor<double> u = tensor_of(example.inputs["u"]);
    const Tensor<double> v = tensor_of(example.inputs["v"]);
    if (example.expect == "error") {
      EXPECT_EQ(thrown_by<ArgumentError>([&] { cosine_similarity(u, v); }),
                "cosine_similarity: a is a zero vector, but a zero vector has no direction\n"
                "  hint: ask for 0 or NaN in its place with zero_vector");
      EXPECT_EQ(cosine_similarity(u, v, {.zero_vector = ZeroVector::zero}), 0);
      EXPECT_TRUE(std::isnan(cosine_similarity(v, u, {.zero_vector = ZeroVector::nan})));
    } else {
      EXPECT_NEAR(cosine_similarity(u, v), example.expect.get<double>(), example.tolerance)
          << example.id;
    }
  }
}

TEST(CosineSimilarity, DependsOnNoScale) {
  for (const double a : {1e-320, 1e-200, 1e-30, 1e30, 1e200, 1e307}) {
    for (const double b : {1e-200, 1.0, 1e200}) {
      const Tensor<double> u = Tensor<double>::vector({3 * a, 4 * a});
      const Tensor<double> v = Tensor<double>::vector({4 * b, 3 * b});
      // 1e-320 has three digits.
      EXPECT_NEAR(cosine_similarity(u, v), 0.96, a < 1e-310 ? 1e-3 : 1e-15) << a << " " << b;
    }
  }
}

TEST(CosineSimilarity, NeverLeavesItsRange) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Tensor<float> u = random_tensor<float>({33}, seed);
    EXPECT_LE(cosine_similarity(u, u), 1);
    EXPECT_GE(cosine_similarity(u, u), 1 - 1e-14);
    EXPECT_GE(cosine_similarity(u, multiply(u, -3)), -1);
  }
}

TEST(CosineSimilarities, AreThoseOfAllPairsOfRows) {
  const Tensor<double> a = Tensor<double>::matrix({{1, 0}, {3, 4}}).named({"query", "d"});
  const Tensor<double> b = Tensor<double>::matrix({{3, 4}, {0, 2}, {-1, 0}}).named({"item", "d"});
  const Tensor<double> table = cosine_similarities(a, b);
  EXPECT_EQ(table.shape(), Shape({2, 3}, {"query", "item"}));
  EXPECT_TRUE(
      is_near(table, Tensor<double>::matrix({{0.6, 0, -1}, {1, 0.8, -0.6}}), {.absolute = 1e-15}));
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j) {
      EXPECT_NEAR(table(i, j), cosine_similarity(a.view().select(0, i), b.view().select(0, j)),
                  1e-15);
    }
  }
}

TEST(CosineSimilarities, FollowThePolicyForZeroRows) {
  const Tensor<double> a = Tensor<double>::matrix({{1, 0}});
  const Tensor<double> b = Tensor<double>::matrix({{1, 0}, {0, 0}});
  EXPECT_EQ(thrown_by<ArgumentError>([&] { cosine_similarities(a, b); }),
            "cosine_similarities: row 1 of b is a zero vector, but a zero vector has no direction\n"
            "  hint: ask for 0 or NaN in its place with zero_vector");
  EXPECT_TRUE(
      has_elements(cosine_similarities(a, b, {.zero_vector = ZeroVector::zero}).view(), {1, 0}));
  const Tensor<double> table = cosine_similarities(a, b, {.zero_vector = ZeroVector::nan});
  EXPECT_EQ(table(0, 0), 1);
  EXPECT_TRUE(std::isnan(table(0, 1)));
  EXPECT_EQ(
      thrown_by<ShapeError>([&] {
        cosine_similarities(a, Tensor<double>({2, 3}));
      }),
      "cosine_similarities: a is 1x2 and b is 2x3, but the rows must have as many elements in "
      "both\n"
      "  hint: with b transposed it fits: 1x2 and 3x2 gives 1x3");
  EXPECT_EQ(cosine_similarities(a, Tensor<double>({0, 2})).shape(), Shape({1, 0}));
  const Tensor<double> without_elements({1, 0});
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { cosine_similarities(without_elements, without_elements); }),
      "cosine_similarities: row 0 of a is a zero vector, but a zero vector has no direction\n"
      "  hint: ask for 0 or NaN in its place with zero_vector");
  EXPECT_TRUE(std::isnan(cosine_similarities(without_elements, without_elements,
                                             {.zero_vector = ZeroVector::nan})(0, 0)));
}

}  // namespace
}  // namespace eckart

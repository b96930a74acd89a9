#include "eckart/linalg/elementwise.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/reduce.h"

#include <limits>

#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::tensor_of;
using testing::thrown_by;
using testing::worked_examples;

TEST(Elementwise, AddsMultipliesAndSubtractsTheWorkedExamples) {
  for (const auto& example : worked_examples("add")) {
    EXPECT_TRUE(is_near(add(tensor_of(example.inputs["a"]), tensor_of(example.inputs["b"])),
                        tensor_of(example.expect)))
        << example.id;
  }
  for (const auto& example : worked_examples("multiply")) {
    EXPECT_TRUE(is_near(multiply(tensor_of(example.inputs["a"]), example.inputs["b"].get<double>()),
                        tensor_of(example.expect)))
        << example.id;
  }
}

TEST(Elementwise, StretchesBothOperandsOnlyWhenAsked) {
  const auto example = worked_examples("subtract").front();
  const Tensor<double> a = tensor_of(example.inputs["a"]);
  const Tensor<double> b = tensor_of(example.inputs["b"]);
  EXPECT_EQ(thrown_by<ShapeError>([&] { subtract(a, b); }),
            "subtract: a is 3 and b is 3x1, but both would be stretched, to 3x3\n"
            "  hint: for the 3x3 table of all pairs ask for it with outer = true; for one result "
            "an element give both the same shape");
  const Tensor<double> table = subtract(a, b, {.outer = true});
  EXPECT_TRUE(has_elements(table.view(), {0, 1, 2, -1, 0, 1, -2, -1, 0}));
  // The mean of the squares, as the example has it: (0 + 1 + 4 + 1 + 0 + 1 + 4 + 1 + 0) / 9.
  EXPECT_NEAR(*mean(multiply(table, table)).data(), 1.3333333333333333, 1e-15);
  EXPECT_TRUE(has_elements(subtract(a, b.view().reshape({3})).view(), {0, 0, 0}));
}

TEST(Elementwise, TakesANumberOnEitherSide) {
  const Tensor<float> x = Tensor<float>::vector({1, 2, 4});
  EXPECT_TRUE(has_elements(divide(1, x).view(), {1, 0.5F, 0.25F}));
  EXPECT_TRUE(has_elements(subtract(10.0, x).view(), {9, 8, 6}));
  EXPECT_TRUE(has_elements(add(x, 1).view(), {2, 3, 5}));
}

TEST(Elementwise, CarriesNamesOfBoth) {
  const Tensor<double> x = Tensor<double>({2, 3}, 1.0).named({"token", "d_model"});
  const Tensor<double> b = Tensor<double>::vector({1, 2, 3});
  EXPECT_EQ(add(x, b).shape(), Shape({2, 3}, {"token", "d_model"}));
  EXPECT_EQ(add(b, x).shape(), Shape({2, 3}, {"token", "d_model"}));
  EXPECT_EQ(thrown_by<ShapeError>([&] { multiply(x, b.named({"d_ff"})); }),
            "multiply: a is 2x3 (token, d_model) and b is 3 (d_ff), but axis d_model of a would "
            "meet axis d_ff of b");
}

TEST(Elementwise, WalksTransposedSlicedAndStretchedViews) {
  const Tensor<double> a = Tensor<double>::matrix({{1, 2, 3}, {4, 5, 6}});
  const Tensor<double> column = Tensor<double>::matrix({{10}, {20}});
  EXPECT_TRUE(has_elements(add(a, column).view(), {11, 12, 13, 24, 25, 26}));
  EXPECT_TRUE(has_elements(add(a.view().transpose(), column.view().transpose()).view(),
                           {11, 24, 12, 25, 13, 26}));
  EXPECT_TRUE(
      has_elements(multiply(a.view().slice(1, {.step = 2}), a.view().slice(1, {.begin = 1})).view(),
                   {2, 9, 20, 36}));
  const Tensor<double> cube({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(add(cube, column, {.outer = true}).shape(), Shape({2, 2, 3}));
  EXPECT_TRUE(
      has_elements(add(cube, Tensor<double>({2, 2, 1}, {0, 10, 20, 30}), {.outer = true}).view(),
                   {1, 2, 3, 11, 12, 13, 24, 25, 26, 34, 35, 36}));
}

TEST(Elementwise, OfNothingIsNothing) {
  EXPECT_EQ(add(Tensor<float>({0, 3}), Tensor<float>({3})).shape(), Shape({0, 3}));
  EXPECT_EQ(*add(Tensor<float>(Shape{}, 2.0F), 3).data(), 5);
}

TEST(Elementwise, DividesByZeroAsIeeeHasIt) {
  const Tensor<double> ratio =
      divide(Tensor<double>::vector({1, -1, 0}), Tensor<double>::vector({0, 0, 0}));
  EXPECT_EQ(ratio(0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ratio(1), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(ratio(2)));
}

TEST(Elementwise, OfManyElementsReachesEveryPiece) {
  const Index n = 200'001;
  Tensor<float> a({n});
  for (Index i = 0; i < n; ++i) a(i) = static_cast<float>(i);
  const Tensor<float> doubled = add(a, a);
  for (Index i = 0; i < n; ++i) ASSERT_EQ(doubled(i), static_cast<float>(2 * i));
}

TEST(Elementwise, BroadcastsTheShapesOfTheWorkedExamples) {
  for (const auto& example : worked_examples("broadcast_shape")) {
    const Tensor<float> a(Shape(example.inputs["a"].get<std::vector<Index>>()));
    const Tensor<float> b(Shape(example.inputs["b"].get<std::vector<Index>>()));
    if (example.expect == "error") {
      EXPECT_EQ(thrown_by<ShapeError>([&] { add(a, b); }),
                "add: a is 32x512 and b is 32, but 512 meets 32 in the last axis and neither is 1\n"
                "  hint: with b as a column, 32x1, it fits: the result is 32x512");
    } else {
      EXPECT_EQ(add(a, b).shape().sizes(), example.expect.get<std::vector<Index>>()) << example.id;
    }
  }
}

}  // namespace
}  // namespace eckart

#include "eckart/core/tensor_view.h"

#include "eckart/core/errors.h"
#include "eckart/core/tensor.h"

#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::thrown_by;

// 0, 1, 2, … in row-major order.
Tensor<int> counting(Shape shape) {
  Tensor<int> tensor = Tensor<int>::uninitialized(std::move(shape));
  std::iota(tensor.data(), tensor.data() + tensor.count(), 0);
  return tensor;
}

const Tensor<int> matrix = counting(Shape({3, 4}, {"row", "column"}));
const Tensor<int> cube = counting(Shape({2, 3, 4}, {"a", "b", "c"}));

TEST(TensorView, ADefaultViewIsEmpty) {
  const TensorView<float> view;
  EXPECT_EQ(view.shape(), Shape({0}));
  EXPECT_EQ(view.count(), 0);
  EXPECT_EQ(view.data(), nullptr);
  EXPECT_TRUE(view.is_row_major());
}

TEST(TensorView, StridesOfARowMajorArrayAreProductsOfTheInnerSizes) {
  EXPECT_EQ(cube.view().strides(), (std::vector<Index>{12, 4, 1}));
  EXPECT_EQ(cube.view()(1, 2, 3), 23);
  EXPECT_EQ(cube.view()(0, 1, 0), 4);
}

TEST(TensorView, EachAxisTakesOneStride) {
  std::vector<int> numbers(6);
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              TensorView<int>(numbers.data(), {2, 3}, {1});
            }),
            "view: 1 strides for 2x3, but each axis takes one");
}

TEST(TensorView, WritingThroughAViewWritesTheArray) {
  std::vector<int> numbers(6, 0);
  const TensorView<int> view(numbers.data(), {2, 3});
  view(1, 0) = 7;
  view.transpose()(2, 0) = 8;
  EXPECT_EQ(numbers, (std::vector<int>{0, 0, 8, 7, 0, 0}));
}

TEST(TensorView, AtChecksEveryPosition) {
  EXPECT_EQ(matrix.view().at(2, 3), 11);
  const auto message = [](auto... position) {
    return thrown_by<ShapeError>([&] { matrix.view().at(position...); });
  };
  EXPECT_EQ(message(3, 0), "at: position (3, 0) is outside 3x4 (row, column)");
  EXPECT_EQ(message(0, -1), "at: position (0, -1) is outside 3x4 (row, column)");
  EXPECT_EQ(message(1), "at: position (1) is outside 3x4 (row, column)");
  EXPECT_EQ(message(), "at: position () is outside 3x4 (row, column)");
  EXPECT_EQ(message(1, 2, 0), "at: position (1, 2, 0) is outside 3x4 (row, column)");
}

TEST(TensorView, AScalarHasOneElementAtNoPosition) {
  int number = 5;
  const TensorView<int> view(&number, Shape());
  EXPECT_EQ(view(), 5);
  EXPECT_EQ(view.at(), 5);
  EXPECT_EQ(view.transpose().rank(), 0);
  EXPECT_THROW(view.select(0, 0), ShapeError);
}

TEST(TensorView, TransposingExchangesTheLastTwoAxes) {
  const auto t = matrix.view().transpose();
  EXPECT_EQ(to_string(t.shape()), "4x3 (column, row)");
  EXPECT_TRUE(has_elements(t, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_FALSE(t.is_row_major());
  EXPECT_TRUE(t.transpose().is_row_major());
  EXPECT_EQ(to_string(cube.view().transpose().shape()), "2x4x3 (a, c, b)");
  EXPECT_EQ(counting({5}).view().transpose().shape(), Shape({5}));
}

TEST(TensorView, PermutingMovesSizesNamesAndStrides) {
  const auto p = cube.view().permute({2, 0, 1});
  EXPECT_EQ(to_string(p.shape()), "4x2x3 (c, a, b)");
  EXPECT_EQ(p.strides(), (std::vector<Index>{1, 12, 4}));
  for (Index a = 0; a < 2; ++a) {
    for (Index b = 0; b < 3; ++b) {
      for (Index c = 0; c < 4; ++c) EXPECT_EQ(p(c, a, b), cube(a, b, c));
    }
  }
}

TEST(TensorView, APermutationListsEachAxisOnce) {
  const auto message = [](std::vector<Index> axes) {
    return thrown_by<ShapeError>([&] { cube.view().permute(axes); });
  };
  EXPECT_EQ(message({0, 0, 1}),
            "permute: the axes are (0, 0, 1) for 2x3x4 (a, b, c), but each axis from 0 to 2 must "
            "stand once");
  EXPECT_EQ(message({0, 1}),
            "permute: the axes are (0, 1) for 2x3x4 (a, b, c), but each axis from 0 to 2 must "
            "stand once");
  EXPECT_THROW(cube.view().permute({0, 1, 3}), ShapeError);
  EXPECT_THROW(cube.view().permute({0, 1, -1}), ShapeError);
}

TEST(TensorView, ASliceFollowsPythonsRules) {
  const auto v = counting({10});
  const auto sliced = [&](Slice slice) { return v.view().slice(0, slice); };
  EXPECT_TRUE(has_elements(sliced({2, 5}), {2, 3, 4}));
  EXPECT_TRUE(has_elements(sliced({.begin = 7}), {7, 8, 9}));
  EXPECT_TRUE(has_elements(sliced({.end = 3}), {0, 1, 2}));
  EXPECT_TRUE(has_elements(sliced({-3, -1}), {7, 8}));
  EXPECT_TRUE(has_elements(sliced({-100, 2}), {0, 1}));
  EXPECT_TRUE(has_elements(sliced({8, 100}), {8, 9}));
  EXPECT_TRUE(has_elements(sliced({1, 9, 3}), {1, 4, 7}));
  EXPECT_TRUE(has_elements(sliced({1, 8, 3}), {1, 4, 7}));
  EXPECT_TRUE(has_elements(sliced({1, 7, 3}), {1, 4}));
  EXPECT_TRUE(has_elements(sliced({.step = 9}), {0, 9}));
  EXPECT_TRUE(has_elements(sliced({.step = 10}), {0}));
  EXPECT_TRUE(has_elements(sliced({.step = std::numeric_limits<Index>::max()}), {0}));
  for (const Slice empty : {Slice{5, 5}, Slice{6, 2}, Slice{10, 12}, Slice{-1, -5}, Slice{0, -10},
                            Slice{std::numeric_limits<Index>::min(), 0}}) {
    EXPECT_EQ(sliced(empty).shape(), Shape({0})) << empty.begin << " " << empty.end;
  }
}

TEST(TensorView, AnEmptySliceBeginsInsideTheArray) {
  // The last column from its end on: its first element would lie beyond the array.
  const auto column = matrix.view().select("column", 3);
  EXPECT_EQ(column.slice(0, {.begin = 3}).data(), column.data());
}

TEST(TensorView, AStepIsAtLeastOne) {
  EXPECT_EQ(thrown_by<ShapeError>([] { matrix.view().slice(0, {.step = 0}); }),
            "slice: the step is 0, but it must be at least 1");
  EXPECT_EQ(thrown_by<ShapeError>([] { matrix.view().slice(0, {.step = -1}); }),
            "slice: the step is -1, but it must be at least 1");
}

TEST(TensorView, SlicesOfSlicesAndOfTransposedViewsAddUp) {
  const auto inner = matrix.view().slice("row", {1, 3}).slice("column", {.begin = 1, .step = 2});
  EXPECT_EQ(to_string(inner.shape()), "2x2 (row, column)");
  EXPECT_TRUE(has_elements(inner, {5, 7, 9, 11}));
  EXPECT_TRUE(has_elements(inner.transpose(), {5, 9, 7, 11}));
  EXPECT_TRUE(has_elements(inner.transpose().slice(0, {1, 2}), {7, 11}));
  EXPECT_TRUE(
      has_elements(matrix.view().transpose().slice(-1, {.step = 2}), {0, 8, 1, 9, 2, 10, 3, 11}));
  EXPECT_TRUE(
      has_elements(matrix.view().slice(0, {.step = 2}).slice(0, {.begin = 1}), {8, 9, 10, 11}));
}

TEST(TensorView, SelectingAPositionLosesItsAxis) {
  EXPECT_EQ(to_string(cube.view().select("b", 1).shape()), "2x4 (a, c)");
  EXPECT_TRUE(has_elements(cube.view().select("b", 1), {4, 5, 6, 7, 16, 17, 18, 19}));
  EXPECT_TRUE(has_elements(cube.view().select(-1, -1), {3, 7, 11, 15, 19, 23}));
  EXPECT_TRUE(has_elements(matrix.view().select(0, 2).select(0, 0), {8}));
}

TEST(TensorView, APositionOutOfRangeIsAnError) {
  EXPECT_EQ(thrown_by<ShapeError>([] { matrix.view().select(1, 4); }),
            "select: position 4 of axis 1 of 3x4 (row, column), which has 4");
  EXPECT_EQ(thrown_by<ShapeError>([] { matrix.view().select("row", -4); }),
            "select: position -4 of axis 0 of 3x4 (row, column), which has 3");
  EXPECT_THROW(matrix.view().select(2, 0), ShapeError);
  EXPECT_THROW(matrix.view().select("token", 0), ShapeError);
  EXPECT_THROW(matrix.view().slice("token", {}), ShapeError);
  EXPECT_THROW(Tensor<int>(Shape{0, 3}).view().select(0, 0), ShapeError);
}

TEST(TensorView, ReshapingKeepsTheOrder) {
  const auto flat = matrix.view().reshape({12});
  EXPECT_EQ(flat.shape(), Shape({12}));
  EXPECT_EQ(flat.data(), matrix.data());
  EXPECT_EQ(matrix.view().reshape(Shape({2, 6}, {"x", "y"}))(1, 0), 6);
  EXPECT_EQ(matrix.view().select(0, 1).reshape({2, 2})(1, 1), 7);
  EXPECT_EQ(matrix.view().slice(0, {1, 3}).reshape({8})(7), 11);
  EXPECT_EQ(counting({1}).view().reshape(Shape()).rank(), 0);
}

TEST(TensorView, ReshapingNeedsTheSameCount) {
  EXPECT_EQ(thrown_by<ShapeError>([] { matrix.view().reshape({5}); }),
            "reshape: 3x4 (row, column) has 12 elements, but 5 has 5");
}

TEST(TensorView, ReshapingMovesNoData) {
  EXPECT_EQ(thrown_by<ShapeError>([] { matrix.view().transpose().reshape({12}); }),
            "reshape: the elements of 4x3 (column, row) are not in row-major order, but a reshape "
            "moves no data\n  hint: copy it first: Tensor(view)");
  EXPECT_THROW(matrix.view().slice(1, {0, 2}).reshape({6}), ShapeError);
  EXPECT_TRUE(has_elements(Tensor<int>(matrix.view().transpose()).view().reshape({12}),
                           {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
}

TEST(TensorView, AxesOfSizeOneDoNotBreakRowMajorOrder) {
  std::vector<int> numbers(6);
  EXPECT_TRUE(TensorView<int>(numbers.data(), {1, 6}, {99, 1}).is_row_major());
  EXPECT_TRUE(TensorView<int>(numbers.data(), {6, 1}, {1, 99}).is_row_major());
  EXPECT_FALSE(TensorView<int>(numbers.data(), {3, 2}, {1, 3}).is_row_major());
  EXPECT_FALSE(TensorView<int>(numbers.data(), {3}, {2}).is_row_major());
  EXPECT_TRUE(TensorView<int>(numbers.data(), {1}, {2}).is_row_major());
  EXPECT_TRUE(TensorView<int>(numbers.data(), {0, 3}, {5, 5}).is_row_major());
}

TEST(TensorView, BroadcastingRepeatsWithoutCopying) {
  const auto row = counting({3});
  const auto wide = row.view().broadcast_to({2, 3});
  EXPECT_EQ(wide.strides(), (std::vector<Index>{0, 1}));
  EXPECT_TRUE(has_elements(wide, {0, 1, 2, 0, 1, 2}));
  const auto column = row.view().reshape({3, 1}).broadcast_to({2, 3, 2});
  EXPECT_TRUE(has_elements(column, {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  EXPECT_FALSE(column.is_row_major());
  int number = 4;
  EXPECT_TRUE(has_elements(TensorView<int>(&number, Shape()).broadcast_to({2, 2}), {4, 4, 4, 4}));
  EXPECT_EQ(counting({1}).view().broadcast_to({0}).count(), 0);
}

TEST(TensorView, BroadcastingKeepsTheNames) {
  const auto bias = counting(Shape({4}, {"column"}));
  EXPECT_EQ(to_string(bias.view().broadcast_to({3, 4}).shape()), "3x4 (?, column)");
  EXPECT_EQ(to_string(bias.view().broadcast_to(matrix.shape()).shape()), "3x4 (row, column)");
}

TEST(TensorView, BroadcastingReachesExactlyTheShapeOrIsAnError) {
  EXPECT_EQ(thrown_by<ShapeError>([] {
              counting({3, 1}).view().broadcast_to({3});
            }),
            "broadcast_to: x is 3x1, but it does not stretch to 3");
  EXPECT_EQ(thrown_by<ShapeError>([] {
              counting({1, 3}).view().broadcast_to({3});
            }),
            "broadcast_to: x is 1x3, but it does not stretch to 3");
  EXPECT_EQ(thrown_by<ShapeError>([] {
              counting({3}).view().broadcast_to({2, 4});
            }),
            "broadcast_to: x is 3 and the result is 2x4, but 3 meets 4 in the last axis and "
            "neither is 1");
  EXPECT_THROW(counting({3}).view().broadcast_to({1}), ShapeError);
}

TEST(TensorView, EmptyViewsCanBeCutAndTurned) {
  const Tensor<int> empty(Shape({0, 3}, {"row", "column"}));
  EXPECT_EQ(to_string(empty.view().transpose().shape()), "3x0 (column, row)");
  EXPECT_EQ(empty.view().slice("column", {1, 2}).shape().sizes(), (std::vector<Index>{0, 1}));
  EXPECT_EQ(empty.view().select("column", 2).shape().sizes(), (std::vector<Index>{0}));
  EXPECT_EQ(empty.view().reshape({3, 0, 5}).count(), 0);
  int calls = 0;
  for_each_element([&](int) { ++calls; }, empty.view());
  EXPECT_EQ(calls, 0);
}

TEST(TensorView, AReadOnlyViewIsMadeFromAnyView) {
  Tensor<int> tensor = counting({2, 2});
  const TensorView<const int> read_only = tensor.view().transpose();
  EXPECT_EQ(read_only.data(), tensor.data());
  EXPECT_EQ(read_only.strides(), (std::vector<Index>{1, 2}));
}

TEST(TensorView, ForEachElementGoesInRowMajorOrderWhateverTheStrides) {
  std::vector<int> seen;
  for_each_element([&](int element) { seen.push_back(element); },
                   cube.view().permute({2, 0, 1}).slice(0, {.begin = 1, .step = 2}));
  std::vector<int> expected;
  for (Index c = 1; c < 4; c += 2) {
    for (Index a = 0; a < 2; ++a) {
      for (Index b = 0; b < 3; ++b) expected.push_back(cube(a, b, c));
    }
  }
  EXPECT_EQ(seen, expected);
}

TEST(TensorView, ForEachElementWalksSeveralViewsInStep) {
  Tensor<int> sum(Shape{4, 3});
  for_each_element([](int& to, const int& a, const int& b) { to = a + 100 * b; }, sum.view(),
                   matrix.view().transpose(), counting({4, 3}).view());
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 3; ++j) EXPECT_EQ(sum(i, j), matrix(j, i) + 100 * (3 * i + j));
  }
}

TEST(TensorView, ForEachElementVisitsAScalarOnce) {
  int number = 3;
  int sum = 0;
  for_each_element([&](int a, int b) { sum += a + b; }, TensorView<int>(&number, Shape()),
                   TensorView<int>(&number, Shape()));
  EXPECT_EQ(sum, 6);
}

TEST(TensorView, ForEachElementNeedsTheSameSizes) {
  EXPECT_EQ(thrown_by<ShapeError>([] {
              for_each_element([](int, int) {}, matrix.view(), matrix.view().transpose());
            }),
            "for_each_element: 3x4 (row, column) and 4x3 (column, row), but the views must have "
            "the same sizes");
}

TEST(TensorView, NamesCanBeGivenToAView) {
  EXPECT_EQ(to_string(counting({2, 3}).view().named({"x", "y"}).shape()), "2x3 (x, y)");
  EXPECT_EQ(matrix.view().size("column"), 4);
  EXPECT_EQ(matrix.view().size(-2), 3);
}

}  // namespace
}  // namespace eckart

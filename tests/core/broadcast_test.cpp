#include "eckart/core/broadcast.h"

#include "eckart/core/errors.h"
#include "eckart/core/tensor.h"

#include <string>
#include <vector>

#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;

std::string misfit(const Shape& a, const Shape& b, const BroadcastOptions& options = {}) {
  return thrown_by<ShapeError>([&] { broadcast_shape(a, b, options); });
}

TEST(Broadcast, EqualShapesStayAsTheyAre) {
  EXPECT_EQ(broadcast_shape({2, 3}, {2, 3}), Shape({2, 3}));
  EXPECT_EQ(broadcast_shape({}, {}), Shape());
}

TEST(Broadcast, ABiasIsAddedToEveryRow) {
  EXPECT_EQ(broadcast_shape({32, 512}, {512}), Shape({32, 512}));
  EXPECT_EQ(broadcast_shape({512}, {32, 512}), Shape({32, 512}));
}

TEST(Broadcast, AColumnIsStretchedAlongTheRows) {
  EXPECT_EQ(broadcast_shape({32, 512}, {32, 1}), Shape({32, 512}));
}

TEST(Broadcast, ARowIsStretchedDownTheColumns) {
  EXPECT_EQ(broadcast_shape({512, 32}, {1, 32}), Shape({512, 32}));
}

TEST(Broadcast, AScalarFitsEverything) {
  EXPECT_EQ(broadcast_shape({}, {4, 5}), Shape({4, 5}));
  EXPECT_EQ(broadcast_shape({4, 5}, {}), Shape({4, 5}));
  EXPECT_EQ(broadcast_shape({1}, {4, 5}), Shape({4, 5}));
  EXPECT_EQ(broadcast_shape({1, 1, 1}, {}), Shape({1, 1, 1}));
}

TEST(Broadcast, AnEmptyAxisStretchesOneToNone) {
  EXPECT_EQ(broadcast_shape({3, 0}, {3, 1}), Shape({3, 0}));
  EXPECT_EQ(broadcast_shape({0}, {1}), Shape({0}));
  EXPECT_EQ(misfit({3, 0}, {3, 2}),
            "broadcast: a is 3x0 and b is 3x2, but 0 meets 2 in the last axis and neither is 1");
}

TEST(Broadcast, AVectorOfTheWrongAxisIsAnErrorThatOffersTheColumn) {
  EXPECT_EQ(misfit({32, 512}, {32}),
            "broadcast: a is 32x512 and b is 32, but 512 meets 32 in the last axis and neither is "
            "1\n  hint: with b as a column, 32x1, it fits: the result is 32x512");
  EXPECT_EQ(misfit({32}, {32, 512}),
            "broadcast: a is 32 and b is 32x512, but 32 meets 512 in the last axis and neither is "
            "1\n  hint: with a as a column, 32x1, it fits: the result is 32x512");
}

TEST(Broadcast, WhatDoesNotFitAsAColumnGetsNoHint) {
  EXPECT_EQ(misfit({32, 512}, {7}),
            "broadcast: a is 32x512 and b is 7, but 512 meets 7 in the last axis and neither is 1");
  EXPECT_EQ(misfit({4, 2, 3}, {5, 2, 3}),
            "broadcast: a is 4x2x3 and b is 5x2x3, but 4 meets 5 in axis -3 and neither is 1");
}

TEST(Broadcast, TwoStretchedOperandsAreRefused) {
  EXPECT_EQ(misfit({3}, {3, 1}),
            "broadcast: a is 3 and b is 3x1, but both would be stretched, to 3x3\n"
            "  hint: for the 3x3 table of all pairs ask for it with outer = true; for one result "
            "an element give both the same shape");
  EXPECT_THROW(broadcast_shape({4, 1}, {1, 5}), ShapeError);
  EXPECT_THROW(broadcast_shape({1, 5}, {4, 1}), ShapeError);
}

TEST(Broadcast, OneStretchedOperandMayBeStretchedAlongSeveralAxes) {
  EXPECT_EQ(broadcast_shape({1, 3, 1}, {2, 3, 4}), Shape({2, 3, 4}));
  EXPECT_THROW(broadcast_shape({1, 3, 4}, {2, 3, 1}), ShapeError);
}

TEST(Broadcast, AnOuterRequestGivesTheTableOfAllPairs) {
  EXPECT_EQ(broadcast_shape({3}, {3, 1}, {.outer = true}), Shape({3, 3}));
  EXPECT_EQ(broadcast_shape({4, 1}, {1, 5}, {.outer = true}), Shape({4, 5}));
  EXPECT_THROW(broadcast_shape({4, 2}, {3, 5}, {.outer = true}), ShapeError);
}

// Predictions (1, 2, 3) against a column of the same targets: as a table the mean of the squares is
// (0 + 1 + 4 + 1 + 0 + 1 + 4 + 1 + 0) / 9 = 4/3, element by element it is 0.
TEST(Broadcast, AnOuterLossIsNotTheLoss) {
  const auto predictions = Tensor<double>::vector({1, 2, 3});
  const auto targets = Tensor<double>::matrix({{1}, {2}, {3}});
  const Shape table = broadcast_shape(predictions.shape(), targets.shape(), {.outer = true});
  double sum = 0;
  for_each_element([&](double p, double t) { sum += (p - t) * (p - t); },
                   predictions.view().broadcast_to(table), targets.view().broadcast_to(table));
  EXPECT_DOUBLE_EQ(sum / 9, 1.3333333333333333);
  double flat_sum = 0;
  for_each_element([&](double p, double t) { flat_sum += (p - t) * (p - t); }, predictions.view(),
                   targets.view().reshape({3}));
  EXPECT_EQ(flat_sum, 0);
}

TEST(Broadcast, NamesAreTakenFromWhoeverHasThem) {
  const Shape x({32, 512}, {"token", "d_model"});
  EXPECT_EQ(broadcast_shape(x, {512}), x);
  EXPECT_EQ(broadcast_shape({512}, x), x);
  EXPECT_EQ(broadcast_shape(x, Shape({512}, {"d_model"})), x);
  EXPECT_EQ(broadcast_shape(Shape({32, 1}, {"token", ""}), Shape({32, 512}, {"", "d_model"})), x);
}

TEST(Broadcast, ANameMeetsOnlyItself) {
  EXPECT_EQ(misfit(Shape({2, 3}, {"token", "d_model"}), Shape({2, 3}, {"token", "d_head"})),
            "broadcast: a is 2x3 (token, d_model) and b is 2x3 (token, d_head), but axis d_model "
            "of a would meet axis d_head of b");
}

TEST(Broadcast, ANameStandsAtOnePlaceInBoth) {
  EXPECT_EQ(misfit(Shape({3, 3}, {"token", ""}), Shape({3}, {"token"})),
            "broadcast: a is 3x3 (token, ?) and b is 3 (token), but axis token does not stand at "
            "the same place from the end in both");
}

TEST(Broadcast, TheMessageNamesTheOperationAndItsOperands) {
  EXPECT_EQ(misfit({2}, {3}, {.operation = "add", .left = "x", .right = "bias"}),
            "add: x is 2 and bias is 3, but 2 meets 3 in the last axis and neither is 1");
}

}  // namespace
}  // namespace eckart

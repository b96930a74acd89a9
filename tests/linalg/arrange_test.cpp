#include "eckart/linalg/arrange.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"

#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::thrown_by;

TEST(Stack, MakesAnAxisOfTheParts) {
  const Tensor<double> u = Tensor<double>::vector({1, 2, 3}).named({"d"});
  const Tensor<double> v = Tensor<double>::vector({4, 5, 6});
  const Tensor<double> rows = stack<double>({u, v}, {.name = "token"});
  EXPECT_EQ(rows.shape(), Shape({2, 3}, {"token", "d"}));
  EXPECT_TRUE(has_elements(rows.view(), {1, 2, 3, 4, 5, 6}));
  const Tensor<double> columns = stack<double>({u, v}, {.axis = -1});
  EXPECT_EQ(columns.shape(), Shape({3, 2}, {"d", ""}));
  EXPECT_TRUE(has_elements(columns.view(), {1, 4, 2, 5, 3, 6}));
}

TEST(Stack, RefusesWhatDoesNotFit) {
  const Tensor<double> u({3});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              stack<double>({u, Tensor<double>({2})});
            }),
            "stack: part 1 is 2 and part 0 is 3, but all must have the same sizes");
  EXPECT_EQ(thrown_by<ShapeError>([&] { stack<double>({}); }),
            "stack: there are no parts, but it takes at least one");
  EXPECT_EQ(thrown_by<ShapeError>([&] { stack<double>({u}, {.axis = 2}); }),
            "stack: axis 2 of a result of 2 axes, but axes are -2 to 1");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              stack<double>({u.named({"a"}), u.named({"b"})});
            }),
            "stack: part 1 is 3 (b) and part 0 is 3 (a), but axis b would meet axis a");
}

TEST(Concatenate, PutsPartsBehindEachOther) {
  const Tensor<float> a = Tensor<float>::matrix({{1, 2}, {3, 4}}).named({"token", "d"});
  const Tensor<float> b = Tensor<float>::matrix({{5, 6}});
  const Tensor<float> longer = concatenate<float>({a, b}, "token");
  EXPECT_EQ(longer.shape(), Shape({3, 2}, {"token", "d"}));
  EXPECT_TRUE(has_elements(longer.view(), {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(
      has_elements(concatenate<float>({a, a.view().transpose().named({"token", "d"})}, 1).view(),
                   {1, 2, 1, 3, 3, 4, 2, 4}));
  EXPECT_EQ(concatenate<float>({a, Tensor<float>({0, 2})}).shape(), a.shape());
  EXPECT_EQ(
      thrown_by<ShapeError>([&] {
        concatenate<float>({a, b}, 1);
      }),
      "concatenate: part 1 is 1x2 and part 0 is 2x2 (token, d), but all axes but number 1 must "
      "have the same sizes");
}

TEST(Gather, TakesRowsByNumber) {
  const Tensor<double> table =
      Tensor<double>::matrix({{0.1, 0.2}, {1, 0}, {0.5, 0.5}}).named({"vocab", "d_model"});
  const Tensor<double> rows = gather(table, {2, 0, 1, 1});
  EXPECT_EQ(rows.shape(), Shape({4, 2}, {"vocab", "d_model"}));
  EXPECT_TRUE(has_elements(rows.view(), {0.5, 0.5, 0.1, 0.2, 1, 0, 1, 0}));
  EXPECT_TRUE(has_elements(gather(table, {1, 1}, "d_model").view(), {0.2, 0.2, 0, 0, 0.5, 0.5}));
  EXPECT_EQ(gather(table, {}).shape(), Shape({0, 2}, {"vocab", "d_model"}));
  // One-hot rows times the table give the same.
  const Tensor<double> one_hot =
      Tensor<double>::matrix({{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 1, 0}});
  EXPECT_TRUE(is_near(matmul(one_hot, table), rows));
}

TEST(Gather, NamesAnIdThatIsNotThere) {
  const Tensor<double> table = Tensor<double>({3, 2}).named({"vocab", "d_model"});
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] {
        gather(table, {0, 3});
      }),
      "gather: id 3 at position 1, but table is 3x2 (vocab, d_model), and its axis vocab has 3 "
      "positions");
  EXPECT_THROW(gather(table, {-1}), ArgumentError);
  EXPECT_THROW(gather(table, {0}, 2), ShapeError);
}

}  // namespace
}  // namespace eckart

#include "eckart/linalg/matmul.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

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

// The product of two matrices by its definition, in double.
template <class T>
Tensor<double> by_definition(TensorView<const T> a, TensorView<const T> b) {
  Tensor<double> c({a.size(0), b.size(1)});
  for (Index i = 0; i < a.size(0); ++i) {
    for (Index j = 0; j < b.size(1); ++j) {
      for (Index k = 0; k < a.size(1); ++k) {
        c(i, j) += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
      }
    }
  }
  return c;
}

TEST(Matmul, OfTheWorkedExamples) {
  for (const auto& example : worked_examples("matmul")) {
    if (example.expect == "error") continue;
    EXPECT_TRUE(is_near(matmul(tensor_of(example.inputs["a"]), tensor_of(example.inputs["b"])),
                        tensor_of(example.expect), {.absolute = example.tolerance}))
        << example.id;
  }
  for (const auto& example : worked_examples("matmul_chain")) {
    const auto& factors = example.inputs["factors"];
    const Tensor<double> product =
        matmul(matmul(tensor_of(factors[0]), tensor_of(factors[1])), tensor_of(factors[2]));
    EXPECT_TRUE(is_near(product, tensor_of(example.expect), {.absolute = example.tolerance}))
        << example.id;
  }
}

TEST(Matmul, OfShapesThatDontFitListsEveryArrangementThatDoes) {
  std::vector<std::string> messages;
  for (const auto& example : worked_examples("matmul")) {
    if (example.expect != "error") continue;
    const auto operand = [&](const std::string& name) {
      return example.inputs.contains(name)
                 ? tensor_of(example.inputs[name])
                 : Tensor<double>(Shape(example.inputs[name + "_shape"].get<std::vector<Index>>()));
    };
    messages.push_back(thrown_by<ShapeError>([&] { matmul(operand("a"), operand("b")); }));
  }
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[0],
            "matmul: a is 32x768 and b is 512x768, but a's 768 columns must equal b's 512 rows\n"
            "  hint: with b transposed it fits: 32x768 by 768x512 gives 32x512");
  EXPECT_EQ(messages[1],
            "matmul: a is 2x3 and b is 2x3, but a's 3 columns must equal b's 2 rows\n"
            "  hint: with b transposed it fits: 2x3 by 3x2 gives 2x2; "
            "with a transposed it fits: 3x2 by 2x3 gives 3x3");
  EXPECT_EQ(messages[2],
            "matmul: a is 128x64 and b is 32x128, but a's 64 columns must equal b's 32 rows\n"
            "  hint: with both transposed it fits: 64x128 by 128x32 gives 64x32; "
            "with a and b swapped it fits: 32x128 by 128x64 gives 32x64");
}

TEST(Matmul, NamesItsOperandsAndAxesInAnError) {
  const Tensor<float> x = Tensor<float>({32, 768}).named({"token", "d_model"});
  const Tensor<float> w = Tensor<float>({512, 768}).named({"d_head", "d_model"});
  EXPECT_EQ(thrown_by<ShapeError>([&] { matmul(x, w, {.left = "x", .right = "w"}); }),
            "matmul: x is 32x768 (token, d_model) and w is 512x768 (d_head, d_model), but x's 768 "
            "columns must equal w's 512 rows\n"
            "  hint: with w transposed it fits: 32x768 by 768x512 gives 32x512 (token, d_head)");
  EXPECT_EQ(thrown_by<ShapeError>([] {
              matmul(Tensor<float>({2, 3}), Tensor<float>({5, 7}));
            }),
            "matmul: a is 2x3 and b is 5x7, but a's 3 columns must equal b's 5 rows");
}

TEST(Matmul, RefusesAxesOfOneSizeAndTwoNames) {
  const Tensor<float> x = Tensor<float>({4, 8}).named({"token", "d_model"});
  const Tensor<float> w = Tensor<float>({8, 8}).named({"d_head", "d_model"});
  EXPECT_EQ(thrown_by<ShapeError>([&] { matmul(x, w); }),
            "matmul: a is 4x8 (token, d_model) and b is 8x8 (d_head, d_model), but a's columns are "
            "d_model and b's rows are d_head\n"
            "  hint: with b transposed it fits: 4x8 by 8x8 gives 4x8 (token, d_head)");
}

TEST(Matmul, KeepsTheNamesOfRowsAndColumns) {
  const Tensor<float> x = Tensor<float>({4, 8}, 1.0F).named({"token", "d_model"});
  const Tensor<float> w = Tensor<float>({8, 3}, 1.0F).named({"d_model", "d_ff"});
  EXPECT_EQ(matmul(x, w).shape(), Shape({4, 3}, {"token", "d_ff"}));
  // A name means one axis: of x x^T the rows have it.
  EXPECT_EQ(matmul(x, x.view().transpose()).shape(), Shape({4, 4}, {"token", ""}));
}

TEST(Matmul, OfEveryShapeIsItsDefinition) {
  const std::vector<std::vector<Index>> shapes = {{1, 1, 1},    {1, 7, 5},   {5, 7, 1},
                                                  {1, 300, 1},  {17, 1, 19}, {33, 65, 31},
                                                  {3, 5000, 3}, {70, 80, 90}};
  for (const auto& size : shapes) {
    const Tensor<float> a = random_tensor<float>({size[0], size[1]}, 1);
    const Tensor<float> b = random_tensor<float>({size[1], size[2]}, 2);
    const Tensor<double> expected = by_definition(a.view(), b.view());
    // k partial sums of about sqrt(k), each rounded by 2^-24 of itself at random, are off by k 2^-24;
    // four times that, and the rounding of one product of up to 16.
    const double k = static_cast<double>(size[1]);
    const testing::Bound bound{.absolute = (16 + 4 * k) * 0x1p-24};
    EXPECT_TRUE(is_near(matmul(a, b), expected, bound)) << size[1];
    const Tensor<float> at(a.view().transpose());
    const Tensor<float> bt(b.view().transpose());
    EXPECT_TRUE(is_near(matmul(at.view().transpose(), bt.view().transpose()), expected, bound));
  }
}

TEST(Matmul, OfSlicedViews) {
  const Tensor<double> a = random_tensor<double>({20, 30}, 1);
  const Tensor<double> b = random_tensor<double>({40, 18}, 2);
  const auto left = a.view().slice(0, {.begin = 1, .step = 3}).slice(1, {.step = 3});
  const auto right = b.view().slice(0, {.begin = 5, .end = 35, .step = 3}).slice(1, {.begin = 2});
  EXPECT_TRUE(is_near(matmul(left, right), by_definition(left, right), {.absolute = 1e-13}));
}

TEST(Matmul, OverAnEmptyInnerDimensionIsZero) {
  EXPECT_TRUE(
      has_elements(matmul(Tensor<double>({2, 0}), Tensor<double>({0, 2})).view(), {0, 0, 0, 0}));
  EXPECT_EQ(matmul(Tensor<double>({0, 3}), Tensor<double>({3, 4})).shape(), Shape({0, 4}));
  EXPECT_EQ(matmul(Tensor<double>({5, 0, 3}), Tensor<double>({3, 4})).shape(), Shape({5, 0, 4}));
  EXPECT_EQ(*matmul(Tensor<double>({0}), Tensor<double>({0})).data(), 0);
}

TEST(Matmul, OfVectorsIsARowOrAColumn) {
  const Tensor<double> a = Tensor<double>::matrix({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_TRUE(has_elements(matmul(a, Tensor<double>::vector({1, -1})).view(), {-1, -1, -1}));
  EXPECT_EQ(matmul(a, Tensor<double>::vector({1, -1})).shape(), Shape({3}));
  EXPECT_TRUE(has_elements(matmul(Tensor<double>::vector({1, 0, 2}), a).view(), {11, 14}));
  EXPECT_EQ(matmul(Tensor<double>::vector({3, 4}), Tensor<double>::vector({4, 3})).shape(),
            Shape{});
  EXPECT_EQ(*matmul(Tensor<double>::vector({3, 4}), Tensor<double>::vector({4, 3})).data(), 24);
  EXPECT_EQ(thrown_by<ShapeError>([&] { matmul(Tensor<double>({2}), a); }),
            "matmul: a is 2 and b is 3x2, but a's 2 elements must equal b's 3 rows\n"
            "  hint: with b transposed it fits: 2 by 2x3 gives 3; "
            "with a and b swapped it fits: 3x2 by 2 gives 3");
  EXPECT_EQ(thrown_by<ShapeError>([&] { matmul(a, Tensor<double>(Shape{})); }),
            "matmul: a is 3x2 and b is scalar, but a product of matrices takes no scalar\n"
            "  hint: multiply scales each element of an array by a number");
}

TEST(Matmul, OfBatchesBroadcastsTheLeadingAxes) {
  const Tensor<double> a =
      random_tensor<double>({2, 3, 4, 5}, 1).named({"batch", "head", "token", "d"});
  const Tensor<double> b = random_tensor<double>({3, 5, 6}, 2);
  const Tensor<double> c = matmul(a, b);
  EXPECT_EQ(c.shape(), Shape({2, 3, 4, 6}, {"batch", "head", "token", ""}));
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j) {
      EXPECT_TRUE(
          is_near(c.view().select(0, i).select(0, j),
                  by_definition(a.view().select(0, i).select(0, j), b.view().select(0, j)).view(),
                  {.absolute = 1e-13}));
    }
  }
  // One matrix for all, in order and not.
  const Tensor<double> w = random_tensor<double>({5, 7}, 3);
  const Tensor<double> all = matmul(a, w);
  EXPECT_TRUE(is_near(matmul(a.view().permute({1, 0, 2, 3}), w).view(),
                      all.view().permute({1, 0, 2, 3}), {.absolute = 1e-13}));
  EXPECT_TRUE(is_near(all.view().select(0, 1).select(0, 2),
                      by_definition(a.view().select(0, 1).select(0, 2), w.view()).view(),
                      {.absolute = 1e-13}));
  EXPECT_EQ(matmul(a, random_tensor<double>({5}, 4)).shape(),
            Shape({2, 3, 4}, {"batch", "head", "token"}));
  EXPECT_EQ(matmul(random_tensor<double>({4}, 4), a).shape(),
            Shape({2, 3, 5}, {"batch", "head", "d"}));
}

TEST(Matmul, OfBatchesThatDontFitSaysSo) {
  EXPECT_EQ(thrown_by<ShapeError>([] {
              matmul(Tensor<float>({2, 3, 4}), Tensor<float>({5, 4, 3}));
            }),
            "matmul: the batch of a is 2 and the batch of b is 5, but 2 meets 5 in the last axis "
            "and neither is 1");
  const Tensor<float> a({2, 1, 3, 4}, 1.0F);
  const Tensor<float> b({5, 4, 3}, 1.0F);
  EXPECT_THROW(matmul(a, b), ShapeError);
  EXPECT_EQ(matmul(a, b, {.outer = true}).shape(), Shape({2, 5, 3, 3}));
}

TEST(Matmul, CarriesNanAndInfinity) {
  Tensor<double> a({2, 2}, 1.0);
  a(0, 1) = std::numeric_limits<double>::quiet_NaN();
  const Tensor<double> c = matmul(a, Tensor<double>({2, 2}, 0.0));
  EXPECT_TRUE(std::isnan(c(0, 0)));
  EXPECT_EQ(c(1, 1), 0);
}

TEST(Matmul, GivesTheSameBitsForEveryNumberOfThreads) {
  const Tensor<float> a = random_tensor<float>({90, 200}, 1);
  const Tensor<float> b = random_tensor<float>({200, 110}, 2);
  const Tensor<float> batch = random_tensor<float>({30, 20, 30}, 3);
  set_thread_count(1);
  const Tensor<float> one = matmul(a, b);
  const Tensor<float> many = matmul(batch, batch.view().transpose());
  set_thread_count(3);
  EXPECT_TRUE(is_near(matmul(a, b), one));
  EXPECT_TRUE(is_near(matmul(batch, batch.view().transpose()), many));
  set_thread_count(0);
}

TEST(Linear, OfTheWorkedExamples) {
  for (const auto& example : worked_examples("linear")) {
    EXPECT_TRUE(is_near(linear(tensor_of(example.inputs["x"]), tensor_of(example.inputs["w"]),
                               tensor_of(example.inputs["b"])),
                        tensor_of(example.expect), {.absolute = example.tolerance}));
  }
}

TEST(Linear, AddsTheBiasToEveryRow) {
  const Tensor<double> x = Tensor<double>({2, 3, 2}, 1.0).named({"batch", "token", "d_model"});
  const Tensor<double> w =
      Tensor<double>::matrix({{1, 2, 3}, {4, 5, 6}}).named({"d_model", "d_ff"});
  const Tensor<double> y = linear(x, w, Tensor<double>::vector({10, 20, 30}));
  EXPECT_EQ(y.shape(), Shape({2, 3, 3}, {"batch", "token", "d_ff"}));
  EXPECT_TRUE(has_elements(y.view().select(0, 1).select(0, 2), {15, 27, 39}));
  EXPECT_TRUE(has_elements(linear(Tensor<double>::vector({1, 1}), w).view(), {5, 7, 9}));
}

TEST(Linear, RefusesWhatDoesNotFit) {
  const Tensor<double> x({2, 3});
  const Tensor<double> w({4, 3});
  EXPECT_EQ(thrown_by<ShapeError>([&] { linear(x, w); }),
            "linear: x is 2x3 and w is 4x3, but x's 3 columns must equal w's 4 rows\n"
            "  hint: with w transposed it fits: 2x3 by 3x4 gives 2x4");
  EXPECT_EQ(thrown_by<ShapeError>([&] { linear(x, w.view().transpose(), Tensor<double>({3})); }),
            "linear: w is 3x4 and b is 3, but b must have an element for each of w's 4 columns");
  EXPECT_EQ(thrown_by<ShapeError>([&] { linear(x, Tensor<double>({3})); }),
            "linear: w is 3, but it must be a matrix");
}

TEST(Outer, IsTheTableOfProducts) {
  const Tensor<double> u = Tensor<double>::vector({1, 2}).named({"token"});
  const Tensor<double> v = Tensor<double>::vector({3, 4, 5}).named({"d"});
  EXPECT_TRUE(has_elements(outer(u, v).view(), {3, 4, 5, 6, 8, 10}));
  EXPECT_EQ(outer(u, v).shape(), Shape({2, 3}, {"token", "d"}));
  EXPECT_EQ(outer(u, u).shape(), Shape({2, 2}, {"token", ""}));
  EXPECT_EQ(outer(u, Tensor<double>({0})).shape(), Shape({2, 0}, {"token", ""}));
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              outer(u, Tensor<double>({1, 2}));
            }),
            "outer: u is 2 (token) and v is 1x2, but both must be vectors");
}

TEST(Contract, SumsOverAxesThatShareAName) {
  const Tensor<double> x = random_tensor<double>({3, 2, 4}, 1).named({"token", "head", "d_head"});
  const Tensor<double> w = random_tensor<double>({2, 4, 5}, 2).named({"head", "d_head", "d_model"});
  const Tensor<double> y = contract(x, w);
  ASSERT_EQ(y.shape(), Shape({3, 5}, {"token", "d_model"}));
  EXPECT_TRUE(is_near(y.view(),
                      by_definition(x.view().reshape({3, 8}), w.view().reshape({8, 5})).view(),
                      {.absolute = 1e-13}));
  // The order of axes in memory is nothing to it.
  EXPECT_TRUE(is_near(contract(x.view().permute({2, 0, 1}), w.view().permute({1, 2, 0})), y,
                      {.absolute = 1e-13}));
}

TEST(Contract, KeepsSharedAxesOnRequest) {
  const Tensor<double> q = random_tensor<double>({3, 2, 4}, 1).named({"token", "head", "d_head"});
  const Tensor<double> k = random_tensor<double>({5, 2, 4}, 2).named({"key", "head", "d_head"});
  const Tensor<double> scores = contract(q, k, {.keep = {"head"}});
  ASSERT_EQ(scores.shape(), Shape({3, 2, 5}, {"token", "head", "key"}));
  for (Index head = 0; head < 2; ++head) {
    EXPECT_TRUE(is_near(
        scores.view().select("head", head),
        by_definition(q.view().select(1, head), k.view().select(1, head).transpose()).view(),
        {.absolute = 1e-13}));
  }
}

TEST(Contract, OfVectorsIsTheirProduct) {
  const Tensor<double> u = Tensor<double>::vector({3, 4}).named({"d"});
  EXPECT_EQ(contract(u, u).shape(), Shape{});
  EXPECT_EQ(*contract(u, u).data(), 25);
}

TEST(Contract, RefusesWhatDoesNotFit) {
  const Tensor<double> x = Tensor<double>({2, 3}).named({"token", "d_model"});
  const Tensor<double> w = Tensor<double>({4, 5}).named({"d_model", "d_ff"});
  EXPECT_EQ(
      thrown_by<ShapeError>([&] { contract(x, w); }),
      "contract: x is 2x3 (token, d_model) and w is 4x5 (d_model, d_ff), but axis d_model has "
      "3 positions in x and 4 in w");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              contract(x, Tensor<double>({3, 5}));
            }),
            "contract: x is 2x3 (token, d_model) and w is 3x5, but they share no axis to sum over");
  EXPECT_EQ(
      thrown_by<ShapeError>([&] { contract(x, x, {.keep = {"head"}}); }),
      "contract: x is 2x3 (token, d_model) and w is 2x3 (token, d_model), but head, which keep "
      "names, is not an axis of both");
}

}  // namespace
}  // namespace eckart

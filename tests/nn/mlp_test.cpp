#include "eckart/nn/mlp.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/elementwise.h"
#include "eckart/linalg/matmul.h"

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
using testing::random_matrix;
using testing::random_tensor;
using testing::thrown_by;

TEST(Mlp, ALayerWithReluGivesTheWorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("linear_relu")) {
    const Tensor<double> x = testing::tensor_of(example.inputs.at("x"));
    const Tensor<double> w = testing::tensor_of(example.inputs.at("w"));
    const Tensor<double> b = testing::tensor_of(example.inputs.at("b"));
    EXPECT_TRUE(is_near(relu(linear(x, w, b)), testing::tensor_of(example.expect),
                        {.absolute = example.tolerance}));
  }
}

TEST(Mlp, IsWhatAReaderCanCheck) {
  const Tensor<double> x = Tensor<double>::matrix({{1, 2}});
  const Tensor<double> up = Tensor<double>::matrix({{1, -1, 0}, {1, 0, 2}});
  const Tensor<double> down = Tensor<double>::matrix({{1, 0}, {5, 5}, {0, 1}});
  // x up = (3, -1, 4); relu = (3, 0, 4); down gives (3, 4).
  EXPECT_TRUE(has_elements(
      mlp(x, {.w_up = up, .w_down = down, .activation = Activation::relu}).view(), {3, 4}));
  // Gate (1, 0, 2) with relu: (1, 0, 2) * (3, -1, 4) = (3, 0, 8).
  const Tensor<double> gate = Tensor<double>::matrix({{1, -2, 0}, {0, 1, 1}});
  EXPECT_TRUE(has_elements(
      mlp(x, {.w_up = up, .w_down = down, .w_gate = gate, .activation = Activation::relu}).view(),
      {3, 8}));
  // Biases: up + (0, 2, 0) = (3, 1, 4), gate + (1, 1, -3) = (2, 1, 0), down + (10, 20).
  const Tensor<double> b_up = Tensor<double>::vector({0, 2, 0});
  const Tensor<double> b_gate = Tensor<double>::vector({1, 1, -3});
  const Tensor<double> b_down = Tensor<double>::vector({10, 20});
  EXPECT_TRUE(has_elements(mlp(x, {.w_up = up,
                                   .w_down = down,
                                   .w_gate = gate,
                                   .b_up = b_up,
                                   .b_down = b_down,
                                   .b_gate = b_gate,
                                   .activation = Activation::relu})
                               .view(),
                           {6 + 5 + 10, 5 + 20}));
}

TEST(Mlp, IsItsStepsOneByOne) {
  const Tensor<float> x = random_tensor<float>({2, 5, 8}).named({"batch", "token", "d_model"});
  const Tensor<float> up = random_matrix<float>(8, 33, 2).named({"d_model", "d_ff"});
  const Tensor<float> gate = random_matrix<float>(8, 33, 3);
  const Tensor<float> down = random_matrix<float>(33, 8, 4).named({"d_ff", "d_model"});
  const Tensor<float> b = random_tensor<float>({33}, 5);
  const auto same = [](const Tensor<float>& a, const Tensor<float>& wanted) {
    // The same operations in the same order.
    return is_near(a, wanted) && a.shape() == wanted.shape();
  };
  EXPECT_TRUE(same(mlp(x, {.w_up = up, .w_down = down, .b_up = b, .activation = Activation::gelu}),
                   linear(gelu(linear(x, up, b)), down)));
  EXPECT_TRUE(same(mlp(x, {.w_up = up, .w_down = down, .w_gate = gate}),
                   linear(multiply(linear(x, up), silu(linear(x, gate))), down)));
}

TEST(Mlp, TakesStoredTransposesAndSlices) {
  const Tensor<double> x = random_matrix<double>(6, 4);
  const Tensor<double> up = random_matrix<double>(10, 4, 2);    // d_ff x d_model
  const Tensor<double> down = random_matrix<double>(4, 10, 3);  // d_model x d_ff
  const Tensor<double> wide_bias = random_tensor<double>({20}, 4);
  const TensorView<const double> bias = wide_bias.view().slice(0, {.step = 2});
  const Tensor<double> y = mlp(
      x.view().slice(0, {.step = 2}),
      Mlp<double>{.w_up = up.view().transpose(), .w_down = down.view().transpose(), .b_up = bias});
  const Tensor<double> whole = mlp(x, {.w_up = Tensor<double>(up.view().transpose()),
                                       .w_down = Tensor<double>(down.view().transpose()),
                                       .b_up = Tensor<double>(bias)});
  for (Index row = 0; row < 3; ++row) {
    // Ten products and four of numbers of size 1, in another order.
    EXPECT_TRUE(is_near(y.view().select(0, row), whole.view().select(0, 2 * row),
                        {.absolute = 100 * 0x1p-52}));
  }
}

TEST(Mlp, OfNothingIsEmptyAndOfNoHiddenUnitIsTheBias) {
  const Tensor<float> up({4, 3});
  const Tensor<float> down({3, 4});
  EXPECT_EQ(mlp(Tensor<float>({0, 4}), {.w_up = up, .w_down = down}).shape(), Shape({0, 4}));
  const Tensor<float> none_up({4, 0});
  const Tensor<float> none_down({0, 4});
  const Tensor<float> b({4}, 7.0F);
  EXPECT_TRUE(has_elements(
      mlp(Tensor<float>({1, 4}), {.w_up = none_up, .w_down = none_down, .b_down = b}).view(),
      {7, 7, 7, 7}));
}

TEST(Mlp, KeepsANaNInItsRow) {
  Tensor<float> x = random_matrix<float>(3, 4);
  x(1, 2) = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float> up = random_matrix<float>(4, 5, 2);
  const Tensor<float> down = random_matrix<float>(5, 4, 3);
  const Tensor<float> y = mlp(x, {.w_up = up, .w_down = down});
  for (Index i = 0; i < 4; ++i) {
    EXPECT_FALSE(std::isnan(y(0, i)));
    EXPECT_TRUE(std::isnan(y(1, i)));
    EXPECT_FALSE(std::isnan(y(2, i)));
  }
}

TEST(Mlp, SaysWhatDoesNotFit) {
  const Tensor<float> x({2, 4});
  const Tensor<float> up = Tensor<float>({4, 8}).named({"d_model", "d_ff"});
  const Tensor<float> down = Tensor<float>({8, 4}).named({"d_ff", "d_model"});
  const Tensor<float> b({3});
  const auto text = [&](const Mlp<float>& weights) {
    return thrown_by<ShapeError>([&] { mlp(x, weights); });
  };
  EXPECT_EQ(text({.w_up = up, .w_down = up}),
            "mlp: w_up is 4x8 (d_model, d_ff) and w_down is 4x8 (d_model, d_ff), but w_down must "
            "have a row for each of w_up's 8 columns\n  hint: with w_down transposed it fits");
  EXPECT_EQ(
      text({.w_up = up, .w_down = down, .w_gate = down}),
      "mlp: w_up is 4x8 (d_model, d_ff) and w_gate is 8x4 (d_ff, d_model), but both must have "
      "the same shape");
  EXPECT_EQ(
      text({.w_up = up, .w_down = down, .b_up = b}),
      "mlp: w_up is 4x8 (d_model, d_ff) and b_up is 3, but b_up must have an element for each "
      "of w_up's 8 columns");
  EXPECT_EQ(
      text({.w_up = up, .w_down = down, .b_down = b}),
      "mlp: w_down is 8x4 (d_ff, d_model) and b_down is 3, but b_down must have an element for "
      "each of w_down's 4 columns");
  EXPECT_EQ(text({.w_up = down, .w_down = up}),
            "mlp: x is 2x4 and w_up is 8x4 (d_ff, d_model), but x's 4 columns must equal w_up's 8 "
            "rows\n  hint: with w_up transposed it fits: 2x4 by 4x8 gives 2x8 (?, d_ff)");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { mlp(x, {.w_up = up, .w_down = down, .b_gate = b}); }),
            "mlp: there is a b_gate and no w_gate, but it is added to x w_gate");
}

}  // namespace
}  // namespace eckart

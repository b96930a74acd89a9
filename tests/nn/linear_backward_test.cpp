#include "eckart/nn/linear_backward.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/elementwise.h"
#include "eckart/linalg/matmul.h"

#include "tests/matchers.h"
#include "tests/nn/central_differences.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_gradient;
using testing::is_near;
using testing::random_matrix;
using testing::random_tensor;
using testing::thrown_by;

TEST(LinearBackward, IsWhatAReaderCanCheck) {
  const Tensor<double> x = Tensor<double>::matrix({{1, 2}, {3, 4}});
  const Tensor<double> w = Tensor<double>::matrix({{1, 0, 2}, {0, 1, 3}});
  const Tensor<double> d_y = Tensor<double>::matrix({{1, 0, 0}, {0, 1, 1}});
  const LinearGradients<double> gradients = linear_backward(d_y, x, w);
  EXPECT_TRUE(has_elements(gradients.x.view(), {1, 0, 2, 4}));
  EXPECT_TRUE(has_elements(gradients.w.view(), {1, 3, 3, 2, 4, 4}));
  EXPECT_TRUE(has_elements(gradients.b.view(), {1, 1, 1}));
}

TEST(LinearBackward, IsThatOfDifferences) {
  const Tensor<double> x = random_tensor<double>({2, 3, 4}, 1);
  const Tensor<double> w = random_matrix<double>(4, 5, 2);
  const Tensor<double> b = random_tensor<double>({5}, 3);
  const Tensor<double> d_y = random_tensor<double>({2, 3, 5}, 4);
  const LinearGradients<double> gradients = linear_backward(d_y, x, w);
  EXPECT_TRUE(is_gradient(
      gradients.x, [&](const Tensor<double>& at) { return linear(at, w, b); }, d_y, x));
  EXPECT_TRUE(is_gradient(
      gradients.w, [&](const Tensor<double>& at) { return linear(x, at, b); }, d_y, w));
  EXPECT_TRUE(is_gradient(
      gradients.b, [&](const Tensor<double>& at) { return linear(x, w, at); }, d_y, b));
}

TEST(LinearBackward, KeepsNamesAndTakesStridedViews) {
  const Tensor<float> x = random_tensor<float>({2, 3, 4}, 1).named({"batch", "token", "d_model"});
  const Tensor<float> stored = random_matrix<float>(5, 4, 2).named({"d_ff", "d_model"});
  const Tensor<float> d_y = random_tensor<float>({2, 3, 5}, 4).named({"batch", "token", "d_ff"});
  const LinearGradients<float> gradients = linear_backward(d_y, x, stored.view().transpose());
  EXPECT_EQ(gradients.x.shape(), x.shape());
  EXPECT_EQ(gradients.w.shape(), Shape({4, 5}, {"d_model", "d_ff"}));
  EXPECT_EQ(gradients.b.shape(), Shape({5}, {"d_ff"}));
  const auto tokens_first = [](const Tensor<float>& a) { return a.view().permute({1, 0, 2}); };
  const LinearGradients<float> turned =
      linear_backward(tokens_first(d_y), tokens_first(x), stored.view().transpose());
  // Six terms below 16 in another order.
  EXPECT_TRUE(is_near(turned.w, gradients.w, {.absolute = 6 * 6 * 16 * 0x1p-24}));
  EXPECT_TRUE(is_near(turned.x.view(), tokens_first(gradients.x), {.absolute = 5 * 16 * 0x1p-24}));
}

TEST(LinearBackward, OfNoRowsIsZero) {
  const LinearGradients<double> gradients =
      linear_backward(Tensor<double>({0, 3}), Tensor<double>({0, 2}), random_matrix<double>(2, 3));
  EXPECT_EQ(gradients.x.shape(), Shape({0, 2}));
  EXPECT_TRUE(has_elements(gradients.w.view(), {0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(has_elements(gradients.b.view(), {0, 0, 0}));
}

TEST(LinearBackward, SaysWhatDoesNotFit) {
  const Tensor<float> x({2, 4});
  const Tensor<float> w({4, 3});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              linear_backward(Tensor<float>({2, 4}), x, w);
            }),
            "linear_backward: d_y is 2x4 and w is 4x3, but d_y's last axis must be w's columns");
  EXPECT_EQ(
      thrown_by<ShapeError>([&] {
        linear_backward(Tensor<float>({5, 3}), x, w);
      }),
      "linear_backward: d_y is 5x3 and x is 2x4, but both must have the same axes but for the "
      "last");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              linear_backward(Tensor<float>({2, 3}), Tensor<float>({2, 5}), w);
            }),
            "linear_backward: x is 2x5 and w is 4x3, but x's last axis must be w's rows");
}

TEST(LoraLinear, IsTheProductByTheChangedMatrix) {
  const Tensor<double> x = random_tensor<double>({2, 3, 8}, 1);
  const Tensor<double> w = random_matrix<double>(8, 6, 2);
  const Tensor<double> a = random_matrix<double>(8, 2, 3);
  const Tensor<double> b = random_matrix<double>(2, 6, 4);
  const Tensor<double> changed = add(w, multiply(matmul(a, b), 0.5));
  // Ten products of numbers below 4 each, in another order.
  EXPECT_TRUE(is_near(lora_linear(x, w, {.lora_a = a, .lora_b = b, .scale = 0.5}),
                      linear(x, changed), {.absolute = 20 * 64 * 0x1p-52}));
}

TEST(LoraLinear, WithZerosInBIsTheFrozenLayer) {
  const Tensor<float> x = random_matrix<float>(3, 8, 1).named({"token", "d_model"});
  const Tensor<float> w = random_matrix<float>(8, 6, 2).named({"d_model", "d_ff"});
  const Tensor<float> a = random_matrix<float>(8, 2, 3);
  const Tensor<float> b({2, 6});
  const Tensor<float> y = lora_linear(x, w, {.lora_a = a, .lora_b = b});
  EXPECT_TRUE(is_near(y, linear(x, w)));
  EXPECT_EQ(y.shape(), Shape({3, 6}, {"token", "d_ff"}));
}

TEST(LoraBackward, IsThatOfDifferences) {
  const Tensor<double> x = random_tensor<double>({2, 3, 5}, 1);
  const Tensor<double> w = random_matrix<double>(5, 4, 2);
  const Tensor<double> a = random_matrix<double>(5, 2, 3);
  const Tensor<double> b = random_matrix<double>(2, 4, 4);
  const Tensor<double> d_y = random_tensor<double>({2, 3, 4}, 5);
  const double scale = 1.5;
  const LoraGradients<double> gradients =
      lora_backward(d_y, x, {.lora_a = a, .lora_b = b, .scale = scale});
  EXPECT_TRUE(is_gradient(
      gradients.lora_a,
      [&](const Tensor<double>& at) {
        return lora_linear(x, w, {.lora_a = at, .lora_b = b, .scale = scale});
      },
      d_y, a));
  EXPECT_TRUE(is_gradient(
      gradients.lora_b,
      [&](const Tensor<double>& at) {
        return lora_linear(x, w, {.lora_a = a, .lora_b = at, .scale = scale});
      },
      d_y, b));
}

TEST(LoraBackward, IsTheChainRuleThroughTheWholeGradient) {
  // With G = x^T d_y, the gradient by the matrix: scale G b^T and scale a^T G.
  const Tensor<double> x = random_matrix<double>(7, 5, 1);
  const Tensor<double> a = random_matrix<double>(5, 2, 3);
  const Tensor<double> b = random_matrix<double>(2, 4, 4);
  const Tensor<double> d_y = random_matrix<double>(7, 4, 5);
  const Tensor<double> g = linear_backward(d_y, x, Tensor<double>({5, 4})).w;
  const LoraGradients<double> gradients =
      lora_backward(d_y, x, {.lora_a = a, .lora_b = b, .scale = 2});
  const double bound = 40 * 64 * 0x1p-52;  // 28 products of three numbers below 4
  EXPECT_TRUE(is_near(gradients.lora_a, multiply(matmul(g.view(), b.view().transpose()), 2),
                      {.absolute = bound}));
  EXPECT_TRUE(is_near(gradients.lora_b, multiply(matmul(a.view().transpose(), g.view()), 2),
                      {.absolute = bound}));
}

TEST(LoraBackward, SaysWhatDoesNotFit) {
  const Tensor<float> x({2, 4});
  const Tensor<float> w({4, 3});
  const Tensor<float> a({4, 2});
  const Tensor<float> b({2, 3});
  EXPECT_EQ(thrown_by<ShapeError>([&] { lora_linear(x, w, {.lora_a = a, .lora_b = w}); }),
            "lora_linear: lora_a is 4x2 and lora_b is 4x3, but lora_a's last axis must be lora_b's "
            "rows");
  EXPECT_EQ(thrown_by<ShapeError>([&] { lora_linear(x, a, {.lora_a = a, .lora_b = b}); }),
            "lora_linear: lora_b is 2x3 and w is 4x2, but lora_b's last axis must be w's columns");
  EXPECT_EQ(thrown_by<ShapeError>([&] { lora_backward(x, x, {.lora_a = a, .lora_b = b}); }),
            "lora_backward: d_y is 2x4 and lora_b is 2x3, but d_y's last axis must be lora_b's "
            "columns");
}

}  // namespace
}  // namespace eckart

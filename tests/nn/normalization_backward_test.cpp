#include "eckart/nn/normalization_backward.h"

#include "eckart/core/errors.h"

#include <cmath>

#include "tests/matchers.h"
#include "tests/nn/central_differences.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::is_gradient;
using testing::is_near;
using testing::random_matrix;
using testing::random_tensor;
using testing::thrown_by;

TEST(LayerNormBackward, IsThatOfDifferences) {
  for (const Index d : {2, 3, 9}) {
    const Tensor<double> x = random_tensor<double>({2, 3, d}, 1);
    const Tensor<double> w = random_tensor<double>({d}, 2);
    const Tensor<double> b = random_tensor<double>({d}, 3);
    const Tensor<double> d_y = random_tensor<double>({2, 3, d}, 4);
    const double eps = 0.1;
    const LayerNormGradients<double> gradients =
        layer_norm_backward(d_y, x, {.weight = w, .bias = b, .eps = eps});
    EXPECT_TRUE(is_gradient(
        gradients.x,
        [&](const Tensor<double>& at) {
          return layer_norm(at, {.weight = w, .bias = b, .eps = eps});
        },
        d_y, x));
    EXPECT_TRUE(is_gradient(
        gradients.weight,
        [&](const Tensor<double>& at) {
          return layer_norm(x, {.weight = at, .bias = b, .eps = eps});
        },
        d_y, w));
    EXPECT_TRUE(is_gradient(
        gradients.bias,
        [&](const Tensor<double>& at) {
          return layer_norm(x, {.weight = w, .bias = at, .eps = eps});
        },
        d_y, b));
  }
}

TEST(LayerNormBackward, IsAcrossShiftsAndScalesOfX) {
  // Without eps, neither a shift nor a factor of x changes y.
  const Tensor<double> x = random_matrix<double>(3, 16, 1);
  const Tensor<double> d_y = random_matrix<double>(3, 16, 2);
  const Tensor<double> gradient = layer_norm_backward(d_y, x, {.eps = 0}).x;
  for (Index row = 0; row < 3; ++row) {
    double sum = 0;
    double along = 0;
    for (Index i = 0; i < 16; ++i) {
      sum += gradient(row, i);
      along += gradient(row, i) * x(row, i);
    }
    // 16 terms below 10 that cancel.
    EXPECT_NEAR(sum, 0, 16 * 10 * 8 * 0x1p-52);
    EXPECT_NEAR(along, 0, 16 * 40 * 8 * 0x1p-52);
  }
}

TEST(RmsNormBackward, IsThatOfDifferences) {
  const Tensor<double> x = random_tensor<double>({2, 3, 7}, 1);
  const Tensor<double> w = random_tensor<double>({7}, 2);
  const Tensor<double> d_y = random_tensor<double>({2, 3, 7}, 4);
  for (const bool adds_one : {false, true}) {
    const double eps = 0.01;
    const RmsNormGradients<double> gradients =
        rms_norm_backward(d_y, x, {.weight = w, .eps = eps, .adds_one = adds_one});
    EXPECT_TRUE(is_gradient(
        gradients.x,
        [&](const Tensor<double>& at) {
          return rms_norm(at, {.weight = w, .eps = eps, .adds_one = adds_one});
        },
        d_y, x));
    EXPECT_TRUE(is_gradient(
        gradients.weight,
        [&](const Tensor<double>& at) {
          return rms_norm(x, {.weight = at, .eps = eps, .adds_one = adds_one});
        },
        d_y, w));
  }
}

TEST(NormBackward, WithoutAWeightIsThatOfOnes) {
  const Tensor<double> x = random_matrix<double>(4, 6, 1);
  const Tensor<double> d_y = random_matrix<double>(4, 6, 2);
  const Tensor<double> ones({6}, 1.0);
  const Tensor<double> zeros({6});
  EXPECT_TRUE(is_near(rms_norm_backward(d_y, x).x, rms_norm_backward(d_y, x, {.weight = ones}).x));
  EXPECT_TRUE(is_near(rms_norm_backward(d_y, x).weight,
                      rms_norm_backward(d_y, x, {.weight = ones}).weight));
  EXPECT_TRUE(is_near(layer_norm_backward(d_y, x).x,
                      layer_norm_backward(d_y, x, {.weight = ones, .bias = zeros}).x));
}

TEST(NormBackward, InFloatIsThatInDoubleRounded) {
  const Tensor<float> x = random_matrix<float>(3000, 24, 1);
  const Tensor<float> d_y = random_matrix<float>(3000, 24, 2);
  Tensor<double> wide_x(x.shape());
  Tensor<double> wide_d(x.shape());
  for (Index i = 0; i < x.count(); ++i) {
    wide_x.data()[i] = static_cast<double>(x.data()[i]);
    wide_d.data()[i] = static_cast<double>(d_y.data()[i]);
  }
  const LayerNormGradients<float> narrow = layer_norm_backward(d_y, x);
  const LayerNormGradients<double> wide = layer_norm_backward(wide_d, wide_x);
  EXPECT_TRUE(is_near(narrow.x, wide.x, {.absolute = 1e-13, .relative = 0x1p-24}));
  EXPECT_TRUE(is_near(narrow.weight, wide.weight, {.absolute = 1e-10, .relative = 0x1p-24}));
  EXPECT_TRUE(is_near(narrow.bias, wide.bias, {.absolute = 1e-10, .relative = 0x1p-24}));
}

TEST(NormBackward, SurvivesHugeAndTinyVectors) {
  // The gradient of a vector 2^k times as long is 2^-k times as large.
  const Tensor<double> x = random_matrix<double>(1, 9, 1);
  const Tensor<double> d_y = random_matrix<double>(1, 9, 2);
  const Tensor<double> gradient = rms_norm_backward(d_y, x, {.eps = 0}).x;
  for (const int exponent : {-800, 800}) {
    Tensor<double> scaled = x;
    Tensor<double> wanted = gradient;
    for (Index i = 0; i < 9; ++i) {
      scaled(0, i) = std::ldexp(x(0, i), exponent);
      wanted(0, i) = std::ldexp(gradient(0, i), -exponent);
    }
    EXPECT_TRUE(is_near(rms_norm_backward(d_y, scaled, {.eps = 0}).x, wanted,
                        {.absolute = std::ldexp(64 * 0x1p-52, -exponent)}))
        << exponent;
  }
}

TEST(NormBackward, TakesStridedViewsNamesAndNothing) {
  const Tensor<double> base = random_tensor<double>({4, 3, 5}, 1).named({"a", "b", "c"});
  const TensorView<const double> x = base.view().permute({2, 0, 1});
  const Tensor<double> d_y = random_tensor<double>({5, 4, 3}, 2);
  const LayerNormGradients<double> turned = layer_norm_backward(d_y, x);
  EXPECT_TRUE(is_near(turned.x, layer_norm_backward(d_y, Tensor<double>(x)).x));
  EXPECT_EQ(turned.x.shape(), x.shape());
  EXPECT_EQ(turned.weight.shape(), Shape({3}, {"b"}));
  const RmsNormGradients<double> none =
      rms_norm_backward(Tensor<double>({0, 3}), Tensor<double>({0, 3}));
  EXPECT_TRUE(testing::has_elements(none.weight.view(), {0, 0, 0}));
  EXPECT_EQ(thrown_by<ShapeError>([&] { layer_norm_backward(base, x); }),
            "layer_norm_backward: d_y is 4x3x5 (a, b, c) and x is 5x4x3 (c, a, b), but both must "
            "have the same sizes");
}

}  // namespace
}  // namespace eckart

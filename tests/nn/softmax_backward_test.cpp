#include "eckart/nn/softmax_backward.h"

#include "eckart/core/errors.h"

#include <cmath>
#include <limits>

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
using testing::random_tensor;
using testing::thrown_by;

// The softmax along the last axis, as its formula has it.
Tensor<double> softmax_of(const Tensor<double>& x, double temperature) {
  Tensor<double> result(x.shape());
  const Index n = x.size(-1);
  for (Index row = 0; row * n < x.count(); ++row) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) sum += std::exp(x.data()[row * n + i] / temperature);
    for (Index i = 0; i < n; ++i) {
      result.data()[row * n + i] = std::exp(x.data()[row * n + i] / temperature) / sum;
    }
  }
  return result;
}

TEST(SoftmaxBackward, IsWhatAReaderCanCheck) {
  // Weights 1/4 and 3/4: 1/4 x 3/4 of the first's change goes over.
  const Tensor<double> w = Tensor<double>::vector({0.25, 0.75});
  EXPECT_TRUE(
      has_elements(softmax_backward(Tensor<double>::vector({1, 0}), w).view(), {0.1875, -0.1875}));
  EXPECT_TRUE(
      has_elements(softmax_backward(Tensor<double>::vector({1, 0}), w, {.temperature = 2}).view(),
                   {0.09375, -0.09375}));
}

TEST(SoftmaxBackward, IsThatOfDifferences) {
  const Tensor<double> x = random_tensor<double>({2, 3, 5}, 1);
  const Tensor<double> d_w = random_tensor<double>({2, 3, 5}, 2);
  for (const double temperature : {0.5, 1.0, 3.0}) {
    EXPECT_TRUE(is_gradient(
        softmax_backward(d_w, softmax_of(x, temperature), {.temperature = temperature}),
        [&](const Tensor<double>& at) { return softmax_of(at, temperature); }, d_w, x));
  }
}

TEST(SoftmaxBackward, SumsToZeroAndIsZeroWhereTheWeightIs) {
  Tensor<double> x = random_tensor<double>({4, 6}, 1);
  x(2, 3) = -std::numeric_limits<double>::infinity();
  const Tensor<double> gradient =
      softmax_backward(random_tensor<double>({4, 6}, 2), softmax_of(x, 1));
  EXPECT_EQ(gradient(2, 3), 0);
  for (Index row = 0; row < 4; ++row) {
    double sum = 0;
    for (Index i = 0; i < 6; ++i) sum += gradient(row, i);
    EXPECT_NEAR(sum, 0,
                6 * 4 * 0x1p-52);  // six terms below 4, and weights that sum to 1 to as much
  }
}

TEST(SoftmaxBackward, AlongAnyAxisAndOfStridedViewsIsTheSame) {
  const Tensor<double> w = softmax_of(random_tensor<double>({2, 3, 5}, 1), 1);
  const Tensor<double> d_w = random_tensor<double>({2, 3, 5}, 2);
  const Tensor<double> last = softmax_backward(d_w, w);
  const auto turned = [](const Tensor<double>& a) { return a.view().permute({2, 0, 1}); };
  const Tensor<double> first = softmax_backward(turned(d_w), turned(w), {.axis = 0});
  EXPECT_TRUE(is_near(first.view(), turned(last)));
  const Tensor<double> named = w.named({"batch", "query", "key"});
  const Tensor<double> by_name = softmax_backward(d_w, named, {.axis = "key"});
  EXPECT_TRUE(is_near(by_name, last));
  EXPECT_EQ(by_name.shape(), named.shape());
}

TEST(SoftmaxBackward, OfExtremeTemperaturesIsZero) {
  const Tensor<float> w = Tensor<float>::vector({0, 1});
  const Tensor<float> d_w = Tensor<float>::vector({3, 4});
  EXPECT_TRUE(has_elements(softmax_backward(d_w, w, {.temperature = 0}).view(), {0, 0}));
  EXPECT_TRUE(has_elements(
      softmax_backward(d_w, w, {.temperature = std::numeric_limits<double>::infinity()}).view(),
      {0, 0}));
}

TEST(SoftmaxBackward, SaysWhatDoesNotFit) {
  const Tensor<float> w({2, 3});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              softmax_backward(Tensor<float>({3, 2}), w);
            }),
            "softmax_backward: d_w is 3x2 and w is 2x3, but both must have the same sizes");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { softmax_backward(w, w, {.temperature = -1}); }),
            "softmax_backward: temperature is -1, but it must be at least 0");
  EXPECT_EQ(softmax_backward(Tensor<float>({0, 3}), Tensor<float>({0, 3})).shape(), Shape({0, 3}));
}

}  // namespace
}  // namespace eckart

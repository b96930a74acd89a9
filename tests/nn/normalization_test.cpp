#include "eckart/nn/normalization.h"

#include "eckart/core/errors.h"

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

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double eps_double = std::numeric_limits<double>::epsilon();
constexpr double eps_float = 0x1p-23;

// The formula in long double, one vector after the other.
template <class T>
Tensor<double> reference(TensorView<const T> x, const TensorView<const T>* weight,
                         const TensorView<const T>* bias, bool is_layer, double eps) {
  const auto wide = [](T element) { return static_cast<long double>(element); };
  Tensor<double> result(x.shape());
  const Tensor<T> rows(x);
  const Index n = x.size(-1);
  for (Index row = 0; row * n < rows.count(); ++row) {
    const T* const from = rows.data() + row * n;
    long double mean = 0;
    long double squares = 0;
    for (Index i = 0; is_layer && i < n; ++i) mean += wide(from[i]);
    mean /= static_cast<long double>(n);
    for (Index i = 0; i < n; ++i) squares += (wide(from[i]) - mean) * (wide(from[i]) - mean);
    const long double root =
        std::sqrt(squares / static_cast<long double>(n) + static_cast<long double>(eps));
    for (Index i = 0; i < n; ++i) {
      long double y = (wide(from[i]) - mean) / root;
      if (weight != nullptr) y *= wide((*weight)(i));
      if (bias != nullptr) y += wide((*bias)(i));
      result.data()[row * n + i] = static_cast<double>(y);
    }
  }
  return result;
}

TEST(LayerNorm, GivesTheWorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("layer_norm")) {
    const Tensor<double> x = testing::tensor_of(example.inputs.at("x"));
    EXPECT_TRUE(is_near(layer_norm(x, {.eps = example.inputs.at("eps")}),
                        testing::tensor_of(example.expect), {.absolute = example.tolerance}));
  }
}

TEST(RmsNorm, GivesTheWorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("rms_norm")) {
    const Tensor<double> x = testing::tensor_of(example.inputs.at("x"));
    EXPECT_TRUE(is_near(rms_norm(x, {.eps = example.inputs.at("eps")}),
                        testing::tensor_of(example.expect), {.absolute = example.tolerance}));
  }
}

TEST(LayerNorm, BringsEveryVectorToMeanZeroAndVarianceOne) {
  const Tensor<double> x = random_tensor<double>({3, 5, 64});
  const Tensor<double> y = layer_norm(x, {.eps = 0});
  for (Index row = 0; row < 15; ++row) {
    double sum = 0;
    double squares = 0;
    for (Index i = 0; i < 64; ++i) {
      const double element = y.data()[row * 64 + i];
      sum += element;
      squares += element * element;
    }
    // 64 elements of magnitude 1, each to 4 eps.
    EXPECT_NEAR(sum, 0, 64 * 4 * eps_double);
    EXPECT_NEAR(squares / 64, 1, 8 * eps_double);
  }
}

TEST(LayerNorm, IsTheFormulaForEveryLength) {
  for (const Index d : {1, 2, 3, 7, 8, 15, 64, 257, 1031}) {
    const Tensor<double> x = random_matrix<double>(5, d, 3);
    const Tensor<double> w = random_tensor<double>({d}, 4);
    const Tensor<double> b = random_tensor<double>({d}, 5);
    const TensorView<const double> weight = w;
    const TensorView<const double> bias = b;
    // The mean is off by less than 2^-53 a term of at most 4, which moves y by as much.
    const double of_mean = 4 * static_cast<double>(d) * 0x1p-53;
    EXPECT_TRUE(is_near(layer_norm(x, {.weight = w, .bias = b}),
                        reference<double>(x, &weight, &bias, true, 1e-5),
                        {.absolute = 4 * (of_mean + 8 * eps_double)}))
        << d;
    EXPECT_TRUE(is_near(rms_norm(x, {.weight = w}),
                        reference<double>(x, &weight, nullptr, false, 1e-6),
                        {.relative = (8 + 0.01 * static_cast<double>(d)) * eps_double}))
        << d;
  }
}

TEST(LayerNorm, OfFloatsIsRoundedOnce) {
  const Tensor<float> x = random_matrix<float>(4, 300, 3);
  const Tensor<float> w = random_tensor<float>({300}, 4);
  const TensorView<const float> weight = w;
  // Half a unit in the last place, and what the sums in double have lost.
  EXPECT_TRUE(is_near(layer_norm(x, {.weight = w}),
                      reference<float>(x, &weight, nullptr, true, 1e-5),
                      {.absolute = 1e-13, .relative = 0.5 * eps_float}));
  EXPECT_TRUE(is_near(rms_norm(x, {.weight = w, .eps = 1e-5}),
                      reference<float>(x, &weight, nullptr, false, 1e-5),
                      {.relative = 0.5001 * eps_float}));
}

TEST(RmsNorm, AddsOneToTheWeightWhenAsked) {
  const Tensor<double> x = Tensor<double>::matrix({{3, 4}});
  const Tensor<double> w = Tensor<double>::vector({0, 1});
  const double root = std::sqrt(12.5);
  EXPECT_TRUE(is_near(rms_norm(x, {.weight = w, .eps = 0, .adds_one = true}),
                      Tensor<double>::matrix({{3 / root, 8 / root}}),
                      {.relative = 4 * eps_double}));
  EXPECT_TRUE(is_near(rms_norm(x, {.weight = w, .eps = 0}), Tensor<double>::matrix({{0, 4 / root}}),
                      {.relative = 4 * eps_double}));
  // A weight of 2^-12: 1 + weight in double, where a float would round it.
  const Tensor<float> tiny({2}, 0x1p-30F);
  const Tensor<float> y = rms_norm(Tensor<float>({2}, 3.0F), {.weight = tiny, .adds_one = true});
  EXPECT_NEAR(static_cast<double>(y(0)), 1, eps_float);
}

TEST(Norms, AreTheSameForEveryScaleOfX) {
  // Powers of two scale without rounding, and squares of these are beyond double.
  const Tensor<double> x = random_matrix<double>(2, 37);
  const Tensor<double> layer = layer_norm(x, {.eps = 0});
  const Tensor<double> rms = rms_norm(x, {.eps = 0});
  for (const int exponent : {-1000, -600, -500, -300, 300, 500, 600, 1020}) {
    Tensor<double> scaled = x;
    for (Index i = 0; i < x.count(); ++i) scaled.data()[i] = std::ldexp(x.data()[i], exponent);
    EXPECT_TRUE(is_near(layer_norm(scaled, {.eps = 0}), layer, {.absolute = 8 * eps_double}))
        << exponent;
    EXPECT_TRUE(is_near(rms_norm(scaled, {.eps = 0}), rms, {.relative = 4 * eps_double}))
        << exponent;
  }
  // Subnormal floats, and floats at the top of their range.
  for (const float scale : {0x1p-140F, 0x1p126F}) {
    const Tensor<float> edge = Tensor<float>::vector({scale, -scale, scale, scale});
    EXPECT_TRUE(has_elements(rms_norm(edge, {.eps = 0}).view(), {1, -1, 1, 1}));
  }
}

TEST(Norms, OfTinyAndHugeVectorsKeepEps) {
  // Next to eps = 1e-5 the squares vanish: x / sqrt(eps).
  const Tensor<double> tiny = Tensor<double>::vector({1e-200, -1e-200});
  EXPECT_TRUE(is_near(rms_norm(tiny, {.eps = 1e-4}), Tensor<double>::vector({1e-198, -1e-198}),
                      {.relative = 4 * eps_double}));
  // The same where eps is out of range too: root of 1e-300 is 1e-150.
  EXPECT_TRUE(is_near(rms_norm(tiny, {.eps = 1e-300}), Tensor<double>::vector({1e-50, -1e-50}),
                      {.relative = 8 * eps_double}));
  // Equal elements: 0 over the root of eps, whatever their size.
  EXPECT_TRUE(has_elements(layer_norm(Tensor<double>({3}, 1e300)).view(), {0, 0, 0}));
  EXPECT_TRUE(has_elements(rms_norm(Tensor<double>({3}), {.eps = 1e-6}).view(), {0, 0, 0}));
}

TEST(Norms, KeepANaNInItsVector) {
  Tensor<float> x = random_matrix<float>(4, 19);
  const Tensor<float> layer = layer_norm(x);
  const Tensor<float> rms = rms_norm(x);
  x(1, 3) = std::numeric_limits<float>::quiet_NaN();
  x(2, 18) = std::numeric_limits<float>::infinity();
  const Tensor<float> layer_now = layer_norm(x);
  const Tensor<float> rms_now = rms_norm(x);
  for (const Index row : {Index{0}, Index{3}}) {
    EXPECT_TRUE(is_near(layer_now.view().select(0, row), layer.view().select(0, row)));
    EXPECT_TRUE(is_near(rms_now.view().select(0, row), rms.view().select(0, row)));
  }
  for (Index i = 0; i < 19; ++i) {
    EXPECT_TRUE(std::isnan(layer_now(1, i)));
    EXPECT_TRUE(std::isnan(rms_now(1, i)));
    EXPECT_TRUE(std::isnan(layer_now(2, i)));
    EXPECT_EQ(std::isnan(rms_now(2, i)), i == 18);
  }
}

TEST(Norms, TakeStridedViews) {
  const Tensor<double> base = random_tensor<double>({4, 6, 5});
  const TensorView<const double> turned = base.view().permute({2, 0, 1});
  const TensorView<const double> sliced = base.view().slice(2, {.begin = 1, .step = 2});
  const Tensor<double> wide = random_tensor<double>({12}, 9);
  const TensorView<const double> weight = wide.view().slice(0, {.step = 2});
  for (const TensorView<const double>& x : {turned, sliced}) {
    EXPECT_TRUE(is_near(layer_norm(x), layer_norm(Tensor<double>(x))));
    EXPECT_TRUE(is_near(rms_norm(x), rms_norm(Tensor<double>(x))));
  }
  EXPECT_TRUE(is_near(rms_norm(turned, {.weight = weight}),
                      rms_norm(Tensor<double>(turned), {.weight = Tensor<double>(weight).view()})));
}

TEST(Norms, OfNothingAndOfOneElement) {
  EXPECT_EQ(layer_norm(Tensor<float>({0, 4})).shape(), Shape({0, 4}));
  EXPECT_EQ(rms_norm(Tensor<float>({4, 0})).shape(), Shape({4, 0}));
  EXPECT_TRUE(has_elements(layer_norm(Tensor<float>::vector({7})).view(), {0}));
  EXPECT_TRUE(has_elements(rms_norm(Tensor<float>::vector({-7}), {.eps = 0}).view(), {-1}));
  EXPECT_TRUE(std::isnan(layer_norm(Tensor<float>::vector({7}), {.eps = 0})(0)));
}

TEST(Norms, KeepNames) {
  const Tensor<float> x = random_matrix<float>(2, 3).named({"token", "d_model"});
  EXPECT_EQ(layer_norm(x).shape(), x.shape());
  EXPECT_EQ(rms_norm(x).shape(), x.shape());
}

TEST(Norms, SayWhatDoesNotFit) {
  const Tensor<float> x = random_matrix<float>(2, 3).named({"token", "d_model"});
  const Tensor<float> two({2});
  const Tensor<float> other = Tensor<float>({3}).named({"d_ff"});
  EXPECT_EQ(
      thrown_by<ShapeError>([&] { layer_norm(x, {.weight = two}); }),
      "layer_norm: x is 2x3 (token, d_model) and weight is 2, but weight must be a vector of 3 "
      "elements, one along x's last axis");
  EXPECT_EQ(thrown_by<ShapeError>([&] { layer_norm(x, {.bias = x}); }),
            "layer_norm: x is 2x3 (token, d_model) and bias is 2x3 (token, d_model), but bias must "
            "be a vector of 3 elements, one along x's last axis");
  EXPECT_EQ(thrown_by<ShapeError>([&] { rms_norm(x, {.weight = other}); }),
            "rms_norm: x is 2x3 (token, d_model) and weight is 3 (d_ff), but weight's axis must be "
            "d_model, x's last");
  EXPECT_EQ(thrown_by<ShapeError>([&] { rms_norm(Tensor<float>(Shape{})); }),
            "rms_norm: x is a scalar, but it must have an axis to normalise along");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { layer_norm(x, {.eps = -1}); }),
            "layer_norm: eps is -1, but it must be at least 0");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { rms_norm(x, {.eps = nan}); }),
            "rms_norm: eps is nan, but it must be at least 0");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { rms_norm(x, {.adds_one = true}); }),
            "rms_norm: adds_one is set and there is no weight, but 1 is added to one");
  EXPECT_EQ(rms_norm(x, {.eps = infinity})(0, 0), 0);
}

}  // namespace
}  // namespace eckart

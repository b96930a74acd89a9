#include "eckart/nn/softmax.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
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

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

TEST(Softmax, GivesTheWorkedExamples) {
  for (const auto& example : worked_examples("softmax")) {
    SoftmaxOptions<double> options;
    options.temperature = example.inputs.value("temperature", 1.0);
    EXPECT_TRUE(is_near(softmax(tensor_of(example.inputs["x"]), options), tensor_of(example.expect),
                        {.absolute = example.tolerance}))
        << example.id;
  }
}

// exp of every score in long double, over their sum; each weight to the header's bound.
template <class T>
void expect_formula(const Tensor<T>& x) {
  const Tensor<T> weights = softmax(x);
  const Tensor<T> logs = log_softmax(x);
  const double eps = static_cast<double>(std::numeric_limits<T>::epsilon());
  long double most = -infinity<long double>, sum = 0;
  for (Index i = 0; i < x.count(); ++i) {
    most = std::max(most, static_cast<long double>(x.data()[i]));
  }
  for (Index i = 0; i < x.count(); ++i) {
    sum += std::exp(static_cast<long double>(x.data()[i]) - most);
  }
  for (Index i = 0; i < x.count(); ++i) {
    const long double distance = most - static_cast<long double>(x.data()[i]);
    const auto log = static_cast<double>(-distance - std::log(sum));
    const double expected = std::exp(log);
    EXPECT_NEAR(static_cast<double>(weights.data()[i]), expected,
                (24 + static_cast<double>(distance)) * eps * expected +
                    static_cast<double>(std::numeric_limits<T>::min()));
    EXPECT_NEAR(static_cast<double>(logs.data()[i]), log,
                (24 + 2 * static_cast<double>(distance)) * eps);
  }
}

TEST(Softmax, IsTheFormulaForEveryLength) {
  for (const Index n : {1, 2, 3, 4, 7, 8, 9, 31, 33, 257, 5000}) {
    expect_formula(random_tensor<float>({n}, static_cast<std::uint64_t>(n)));
    expect_formula(random_tensor<double>({n}, static_cast<std::uint64_t>(n)));
  }
}

TEST(Softmax, OfWideScoresIsTheFormula) {
  Tensor<float> x = random_tensor<float>({300}, 1);
  for (Index i = 0; i < 300; ++i) x.data()[i] *= 40;
  expect_formula(x);
  const Tensor<float> enormous = Tensor<float>::vector({3e38F, -3e38F, 3e38F});
  EXPECT_TRUE(has_elements(softmax(enormous).view(), {0.5F, 0, 0.5F}));
  EXPECT_TRUE(has_elements(softmax(enormous, {.temperature = 1e-30}).view(), {0.5F, 0, 0.5F}));
}

TEST(Softmax, AtTemperatureZeroTakesTheFirstLargest) {
  const auto x = Tensor<double>::matrix({{1, 3, 3}, {2, 1, 0}});
  EXPECT_TRUE(has_elements(softmax(x, {.temperature = 0}).view(), {0, 1, 0, 1, 0, 0}));
  const Tensor<double> logs = log_softmax(x, {.temperature = 0});
  EXPECT_TRUE(has_elements(logs.view(), {-infinity<double>, 0, -infinity<double>, 0,
                                         -infinity<double>, -infinity<double>}));
}

TEST(Softmax, AtInfiniteTemperatureIsUniformOverWhatIsShown) {
  const auto x = Tensor<float>::vector({1, 200, -3, -infinity<float>});
  EXPECT_TRUE(has_elements(
      softmax(Tensor<float>::vector({1, 2, 3, 4}), {.temperature = infinity<double>}).view(),
      {0.25F, 0.25F, 0.25F, 0.25F}));
  Tensor<bool> shown({4}, true);
  shown(1) = false;
  EXPECT_TRUE(
      has_elements(softmax(x, {.temperature = infinity<double>, .mask = shown.view()}).view(),
                   {0.5F, 0, 0.5F, 0}));
}

TEST(Softmax, HidesWhatMaskBiasOrScoreHide) {
  const auto x = Tensor<double>::matrix({{nan<double>, 1, 1}, {1, -infinity<double>, 1}});
  Tensor<bool> mask({2, 3}, true);
  mask(0, 0) = false;
  EXPECT_TRUE(has_elements(softmax(x, {.mask = mask.view()}).view(), {0, 0.5, 0.5, 0.5, 0, 0.5}));
  const auto bias = Tensor<double>::vector({-infinity<double>, 0, std::log(3)});
  EXPECT_TRUE(is_near(softmax(x, {.bias = bias.view()}),
                      Tensor<double>::matrix({{0, 0.25, 0.75}, {0, 0, 1}}), {.absolute = 1e-15}));
}

TEST(Softmax, OfAHiddenRowIsZeros) {
  const Tensor<float> x({2, 5}, 1.0F);
  Tensor<bool> mask({2, 1}, true);
  mask(1, 0) = false;
  const Tensor<float> weights = softmax(x, {.mask = mask.view()});
  const Tensor<float> logs = log_softmax(x, {.mask = mask.view()});
  for (Index i = 0; i < 5; ++i) {
    EXPECT_NEAR(weights(0, i), 0.2, 1e-7);
    EXPECT_EQ(weights(1, i), 0);
    EXPECT_EQ(logs(1, i), -infinity<float>);
  }
}

TEST(Softmax, KeepsANanInItsRow) {
  for (const double temperature : {0.0, 1.0, 2.0, infinity<double>}) {
    auto x = Tensor<float>::matrix({{1, nan<float>, -infinity<float>}, {1, 2, 3}});
    const Tensor<float> weights = softmax(x, {.temperature = temperature});
    EXPECT_TRUE(std::isnan(weights(0, 0)));
    EXPECT_TRUE(std::isnan(weights(0, 1)));
    EXPECT_EQ(weights(0, 2), 0);
    EXPECT_FALSE(std::isnan(weights(1, 0)));
    x(0, 1) = infinity<float>;
    const Tensor<float> beyond = softmax(x, {.temperature = temperature});
    EXPECT_EQ(std::isnan(beyond(0, 0)), temperature != 0);
    EXPECT_EQ(beyond(0, 2), 0);
  }
}

TEST(Softmax, GoesAlongAnyAxisOfAnyView) {
  const Tensor<double> x = random_tensor<double>({3, 4, 5}, 9).named({"a", "b", "c"});
  const Tensor<double> along = softmax(x, {.axis = "b"});
  EXPECT_EQ(along.shape(), x.shape());
  for (Index i = 0; i < 3; ++i) {
    for (Index k = 0; k < 5; ++k) {
      const Tensor<double> column(x.view().select(0, i).select(1, k));
      EXPECT_TRUE(is_near(Tensor<double>(along.view().select(0, i).select(1, k)), softmax(column)));
    }
  }
  const TensorView<const double> turned = TensorView<const double>(x).permute({2, 0, 1});
  EXPECT_TRUE(is_near(softmax(turned, {}), softmax(Tensor<double>(turned))));
}

TEST(Softmax, OfNothingIsNothing) {
  EXPECT_EQ(softmax(Tensor<float>({0, 3})).shape(), Shape({0, 3}));
  EXPECT_EQ(softmax(Tensor<float>({3, 0})).shape(), Shape({3, 0}));
  EXPECT_TRUE(has_elements(softmax(Tensor<float>({1, 1}, 7.0F)).view(), {1}));
}

TEST(Softmax, SaysWhatItCanNotTake) {
  const Tensor<float> x({2, 3});
  EXPECT_EQ(thrown_by<ArgumentError>([&] { softmax(x, {.temperature = -1}); }),
            "softmax: the temperature is -1, but it must be at least 0\n"
            "  hint: 0 gives all weight to the largest score, infinity the same to each");
  const Tensor<float> bias({4, 2, 3});
  EXPECT_EQ(thrown_by<ShapeError>([&] { log_softmax(x, {.bias = bias.view()}); }),
            "log_softmax: x is 2x3 and bias is 4x2x3, but bias must broadcast to x, and not x to "
            "it");
  const Tensor<bool> mask({2});
  EXPECT_EQ(thrown_by<ShapeError>([&] { softmax(x, {.mask = mask.view()}); }),
            "softmax: x is 2x3 and mask is 2, but 3 meets 2 in the last axis and neither is 1\n"
            "  hint: with mask as a column, 2x1, it fits: the result is 2x3");
}

}  // namespace
}  // namespace eckart

#include "eckart/core/errors.h"
#include "eckart/nn/loss.h"

#include <cmath>
#include <limits>
#include <vector>

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

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(CrossEntropy, IsWhatAReaderCanCheck) {
  // Logits log(1), log(2), log(5): probabilities 1/8, 2/8, 5/8.
  const Tensor<double> logits = Tensor<double>::matrix({{0, std::log(2), std::log(5)}, {7, 7, 7}});
  const CrossEntropyOptions none{.reduction = Reduction::none};
  EXPECT_TRUE(is_near(cross_entropy(logits, {2, 0}, none),
                      Tensor<double>::vector({std::log(1.6), std::log(3)}), {.absolute = 1e-15}));
  EXPECT_NEAR(*cross_entropy(logits, {2, 0}).data(), (std::log(1.6) + std::log(3)) / 2, 1e-15);
  EXPECT_NEAR(*cross_entropy(logits, {2, 0}, {.reduction = Reduction::sum}).data(),
              std::log(1.6) + std::log(3), 2e-15);
  EXPECT_EQ(cross_entropy(logits, {2, 0}).rank(), 0);
}

TEST(CrossEntropy, LeavesOutIgnoredTargets) {
  const Tensor<double> logits = random_matrix<double>(4, 6);
  const Tensor<double> all = cross_entropy(logits, {1, 2, 3, 4}, {.reduction = Reduction::none});
  const Tensor<double> some =
      cross_entropy(logits, {1, -100, 3, -100}, {.reduction = Reduction::none});
  EXPECT_TRUE(has_elements(some.view(), {all(0), 0, all(2), 0}));
  EXPECT_NEAR(*cross_entropy(logits, {1, -100, 3, -100}).data(), (all(0) + all(2)) / 2, 1e-15);
  // A class can be the one that is ignored, as a padding token is.
  EXPECT_NEAR(*cross_entropy(logits, {0, 2, 3, 0}, {.ignore_index = 0}).data(),
              (all(1) + all(2)) / 2, 1e-15);
  EXPECT_TRUE(std::isnan(*cross_entropy(logits, {-100, -100, -100, -100}).data()));
  EXPECT_EQ(*cross_entropy(logits, {-100, -100, -100, -100}, {.reduction = Reduction::sum}).data(),
            0);
}

TEST(CrossEntropy, SmoothingMixesInTheMeanOverAllClasses) {
  const Tensor<double> logits = random_matrix<double>(1, 5);
  const CrossEntropyOptions none{.reduction = Reduction::none};
  double mean = 0;
  for (Index target = 0; target < 5; ++target) {
    mean += cross_entropy(logits, {target}, none)(0) / 5;
  }
  const double own = cross_entropy(logits, {3}, none)(0);
  const double smoothed = *cross_entropy(logits, {3}, {.label_smoothing = 0.1}).data();
  EXPECT_NEAR(smoothed, 0.9 * own + 0.1 * mean, 4e-15);
  EXPECT_NEAR(*cross_entropy(logits, {3}, {.label_smoothing = 1}).data(), mean, 4e-15);
}

TEST(CrossEntropy, SurvivesLogitsOfEverySize) {
  const CrossEntropyOptions none{.reduction = Reduction::none};
  const Tensor<double> logits =
      Tensor<double>::matrix({{1000, 1000, -1000}, {-1e308, -1e308, -1e308}, {1e-300, 0, 0}});
  EXPECT_TRUE(is_near(cross_entropy(logits, {0, 1, 2}, none),
                      Tensor<double>::vector({std::log(2), std::log(3), std::log(3)}),
                      {.absolute = 1e-15}));
  EXPECT_EQ(cross_entropy(logits, {2, 0, 0}, none)(0), 2000 + std::log(2));
  // A hidden class: no loss beside it, an infinite one of it.
  const Tensor<double> hidden = Tensor<double>::matrix({{0, -infinity, 0}});
  EXPECT_NEAR(*cross_entropy(hidden, {0}).data(), std::log(2), 1e-15);
  EXPECT_EQ(*cross_entropy(hidden, {1}).data(), infinity);
}

TEST(CrossEntropy, KeepsANaNInItsRow) {
  Tensor<float> logits = random_matrix<float>(4, 9);
  const CrossEntropyOptions none{.reduction = Reduction::none};
  const Tensor<float> before = cross_entropy(logits, {1, 2, 3, 4}, none);
  const Tensor<float> gradient = cross_entropy_backward(logits, {1, 2, 3, 4}, none);
  logits(1, 8) = std::numeric_limits<float>::quiet_NaN();
  logits(2, 0) = std::numeric_limits<float>::infinity();
  const Tensor<float> after = cross_entropy(logits, {1, 2, 3, 4}, none);
  const Tensor<float> gradient_after = cross_entropy_backward(logits, {1, 2, 3, 4}, none);
  EXPECT_EQ(after(0), before(0));
  EXPECT_TRUE(std::isnan(after(1)));
  EXPECT_TRUE(std::isnan(after(2)));
  EXPECT_EQ(after(3), before(3));
  EXPECT_TRUE(is_near(gradient_after.view().select(0, 3), gradient.view().select(0, 3)));
  EXPECT_TRUE(std::isnan(gradient_after(1, 0)));
}

TEST(CrossEntropy, OfALargeVocabularyIsTheFormula) {
  const Tensor<float> logits = random_matrix<float>(7, 50'257, 3);
  const std::vector<Index> targets = {0, 50'256, 3, 3, 1000, 49'999, 7};
  const Tensor<float> losses = cross_entropy(logits, targets, {.reduction = Reduction::none});
  for (Index row = 0; row < 7; ++row) {
    long double sum = 0;
    for (Index i = 0; i < 50'257; ++i) sum += std::exp(static_cast<long double>(logits(row, i)));
    const double wanted =
        static_cast<double>(std::log(sum) - static_cast<long double>(logits(
                                                row, targets[static_cast<std::size_t>(row)])));
    // Half a unit of float, and in double some 6300 additions at most.
    EXPECT_NEAR(static_cast<double>(losses(row)), wanted, wanted * 0x1p-24 + 6300 * 0x1p-53);
  }
}

TEST(CrossEntropy, OfSeveralAxesAndStridedViewsIsTheSame) {
  const Tensor<double> base = random_tensor<double>({2, 5, 3}).named({"batch", "vocab", "token"});
  const TensorView<const double> logits = base.view().permute({0, 2, 1});
  const std::vector<Index> targets = {0, 1, 2, 3, 4, 0};
  const Tensor<double> losses = cross_entropy(logits, targets, {.reduction = Reduction::none});
  EXPECT_EQ(losses.shape(), Shape({2, 3}, {"batch", "token"}));
  const Tensor<double> copied =
      cross_entropy(Tensor<double>(logits), targets, {.reduction = Reduction::none});
  EXPECT_TRUE(is_near(losses, copied));
  EXPECT_TRUE(is_near(cross_entropy_backward(logits, targets),
                      cross_entropy_backward(Tensor<double>(logits), targets)));
}

TEST(CrossEntropy, ItsGradientIsThatOfDifferences) {
  const Tensor<double> logits = random_matrix<double>(4, 7);
  const std::vector<Index> targets = {0, 6, -100, 2};
  const Tensor<double> one(Shape{}, 1.0);
  for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
    for (const double smoothing : {0.0, 0.3}) {
      const CrossEntropyOptions options{.reduction = reduction, .label_smoothing = smoothing};
      EXPECT_TRUE(is_gradient(
          cross_entropy_backward(logits, targets, options),
          [&](const Tensor<double>& at) { return cross_entropy(at, targets, options); }, one,
          logits));
    }
  }
  const CrossEntropyOptions none{.reduction = Reduction::none};
  EXPECT_TRUE(is_gradient(
      cross_entropy_backward(logits, targets, none),
      [&](const Tensor<double>& at) { return cross_entropy(at, targets, none); },
      Tensor<double>({4}, 1.0), logits));
}

TEST(CrossEntropy, ItsGradientIsSoftmaxLessTheTarget) {
  const Tensor<double> logits = Tensor<double>::matrix({{0, std::log(2), std::log(5)}});
  EXPECT_TRUE(is_near(cross_entropy_backward(logits, {2}),
                      Tensor<double>::matrix({{0.125, 0.25, -0.375}}), {.absolute = 1e-15}));
}

TEST(CrossEntropy, SaysWhatDoesNotFit) {
  const Tensor<float> logits = Tensor<float>({2, 3}).named({"token", "vocab"});
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] {
        cross_entropy(logits, {0, 3});
      }),
      "cross_entropy: target 3 at place 1, but logits is 2x3 (token, vocab) and targets are 0 "
      "to 2 or ignore_index, -100");
  EXPECT_EQ(thrown_by<ShapeError>([&] { cross_entropy(logits, {0}); }),
            "cross_entropy: logits is 2x3 (token, vocab) and targets has 1 element, but there must "
            "be one for each of the 2 vectors of logits");
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              cross_entropy(logits, {0, 1}, {.label_smoothing = 2});
            }),
            "cross_entropy: label_smoothing is 2, but it must be 0 to 1");
  EXPECT_EQ(thrown_by<ShapeError>([&] { cross_entropy_backward(Tensor<float>(Shape{}), {0}); }),
            "cross_entropy_backward: logits is scalar, but its last axis must be the classes");
}

}  // namespace
}  // namespace eckart

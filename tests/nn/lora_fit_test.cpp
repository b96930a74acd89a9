#include "eckart/nn/lora_fit.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/elementwise.h"
#include "eckart/linalg/lstsq.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/norms.h"
#include "eckart/linalg/singular_values.h"
#include "eckart/nn/linear_backward.h"

#include <cmath>
#include <limits>

#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::is_near;
using testing::random_matrix;
using testing::random_tensor;
using testing::thrown_by;

template <class T>
Tensor<T> change_of(const LoraFit<T>& fit) {
  return multiply(matmul(fit.lora_a, fit.lora_b), fit.scale);
}

double mean_square(const Tensor<double>& a) {
  const double length = norm(a);
  return length * length / static_cast<double>(a.count());
}

TEST(LoraFit, RecoversALowRankChange) {
  const Tensor<double> x = random_matrix<double>(200, 12, 1);
  const Tensor<double> w = random_matrix<double>(12, 9, 2);
  const Tensor<double> change =
      matmul(random_matrix<double>(12, 2, 3), random_matrix<double>(2, 9, 4));
  const Tensor<double> y = matmul(x, add(w, change));
  const LoraFit<double> fit =
      lora_fit(x, y, w, {.rank = 2, .alpha = 4, .steps = 3000, .learning_rate = 0.05});
  EXPECT_TRUE(fit.converged) << fit.gradient_share;
  EXPECT_EQ(fit.scale, 2);
  // At the optimum the gradient is 0 and the loss too. Near it the gradient by the change is 2 x^T x
  // (change - true) / count; x's smallest singular value, squared, is at least 100 of 200 rows, and
  // the factors' own singular values are some 1 to 4, so that a gradient of 1e-4 of the first, below
  // 1, bounds the difference by 1e-4 x 1800 / 200 or so; it is far smaller in fact.
  EXPECT_LE(norm(subtract(change_of(fit), change)), 1e-3 * norm(change));
  EXPECT_LE(fit.loss, 1e-6 * fit.losses.front());
}

TEST(LoraFit, OfFullRankReachesTheLeastSquaresOptimum) {
  const Tensor<double> x = random_matrix<double>(60, 5, 1);
  const Tensor<double> w = random_matrix<double>(5, 4, 2);
  const Tensor<double> y = random_matrix<double>(60, 4, 3);
  const Tensor<double> target = subtract(y, matmul(x, w));
  const Tensor<double> best = lstsq(x, target).x;
  const double optimum = mean_square(subtract(matmul(x, best), target));
  const LoraFit<double> fit =
      lora_fit(x, y, w, {.rank = 4, .alpha = 4, .steps = 4000, .learning_rate = 0.02});
  EXPECT_TRUE(fit.converged) << fit.gradient_share;
  EXPECT_GE(fit.loss, optimum * (1 - 1e-12));
  EXPECT_LE(fit.loss, optimum * (1 + 1e-5));
  EXPECT_LE(norm(subtract(change_of(fit), best)), 0.01 * norm(best));
}

TEST(LoraFit, OfALowRankReachesTheBestOfThatRank) {
  // The least squares of rank r: the fitted values' best approximation of rank r, so that the loss is
  // the residual's and the squares of the fitted values' other singular values (Eckart and Young).
  const Tensor<double> x = random_matrix<double>(80, 6, 1);
  const Tensor<double> w = random_matrix<double>(6, 5, 2);
  const Tensor<double> y = random_matrix<double>(80, 5, 3);
  const Tensor<double> target = subtract(y, matmul(x, w));
  const Tensor<double> fitted = matmul(x, lstsq(x, target).x);
  const Tensor<double> s = singular_values(fitted).values;
  double squares = std::pow(norm(subtract(fitted, target)), 2);
  for (Index i = 2; i < s.count(); ++i) squares += s(i) * s(i);
  const double optimum = squares / static_cast<double>(target.count());
  const LoraFit<double> fit =
      lora_fit(x, y, w, {.rank = 2, .alpha = 2, .steps = 4000, .learning_rate = 0.02});
  EXPECT_TRUE(fit.converged) << fit.gradient_share;
  EXPECT_GE(fit.loss, optimum * (1 - 1e-12));
  EXPECT_LE(fit.loss, optimum * (1 + 1e-5));
}

TEST(LoraFit, LearnsFromBatches) {
  const Tensor<double> x = random_matrix<double>(120, 8, 1);
  const Tensor<double> w = random_matrix<double>(8, 6, 2);
  const Tensor<double> change =
      matmul(random_matrix<double>(8, 1, 3), random_matrix<double>(1, 6, 4));
  const Tensor<double> y = matmul(x, add(w, change));
  const LoraFitOptions options{
      .rank = 1, .alpha = 1, .steps = 3000, .learning_rate = 0.03, .batch = 50, .seed = 5};
  const LoraFit<double> fit = lora_fit(x, y, w, options);
  EXPECT_TRUE(fit.converged) << fit.gradient_share;
  EXPECT_EQ(fit.losses.size(), 3000U);
  EXPECT_LE(norm(subtract(change_of(fit), change)), 1e-3 * norm(change));
}

TEST(LoraFit, IsTheSameForASeedAndEveryNumberOfThreads) {
  const Tensor<float> x = random_matrix<float>(300, 70, 1);
  const Tensor<float> w = random_matrix<float>(70, 50, 2);
  const Tensor<float> y = random_matrix<float>(300, 50, 3);
  const LoraFitOptions options{.rank = 3, .steps = 20, .batch = 64, .seed = 7};
  const LoraFit<float> once = lora_fit(x, y, w, options);
  set_thread_count(3);
  const LoraFit<float> again = lora_fit(x, y, w, options);
  set_thread_count(0);
  EXPECT_TRUE(is_near(again.lora_a, once.lora_a));
  EXPECT_TRUE(is_near(again.lora_b, once.lora_b));
  EXPECT_EQ(again.losses, once.losses);
  LoraFitOptions other = options;
  other.seed = 8;
  EXPECT_NE(lora_fit(x, y, w, other).losses.back(), once.losses.back());
}

TEST(LoraFit, BeginsAtTheFrozenLayer) {
  const Tensor<double> x = random_matrix<double>(10, 4, 1);
  const Tensor<double> w = random_matrix<double>(4, 3, 2);
  const Tensor<double> y = random_matrix<double>(10, 3, 3);
  const LoraFit<double> fit = lora_fit(x, y, w, {.rank = 2, .steps = 1});
  const double before = mean_square(subtract(matmul(x, w), y));
  EXPECT_NEAR(fit.losses.front(), before, 16 * 0x1p-52 * before);
  EXPECT_EQ(fit.losses.size(), 1U);
  EXPECT_FALSE(fit.converged);
  EXPECT_LT(fit.loss, before);
  // Its loss is that of the layer it describes.
  const Tensor<double> now =
      lora_linear(x, w, {.lora_a = fit.lora_a, .lora_b = fit.lora_b, .scale = fit.scale});
  EXPECT_NEAR(fit.loss, mean_square(subtract(now, y)), 64 * 0x1p-52 * before);
}

TEST(LoraFit, OfALayerThatIsRightAlreadyEndsAtOnce) {
  const Tensor<double> x = random_matrix<double>(10, 4, 1);
  const Tensor<double> w = random_matrix<double>(4, 3, 2);
  const LoraFit<double> fit = lora_fit(x, matmul(x, w), w, {.rank = 2});
  EXPECT_TRUE(fit.converged);
  EXPECT_EQ(fit.losses.size(), 1U);
  EXPECT_EQ(norm(fit.lora_b), 0);
}

TEST(LoraFit, ThatDivergesGivesTheLastFiniteFactors) {
  const Tensor<float> x = random_matrix<float>(10, 4, 1);
  const Tensor<float> w = random_matrix<float>(4, 3, 2);
  const Tensor<float> y = random_matrix<float>(10, 3, 3);
  const LoraFit<float> fit = lora_fit(x, y, w, {.rank = 2, .steps = 50, .learning_rate = 1e25});
  EXPECT_FALSE(fit.converged);
  EXPECT_TRUE(std::isfinite(fit.loss));
  EXPECT_LT(fit.losses.size(), 50U);
  for (const Tensor<float>* factor : {&fit.lora_a, &fit.lora_b}) {
    for (Index i = 0; i < factor->count(); ++i) EXPECT_TRUE(std::isfinite(factor->data()[i]));
  }
}

TEST(LoraFit, TakesLeadingAxesNamesAndStridedViews) {
  const Tensor<double> x = random_tensor<double>({4, 5, 6}, 1).named({"batch", "token", "d_model"});
  const Tensor<double> stored = random_matrix<double>(3, 6, 2).named({"d_ff", "d_model"});
  const Tensor<double> y = random_tensor<double>({4, 5, 3}, 3);
  const TensorView<const double> w = stored.view().transpose();
  const LoraFit<double> fit = lora_fit(x, y, w, {.rank = 2, .steps = 3});
  EXPECT_EQ(fit.lora_a.shape(), Shape({6, 2}, {"d_model", "rank"}));
  EXPECT_EQ(fit.lora_b.shape(), Shape({2, 3}, {"rank", "d_ff"}));
  const Tensor<double> flat_x = x.reshaped({20, 6});
  const Tensor<double> flat_y = y.reshaped({20, 3});
  const LoraFit<double> flat =
      lora_fit(flat_x, flat_y, Tensor<double>(w).reshaped({6, 3}), {.rank = 2, .steps = 3});
  // Products by a transposed operand may add their 6 terms in another order.
  EXPECT_TRUE(is_near(fit.lora_b, flat.lora_b, {.absolute = 1e-12}));
}

TEST(LoraFit, SaysWhatDoesNotFit) {
  const Tensor<float> x = random_matrix<float>(10, 4, 1);
  const Tensor<float> w = random_matrix<float>(4, 3, 2);
  const Tensor<float> y = random_matrix<float>(10, 3, 3);
  EXPECT_EQ(thrown_by<ShapeError>([&] { lora_fit(x, w, w); }),
            "lora_fit: x is 10x4, y is 4x3 and w is 4x3, but x must be rows by w's rows, y as many "
            "rows by w's columns");
  const auto text = [&](const LoraFitOptions& options) {
    return thrown_by<ArgumentError>([&] { lora_fit(x, y, w, options); });
  };
  EXPECT_EQ(text({.rank = 0}), "lora_fit: rank is 0, but it must be at least 1");
  EXPECT_EQ(text({.alpha = -1}), "lora_fit: alpha is -1, but it must be above 0 and finite");
  EXPECT_EQ(text({.steps = 0}), "lora_fit: steps is 0, but it must be at least 1");
  EXPECT_EQ(text({.learning_rate = 0}),
            "lora_fit: learning_rate is 0, but it must be above 0 and finite");
  EXPECT_EQ(text({.batch = 11}),
            "lora_fit: batch is 11 and x has 10 rows, but batch must be 1 to that, or 0 for all");
  EXPECT_EQ(text({.tolerance = -1}), "lora_fit: tolerance is -1, but it must be at least 0");
  Tensor<float> broken = y;
  broken(3, 1) = std::numeric_limits<float>::quiet_NaN();
  const std::string finite = thrown_by<ArgumentError>([&] { lora_fit(x, broken, w); });
  EXPECT_EQ(finite.rfind("lora_fit: y has a NaN at (3, 1)", 0), 0U) << finite;
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              lora_fit(Tensor<float>({0, 4}), Tensor<float>({0, 3}), w);
            }),
            "lora_fit: x has no rows, but it must have at least one to learn from");
}

}  // namespace
}  // namespace eckart

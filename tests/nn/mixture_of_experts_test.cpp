#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"
#include "eckart/nn/mlp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

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

// Experts of d_model x d_ff random weights.
struct Weights {
  std::vector<Tensor<double>> up, gate, down;

  Weights(Index n, Index d_model, Index d_ff) {
    for (Index i = 0; i < n; ++i) {
      const auto seed = static_cast<std::uint64_t>(3 * i + 10);
      up.push_back(random_matrix<double>(d_model, d_ff, seed));
      gate.push_back(random_matrix<double>(d_model, d_ff, seed + 1));
      down.push_back(random_matrix<double>(d_ff, d_model, seed + 2));
    }
  }
  std::vector<Mlp<double>> experts() const {
    std::vector<Mlp<double>> result;
    for (std::size_t i = 0; i < up.size(); ++i) {
      result.push_back({.w_up = up[i], .w_down = down[i], .w_gate = gate[i]});
    }
    return result;
  }
};

// An expert that multiplies by a number, with relu as its activation, for x above 0.
struct Factor {
  Tensor<double> up, down;
  explicit Factor(double factor)
      : up(Tensor<double>::matrix({{factor}})), down(Tensor<double>::matrix({{1}})) {}
  Mlp<double> expert() const {
    return {.w_up = up, .w_down = down, .activation = Activation::relu};
  }
};

TEST(MixtureOfExperts, IsWhatAReaderCanCheck) {
  const Factor once(1), tenfold(10), hundredfold(100);
  const std::vector<Mlp<double>> experts = {once.expert(), tenfold.expert(), hundredfold.expert()};
  // Of x = 1 the scores are log(1), log(3), log(4): the softmax is 1/8, 3/8, 4/8.
  const Tensor<double> router = Tensor<double>::matrix({{0, std::log(3), std::log(4)}});
  const Tensor<double> x = Tensor<double>::matrix({{1}});
  const double bound = 8 * 0x1p-52;
  const MixtureOfExperts<double> plain = mixture_of_experts(x, router, experts, {.n_active = 2});
  EXPECT_TRUE(has_elements(plain.chosen.view(), {2, 1}));
  EXPECT_TRUE(is_near(plain.weights, Tensor<double>::matrix({{0.5, 0.375}}), {.relative = bound}));
  EXPECT_TRUE(is_near(plain.output, Tensor<double>::matrix({{53.75}}), {.relative = bound}));
  const MixtureOfExperts<double> normalized =
      mixture_of_experts(x, router, experts, {.n_active = 2, .normalizes = true});
  const MixtureOfExperts<double> after = mixture_of_experts(
      x, router, experts, {.n_active = 2, .softmax = RouterSoftmax::after_choice});
  const Tensor<double> weights = Tensor<double>::matrix({{4.0 / 7, 3.0 / 7}});
  EXPECT_TRUE(is_near(normalized.weights, weights, {.relative = bound}));
  EXPECT_TRUE(is_near(after.weights, weights, {.relative = bound}));
  EXPECT_TRUE(is_near(after.output, Tensor<double>::matrix({{430.0 / 7}}), {.relative = bound}));
}

TEST(MixtureOfExperts, OfAllExpertsIsTheirWeighedSum) {
  const Weights weights(4, 6, 9);
  const std::vector<Mlp<double>> experts = weights.experts();
  const Tensor<double> x = random_tensor<double>({2, 7, 6}).named({"batch", "token", "d_model"});
  const Tensor<double> router = random_matrix<double>(6, 4, 2);
  const MixtureOfExperts<double> mixture = mixture_of_experts(x, router, experts, {.n_active = 4});
  EXPECT_EQ(mixture.output.shape(), x.shape());
  EXPECT_EQ(mixture.chosen.shape(), Shape({2, 7, 4}, {"batch", "token", ""}));
  const Tensor<double> scores = matmul(x, router);
  Tensor<double> wanted({14, 6});
  for (Index e = 0; e < 4; ++e) {
    const Tensor<double> y = mlp(x, experts[static_cast<std::size_t>(e)]);
    for (Index row = 0; row < 14; ++row) {
      double sum = 0;
      for (Index i = 0; i < 4; ++i) sum += std::exp(scores.data()[row * 4 + i]);
      const double weight = std::exp(scores.data()[row * 4 + e]) / sum;
      for (Index i = 0; i < 6; ++i) wanted(row, i) += weight * y.data()[row * 6 + i];
    }
  }
  // Products of 6 and 9 terms below some 100, in another order, and exponents up to 10.
  EXPECT_TRUE(is_near(mixture.output.view().reshape({14, 6}), wanted.view(),
                      {.absolute = 100 * 30 * 0x1p-52}));
}

TEST(MixtureOfExperts, GivesEachTokenWhatItGetsAlone) {
  const Weights weights(8, 5, 7);
  const std::vector<Mlp<double>> experts = weights.experts();
  const Tensor<double> x = random_matrix<double>(40, 5);
  const Tensor<double> router = random_matrix<double>(5, 8, 2);
  for (const Index n_active : {1, 2, 3}) {
    const ExpertsOptions options{.n_active = n_active, .normalizes = true};
    const MixtureOfExperts<double> all = mixture_of_experts(x, router, experts, options);
    for (Index row = 0; row < 40; ++row) {
      const MixtureOfExperts<double> one = mixture_of_experts(
          x.view().slice(0, {.begin = row, .end = row + 1}), router.view(), experts, options);
      EXPECT_TRUE(is_near(one.chosen.view().select(0, 0), all.chosen.view().select(0, row)));
      // Sums of 5 and 7 products below 100 in an order that the number of rows may change.
      EXPECT_TRUE(is_near(one.output.view().select(0, 0), all.output.view().select(0, row),
                          {.absolute = 100 * 20 * 0x1p-52}));
    }
  }
}

TEST(MixtureOfExperts, ChoosesTheLowestNumberAmongEqualScores) {
  const Factor one(1);
  const std::vector<Mlp<double>> experts(5, one.expert());
  const Tensor<double> router = Tensor<double>::matrix({{1, 2, 0, 2, 2}});
  const MixtureOfExperts<double> mixture =
      mixture_of_experts(Tensor<double>::matrix({{1}, {0}}), router, experts, {.n_active = 2});
  EXPECT_TRUE(has_elements(mixture.chosen.view(), {1, 3, 0, 1}));
}

TEST(MixtureOfExperts, KeepsANaNInItsRow) {
  const Weights weights(3, 4, 5);
  Tensor<double> x = random_matrix<double>(3, 4);
  const Tensor<double> router = random_matrix<double>(4, 3, 2);
  x(1, 0) = std::nan("");
  const MixtureOfExperts<double> mixture =
      mixture_of_experts(x, router, weights.experts(), {.n_active = 2});
  for (Index i = 0; i < 4; ++i) {
    EXPECT_FALSE(std::isnan(mixture.output(0, i)));
    EXPECT_TRUE(std::isnan(mixture.output(1, i)));
    EXPECT_FALSE(std::isnan(mixture.output(2, i)));
  }
}

TEST(MixtureOfExperts, TakesStridedViewsAndNothing) {
  const Weights weights(3, 4, 5);
  const Tensor<double> base = random_matrix<double>(4, 9);
  const TensorView<const double> x = base.view().transpose();
  const Tensor<double> router = random_matrix<double>(4, 3, 2);
  const MixtureOfExperts<double> turned =
      mixture_of_experts(x, router.view(), weights.experts(), {.n_active = 1});
  const MixtureOfExperts<double> copied =
      mixture_of_experts(Tensor<double>(x), router, weights.experts(), {.n_active = 1});
  // The router's product may sum its 4 terms in another order.
  EXPECT_TRUE(is_near(turned.output, copied.output, {.absolute = 100 * 20 * 0x1p-52}));
  const MixtureOfExperts<double> none =
      mixture_of_experts(Tensor<double>({0, 4}), router, weights.experts(), {.n_active = 2});
  EXPECT_EQ(none.output.shape(), Shape({0, 4}));
  EXPECT_EQ(none.chosen.shape(), Shape({0, 2}));
}

TEST(MixtureOfExperts, SaysWhatDoesNotFit) {
  const Weights weights(3, 4, 5);
  const std::vector<Mlp<double>> experts = weights.experts();
  const Tensor<double> x({2, 4});
  const Tensor<double> router({4, 3});
  const Tensor<double> turned({3, 4});
  EXPECT_EQ(thrown_by<ShapeError>([&] { mixture_of_experts(x, turned, experts); }),
            "mixture_of_experts: w_router is 3x4 and there are 3 experts, but w_router must have a "
            "column for each\n  hint: with w_router transposed it fits");
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { mixture_of_experts(x, router, experts, {.n_active = 4}); }),
      "mixture_of_experts: n_active is 4 and there are 3 experts, but n_active must be 1 to "
      "that");
  EXPECT_EQ(
      thrown_by<ShapeError>([&] {
        mixture_of_experts(Tensor<double>({2, 5}), router, experts);
      }),
      "mixture_of_experts: x is 2x5 and expert 0's w_down is 5x4, but w_down's columns must be "
      "x's");
}

}  // namespace
}  // namespace eckart

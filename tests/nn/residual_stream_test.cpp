#include "eckart/nn/residual_stream.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"
#include "eckart/nn/normalization.h"

#include <cmath>

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

ResidualStream<double> random_stream() {
  ResidualStream<double> stream("embedding", random_matrix<double>(3, 8, 1));
  stream.add("layer 0 attention", random_matrix<double>(3, 8, 2));
  stream.add("layer 0 mlp", random_matrix<double>(3, 8, 3));
  return stream;
}

TEST(ResidualStream, IsTheSumOfWhatWasAdded) {
  ResidualStream<double> stream("embedding", Tensor<double>::matrix({{1, 2}, {3, 4}}));
  stream.add("mlp", Tensor<double>::matrix({{10, 0}, {0, -4}}));
  EXPECT_TRUE(has_elements(stream.value().view(), {11, 2, 3, 0}));
  EXPECT_EQ(stream.names(), (std::vector<std::string>{"embedding", "mlp"}));
  EXPECT_TRUE(has_elements(stream.contribution("embedding").view(), {1, 2, 3, 4}));
}

TEST(ResidualStream, SharesAreProjectionsOnTheStream) {
  ResidualStream<double> stream("a", Tensor<double>::matrix({{3, 0}}));
  stream.add("b", Tensor<double>::matrix({{0, 4}}));
  // The stream is (3, 4): 9 / 25 and 16 / 25.
  const Tensor<double> shares = stream.shares();
  EXPECT_TRUE(has_elements(shares.view(), {0.36, 0.64}));
  EXPECT_EQ(shares.shape(), Shape({2, 1}, {"contribution", "token"}));
  const Tensor<double> many = random_stream().shares();
  for (Index token = 0; token < 3; ++token) {
    double sum = 0;
    for (Index i = 0; i < 3; ++i) sum += many(i, token);
    // Eight products below 30 over a length of some 5 at least.
    EXPECT_NEAR(sum, 1, 8 * 30 * 0x1p-52);
  }
}

TEST(ResidualStream, AttributionsSumToTheLogit) {
  const ResidualStream<double> stream = random_stream();
  const Tensor<double> direction = random_tensor<double>({8}, 4);
  const Tensor<double> w = random_tensor<double>({8}, 5);
  const Tensor<double> b = random_tensor<double>({8}, 6);
  const auto check = [&](const StreamAttribution& parts, const Tensor<double>& normalized) {
    const Tensor<double> logits = matmul(normalized, direction);
    for (Index token = 0; token < 3; ++token) {
      double sum = parts.bias;
      for (Index i = 0; i < 3; ++i) sum += parts.contributions(i, token);
      // 3 x 8 products of numbers below 4, 4 and 2, summed in another order.
      EXPECT_NEAR(sum, logits(token), 24 * 32 * 8 * 0x1p-52);
      EXPECT_NEAR(parts.total(token), logits(token), 24 * 32 * 8 * 0x1p-52);
    }
  };
  check(stream.attributions(direction), stream.value());
  check(stream.attributions(direction, {.norm = StreamNorm::rms_norm, .weight = w, .eps = 1e-6}),
        rms_norm(stream.value(), {.weight = w, .eps = 1e-6}));
  check(stream.attributions(
            direction, {.norm = StreamNorm::rms_norm, .weight = w, .eps = 1e-6, .adds_one = true}),
        rms_norm(stream.value(), {.weight = w, .eps = 1e-6, .adds_one = true}));
  check(stream.attributions(direction,
                            {.norm = StreamNorm::layer_norm, .weight = w, .bias = b, .eps = 1e-5}),
        layer_norm(stream.value(), {.weight = w, .bias = b, .eps = 1e-5}));
  EXPECT_EQ(stream.attributions(direction).contributions.shape(),
            Shape({3, 3}, {"contribution", "token"}));
}

TEST(ResidualStream, AttributionsAreWhatAReaderCanCheck) {
  ResidualStream<double> stream("a", Tensor<double>::matrix({{1, 0}, {2, 0}}));
  stream.add("b", Tensor<double>::matrix({{0, 1}, {1, 1}}));
  const Tensor<double> direction = Tensor<double>::vector({10, 1});
  EXPECT_TRUE(has_elements(stream.attributions(direction).contributions.view(), {10, 20, 1, 11}));
}

TEST(ResidualStream, NamesWhatDoesNotFit) {
  ResidualStream<float> stream("embedding", Tensor<float>({2, 3}).named({"token", "d_model"}));
  EXPECT_EQ(
      thrown_by<ShapeError>([&] {
        stream.add("mlp", Tensor<float>({3, 2}));
      }),
      "residual_stream: mlp is 3x2 and the stream is 2x3 (token, d_model), but both must have "
      "the same sizes and names");
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] {
        stream.add("embedding", Tensor<float>({2, 3}));
      }),
      "residual_stream: embedding has been added before, but every contribution needs its own "
      "name");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { stream.contribution("mlp"); }),
            "residual_stream: there is no contribution mlp, but only embedding");
  EXPECT_EQ(
      thrown_by<ShapeError>([&] { stream.attributions(Tensor<float>({2})); }),
      "residual_stream: x is 2x3 (token, d_model) and direction is 2, but direction must be a "
      "vector of 3 elements, one along x's last axis");
  const Tensor<float> w({3});
  EXPECT_EQ(thrown_by<ArgumentError>([&] { stream.attributions(w, {.weight = w}); }),
            "residual_stream: there is a weight or a bias and no norm, but they are the norm's");
  EXPECT_EQ(thrown_by<ArgumentError>(
                [&] { stream.attributions(w, {.norm = StreamNorm::rms_norm, .bias = w}); }),
            "residual_stream: there is a bias and the norm is rms_norm, but it has none");
  EXPECT_EQ(thrown_by<ShapeError>([] { ResidualStream<float>("x", Tensor<float>({3})); }),
            "residual_stream: x is 3, but it must be a matrix\n"
            "  hint: reshaped it fits: as one column it is 3x1, as one row 1x3");
}

}  // namespace
}  // namespace eckart

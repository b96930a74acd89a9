#include "tests/nn/central_differences.h"

#include <cmath>

#include "tests/random_tensor.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::is_gradient;
using testing::random_tensor;

Tensor<double> sines(const Tensor<double>& x) {
  Tensor<double> y = x;
  for (Index i = 0; i < y.count(); ++i) y.data()[i] = std::sin(x.data()[i]);
  return y;
}

TEST(CentralDifferences, AcceptAGradientAndRejectOneThatIsOffByLittle) {
  const Tensor<double> x = random_tensor<double>({5}, 1);
  const Tensor<double> weights = random_tensor<double>({5}, 2);
  Tensor<double> gradient = x;
  for (Index i = 0; i < 5; ++i) gradient(i) = weights(i) * std::cos(x(i));
  EXPECT_TRUE(is_gradient(gradient, sines, weights, x));
  gradient(3) += 1e-8;
  EXPECT_FALSE(is_gradient(gradient, sines, weights, x));
  gradient(3) = std::nan("");
  EXPECT_FALSE(is_gradient(gradient, sines, weights, x));
  EXPECT_FALSE(is_gradient(random_tensor<double>({4}), sines, weights, x));
}

TEST(CentralDifferences, RejectAFunctionTooRoughToTell) {
  const Tensor<double> x({1});
  const Tensor<double> one({1}, 1.0);
  // A step at 0 has no slope there.
  const auto step = [](const Tensor<double>& at) {
    return Tensor<double>({1}, at(0) > 0 ? 1.0 : 0.0);
  };
  EXPECT_FALSE(is_gradient(Tensor<double>({1}), step, one, x));
}

}  // namespace
}  // namespace eckart

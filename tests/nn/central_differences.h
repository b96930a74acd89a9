// Gradients by differences, with a bound on how far they can be off.
#pragma once

#include "eckart/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/matchers.h"
#include <gtest/gtest.h>

namespace eckart::testing {

using TensorFunction = std::function<Tensor<double>(const Tensor<double>&)>;

/// Success when `gradient` is the gradient at x of the sum of weights times y(x).
///
/// Each element is held against the five-point difference D(h) = (8 (f(h) - f(-h)) - f(2h) + f(-2h)) /
/// 12h, whose truncation error is h^4 times the fifth derivative over 30. That of D(2h) is 16 times as
/// large, so that D(2h) - D(h) is 15 times the error of D(h). Beside it stands what rounding does: f
/// is off by some 32 units of 2^-53 of the sum of its terms' magnitudes, and D weighs it with 1.5 / h.
inline ::testing::AssertionResult is_gradient(const Tensor<double>& gradient,
                                              const TensorFunction& y,
                                              const Tensor<double>& weights,
                                              const Tensor<double>& x) {
  constexpr double h = 0x1p-9;
  double magnitude = 0;
  const auto f = [&](const Tensor<double>& at) {
    const Tensor<double> result = y(at);
    double sum = 0;
    double magnitudes = 0;
    for (Index i = 0; i < result.count(); ++i) {
      const double term = result.data()[i] * weights.data()[i];
      sum += term;
      magnitudes += std::abs(term);
    }
    magnitude = std::max(magnitude, magnitudes);
    return sum;
  };
  if (!same_sizes(gradient.shape(), x.shape())) {
    return ::testing::AssertionFailure() << "the gradient is " << to_string(gradient.shape())
                                         << " and x is " << to_string(x.shape());
  }
  double largest = 0;
  for (Index i = 0; i < x.count(); ++i) {
    largest = std::max(largest, std::abs(gradient.data()[i]));
  }
  Tensor<double> moved = x;
  for (Index i = 0; i < x.count(); ++i) {
    const auto at = [&](double step) {
      moved.data()[i] = x.data()[i] + step;
      return f(moved);
    };
    const double once = at(h) - at(-h);
    const double twice = at(2 * h) - at(-2 * h);
    const double four_times = at(4 * h) - at(-4 * h);
    moved.data()[i] = x.data()[i];
    const double fine = (8 * once - twice) / (12 * h);
    const double coarse = (8 * twice - four_times) / (24 * h);
    const double bound = std::abs(coarse - fine) + 1.5 / h * 32 * 0x1p-53 * magnitude;
    // A bound as large as the gradient itself would prove nothing.
    if (!(bound <= 1e-5 * (largest + magnitude))) {
      return ::testing::AssertionFailure()
             << "the differences at element " << i << " are too rough to tell: bound " << bound;
    }
    if (!(std::abs(gradient.data()[i] - fine) <= bound)) {
      return ::testing::AssertionFailure()
             << "element " << i << " of the gradient is " << gradient.data()[i]
             << " and must be within " << bound << " of " << fine;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace eckart::testing

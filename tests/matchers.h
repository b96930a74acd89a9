// One way to compare arrays, whose failure explains itself.
#pragma once

#include "eckart/core/tensor_view.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace eckart::testing {

/// An element may differ from the expected one by `absolute` + `relative` * |expected|.
struct Bound {
  double absolute = 0;
  double relative = 0;
};

namespace detail {

// The position of element number `i` in row-major order, as (1, 2).
inline std::string position_text(const Shape& shape, Index i) {
  std::string text;
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(i % shape.size(axis)) + (text.empty() ? "" : ", ") + text;
    i /= shape.size(axis);
  }
  return "(" + text + ")";
}

inline double allowed(Bound bound, double expected) {
  return bound.absolute + bound.relative * std::abs(expected);
}

// How far a pair is beyond the bound: above 0 it fails. NaN is near nothing, infinity near itself.
inline double excess(double actual, double expected, Bound bound) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(actual) || std::isnan(expected)) return infinity;
  if (actual == expected) return 0;
  if (std::isinf(actual) || std::isinf(expected)) return infinity;
  return std::abs(actual - expected) - allowed(bound, expected);
}

}  // namespace detail

/// Success when both have the same sizes and every element of `actual` is within `bound` of that of
/// `expected`. The failure names the worst element, both values and the bound. Names of axes are
/// not compared.
template <class A, class B>
::testing::AssertionResult is_near(TensorView<A> actual, TensorView<B> expected, Bound bound = {}) {
  if (!same_sizes(actual.shape(), expected.shape())) {
    return ::testing::AssertionFailure() << "actual is " << to_string(actual.shape())
                                         << " and expected is " << to_string(expected.shape());
  }
  Index element = 0;
  Index worst = 0;
  Index n_beyond = 0;
  double worst_excess = 0;
  double worst_actual = 0;
  double worst_expected = 0;
  for_each_element(
      [&](const auto& a, const auto& e) {
        const double excess = detail::excess(static_cast<double>(a), static_cast<double>(e), bound);
        if (excess > 0) ++n_beyond;
        if (excess > worst_excess) {
          worst = element;
          worst_excess = excess;
          worst_actual = static_cast<double>(a);
          worst_expected = static_cast<double>(e);
        }
        ++element;
      },
      actual, expected);
  if (n_beyond == 0) return ::testing::AssertionSuccess();
  std::ostringstream text;
  text.precision(17);
  text << n_beyond << " of " << actual.count() << " elements beyond the bound; the worst, at "
       << detail::position_text(actual.shape(), worst) << ", is " << worst_actual
       << " and must be within " << detail::allowed(bound, worst_expected) << " of "
       << worst_expected;
  return ::testing::AssertionFailure() << text.str();
}

/// The same for anything that views convert from, such as a Tensor.
template <class A, class B>
requires requires(const A& a, const B& b) {
  a.view();
  b.view();
}
::testing::AssertionResult is_near(const A& actual, const B& expected, Bound bound = {}) {
  return is_near(actual.view(), expected.view(), bound);
}

/// Success when the elements of a view, in row-major order, are exactly `expected`.
template <class T>
::testing::AssertionResult has_elements(TensorView<T> actual,
                                        const std::vector<std::remove_const_t<T>>& expected) {
  if (actual.count() != static_cast<Index>(expected.size())) {
    return ::testing::AssertionFailure() << "actual is " << to_string(actual.shape())
                                         << ", and expected are " << expected.size() << " elements";
  }
  const TensorView<const std::remove_const_t<T>> list(expected.data(), actual.shape());
  return is_near(actual, list);
}

}  // namespace eckart::testing

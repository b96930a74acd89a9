// Sums, means, extremes over chosen axes of an array.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/axis.h"

#include <vector>

namespace eckart {

struct ReduceOptions {
  /// Which axes disappear, by place or name: `{0, "token"}`; none listed: all of them.
  std::vector<Axis> axes = {};
  /// They stay, with one position each, so that the result broadcasts against the array.
  bool keep_axes = false;
};

struct VarianceOptions {
  std::vector<Axis> axes = {};
  bool keep_axes = false;
  /// Subtracted from the number of elements that the squares are divided by: 1 gives the unbiased
  /// estimate from a sample.
  Index correction = 0;
};

/// The sum over axes of an array of any shape; of no elements 0.
/// Returns the array without those axes, or with one position each; names stay. Cost: one pass.
/// Accuracy: blocks of at most 4096 terms are added in double, their sums with what each addition
/// loses (Knuth's two-sum), and the result is rounded to T: eps |result| + 530 2^-53 sum |x_i| at
/// most, whatever the number of terms. The same bits for every number of threads.
/// Throws ShapeError when there is no such axis or one stands twice.
template <class T>
Tensor<T> sum(TensorView<const T> x, const ReduceOptions& options = {});
/// The sum over the number of elements. Throws ArgumentError also when there are no elements.
template <class T>
Tensor<T> mean(TensorView<const T> x, const ReduceOptions& options = {});
/// The smallest and the largest element; NaN where one is NaN. Shape, cost and errors as `mean`.
template <class T>
Tensor<T> min(TensorView<const T> x, const ReduceOptions& options = {});
template <class T>
Tensor<T> max(TensorView<const T> x, const ReduceOptions& options = {});
/// The mean of the squared differences from the mean, and its root. Two passes, so that a large mean
/// does not cancel the differences: relative error of a few eps of T, plus (mean / deviation)^2
/// 2^-104. Doubles whose differences are beyond 1e154 overflow. Throws ArgumentError also when the elements are not more than `correction`.
template <class T>
Tensor<T> variance(TensorView<const T> x, const VarianceOptions& options = {});
template <class T>
Tensor<T> standard_deviation(TensorView<const T> x, const VarianceOptions& options = {});
/// Where the largest or smallest element stands among the reduced axes, counted row by row from 0;
/// of several the first, and the first NaN where there is one. Shape, cost and errors as `mean`.
template <class T>
Tensor<Index> argmax(TensorView<const T> x, const ReduceOptions& options = {});
template <class T>
Tensor<Index> argmin(TensorView<const T> x, const ReduceOptions& options = {});

template <class A>
requires detail::Arrays<A>
auto sum(const A& x, const ReduceOptions& options = {}) {
  return sum(detail::read_only(x), options);
}
template <class A>
requires detail::Arrays<A>
auto mean(const A& x, const ReduceOptions& options = {}) {
  return mean(detail::read_only(x), options);
}
template <class A>
requires detail::Arrays<A>
auto min(const A& x, const ReduceOptions& options = {}) {
  return min(detail::read_only(x), options);
}
template <class A>
requires detail::Arrays<A>
auto max(const A& x, const ReduceOptions& options = {}) {
  return max(detail::read_only(x), options);
}
template <class A>
requires detail::Arrays<A>
auto variance(const A& x, const VarianceOptions& options = {}) {
  return variance(detail::read_only(x), options);
}
template <class A>
requires detail::Arrays<A>
auto standard_deviation(const A& x, const VarianceOptions& options = {}) {
  return standard_deviation(detail::read_only(x), options);
}
template <class A>
requires detail::Arrays<A>
auto argmax(const A& x, const ReduceOptions& options = {}) {
  return argmax(detail::read_only(x), options);
}
template <class A>
requires detail::Arrays<A>
auto argmin(const A& x, const ReduceOptions& options = {}) {
  return argmin(detail::read_only(x), options);
}

}  // namespace eckart

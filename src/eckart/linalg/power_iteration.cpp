#include "eckart/linalg/power_iteration.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/core/random.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/minimum_norm.h"
#include "eckart/linalg/signs.h"

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace eckart {
namespace {

void check_options(const PowerIterationOptions& options) {
  if (options.max_iterations < 1) {
    throw_argument_error("power_iteration: max_iterations is " +
                         std::to_string(options.max_iterations) + ", but it must be at least 1");
  }
  const double tolerance = options.tolerance.value_or(0);
  if (!(tolerance >= 0) || !std::isfinite(tolerance)) {
    throw_argument_error("power_iteration: tolerance is " + number_text(tolerance) +
                         ", but it must be a number from 0");
  }
}

template <class T>
double dot(const Tensor<T>& a, const Tensor<T>& b) {
  double sum = 0;
  for (Index i = 0; i < a.count(); ++i) {
    sum += static_cast<double>(a.data()[i]) * static_cast<double>(b.data()[i]);
  }
  return sum;
}

// ||a v - value v||, given a v.
template <class T>
T residual_of(const Tensor<T>& product, const Tensor<T>& vector, T value) {
  Tensor<T> residual = product;
  for (Index i = 0; i < residual.count(); ++i) residual(i) -= value * vector(i);
  return euclidean_norm<T>(residual.view());
}

}  // namespace

template <class T>
PowerIteration<T> power_iteration(TensorView<const T> a, const PowerIterationOptions& options) {
  check_square("power_iteration", "a", a.shape());
  check_options(options);
  const Index n = a.size(0);
  if (n == 0) throw_shape_error("power_iteration: a is 0x0, but it must have an element");
  check_finite("power_iteration", "a", a);
  const double tolerance =
      options.tolerance.value_or(std::sqrt(static_cast<double>(std::numeric_limits<T>::epsilon())));
  const std::string name = a.shape().has_names() ? a.shape().name(1) : "";
  PowerIteration<T> result{T{0}, Tensor<T>(shape_with_names({n}, {name})), 0, false, T{0}};
  Tensor<T> next({n});
  RandomStream(options.seed).fill_normal(std::span<T>(next.data(), static_cast<std::size_t>(n)));
  while (result.iterations < options.max_iterations) {
    const T norm = euclidean_norm<T>(next.view());
    for (Index i = 0; i < n; ++i) result.vector(i) = next(i) / norm;
    blas::gemv(T{1}, a, std::as_const(result.vector).view(), T{0}, next.view());
    ++result.iterations;
    result.value = static_cast<T>(dot(result.vector, next));
    result.residual = residual_of(next, result.vector, result.value);
    result.converged = static_cast<double>(result.residual) <=
                       tolerance * std::abs(static_cast<double>(result.value));
    if (result.converged) break;  // as it is when the product is 0, an eigenvector of value 0
  }
  const TensorView<T> column(result.vector.data(), Shape{n, 1});
  fix_signs(column);
  return result;
}

template PowerIteration<float> power_iteration(TensorView<const float>,
                                               const PowerIterationOptions&);
template PowerIteration<double> power_iteration(TensorView<const double>,
                                                const PowerIterationOptions&);

}  // namespace eckart

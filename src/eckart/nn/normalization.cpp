#include "eckart/nn/normalization.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/sums_simd.h"
#include "eckart/nn/normalization_checks.h"
#include "eckart/nn/normalization_simd.h"
#include "eckart/nn/rows.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace eckart {
namespace detail {
namespace {

// Squares of floats are all in the range of double. A vector of doubles whose squares are not is
// multiplied by this; where eps outweighs the squares that are lost, they don't matter.
template <class T>
double safe_scale(const T* x, std::size_t n, double eps) {
  if (std::is_same_v<T, float>) return 1;
  const double largest = largest_magnitude_run(x, n);
  if (!std::isfinite(largest) || largest == 0) return 1;
  if (largest > 0x1p500) return 0x1p-600;
  return largest < 0x1p-400 && eps < 0x1p-700 ? 0x1p600 : 1;
}

template <class T>
std::vector<T> scaled(const T* x, std::size_t n, double scale) {
  std::vector<T> result(x, x + n);
  for (T& element : result) element = static_cast<T>(static_cast<double>(element) * scale);
  return result;
}

template <class T>
Deviation deviation(const T* x, Index n, double eps, bool subtracts_mean) {
  const std::size_t count = static_cast<std::size_t>(n);
  const double d = static_cast<double>(n);
  const auto of = [&](const T* elements, double scale) {
    Deviation result;
    result.scale = scale;
    if (subtracts_mean) result.mean = sum_run(elements, count) / d;
    const double variance = centered_squares_run(elements, count, result.mean) / d;
    // Scaled, eps itself may be out of range, its root is not.
    result.inverse = scale == 1 ? 1 / std::sqrt(variance + eps)
                                : 1 / std::hypot(std::sqrt(variance), std::sqrt(eps) * scale);
    return result;
  };
  const double scale = safe_scale(x, count, eps);
  return scale == 1 ? of(x, 1) : of(scaled(x, count, scale).data(), scale);
}

}  // namespace

void check_normalized(std::string_view operation, const Shape& x, double eps) {
  if (x.rank() == 0) {
    throw_shape_error(std::string(operation) +
                      ": x is a scalar, but it must have an axis to normalise along");
  }
  if (eps >= 0) return;
  throw_argument_error(std::string(operation) + ": eps is " + number_text(eps) +
                       ", but it must be at least 0");
}

void check_rms_norm(std::string_view operation, const Shape& x, double eps, bool lacks_weight) {
  check_normalized(operation, x, eps);
  if (!lacks_weight) return;
  throw_argument_error(std::string(operation) +
                       ": adds_one is set and there is no weight, but 1 is added to one");
}

template <class T>
AlongLastAxis<T>::AlongLastAxis(std::string_view operation, std::string_view name, const Shape& x,
                                const std::optional<TensorView<const T>>& vector) {
  if (!vector) return;
  const Shape& shape = vector->shape();
  const std::string start = std::string(operation) + ": x is " + to_string(x) + " and " +
                            std::string(name) + " is " + to_string(shape) + ", but ";
  if (shape.rank() != 1 || shape.size(0) != x.size(-1)) {
    throw_shape_error(start + std::string(name) + " must be a vector of " +
                      counted(x.size(-1), "element") + ", one along x's last axis");
  }
  const std::string& axis = x.name(-1);
  if (!axis.empty() && !shape.name(0).empty() && shape.name(0) != axis) {
    throw_shape_error(start + std::string(name) + "'s axis must be " + axis + ", x's last");
  }
  data_ = vector->data();
  if (vector->is_row_major()) return;
  copy_ = Tensor<T>(*vector);
  data_ = copy_.data();
}

template <class T>
Deviation layer_deviation(const T* x, Index n, double eps) {
  return deviation(x, n, eps, true);
}

template <class T>
Deviation rms_deviation(const T* x, Index n, double eps) {
  return deviation(x, n, eps, false);
}

template class AlongLastAxis<float>;
template class AlongLastAxis<double>;
template Deviation layer_deviation(const float*, Index, double);
template Deviation layer_deviation(const double*, Index, double);
template Deviation rms_deviation(const float*, Index, double);
template Deviation rms_deviation(const double*, Index, double);

}  // namespace detail

namespace {

template <class T, class Measure>
Tensor<T> normalized(TensorView<const T> x, const detail::NormalizeRun<T>& parameters,
                     const Measure& measure) {
  Tensor<T> result = Tensor<T>::uninitialized(x.shape());
  const Index n = x.size(-1);
  const std::size_t count = static_cast<std::size_t>(n);
  detail::for_rows(x, [&](Index row, const T* elements) {
    const detail::Deviation deviation = measure(elements, n);
    detail::NormalizeRun<T> run = parameters;
    run.mean = deviation.mean;
    run.inverse = deviation.inverse;
    T* const out = result.data() + row * n;
    if (deviation.scale == 1) {
      detail::normalize_run(elements, out, count, run);
    } else {
      const std::vector<T> scaled = detail::scaled(elements, count, deviation.scale);
      detail::normalize_run(scaled.data(), out, count, run);
    }
  });
  return result;
}

}  // namespace

template <class T>
Tensor<T> layer_norm(TensorView<const T> x, const LayerNormOptions<T>& options) {
  detail::check_normalized("layer_norm", x.shape(), options.eps);
  const detail::AlongLastAxis<T> weight("layer_norm", "weight", x.shape(), options.weight);
  const detail::AlongLastAxis<T> bias("layer_norm", "bias", x.shape(), options.bias);
  return normalized(x, {.weight = weight.data(), .bias = bias.data()},
                    [&](const T* elements, Index n) {
                      return detail::layer_deviation(elements, n, options.eps);
                    });
}

template <class T>
Tensor<T> rms_norm(TensorView<const T> x, const RmsNormOptions<T>& options) {
  detail::check_rms_norm("rms_norm", x.shape(), options.eps, options.adds_one && !options.weight);
  const detail::AlongLastAxis<T> weight("rms_norm", "weight", x.shape(), options.weight);
  return normalized(
      x, {.weight_shift = options.adds_one ? 1.0 : 0.0, .weight = weight.data()},
      [&](const T* elements, Index n) { return detail::rms_deviation(elements, n, options.eps); });
}

template Tensor<float> layer_norm(TensorView<const float>, const LayerNormOptions<float>&);
template Tensor<double> layer_norm(TensorView<const double>, const LayerNormOptions<double>&);
template Tensor<float> rms_norm(TensorView<const float>, const RmsNormOptions<float>&);
template Tensor<double> rms_norm(TensorView<const double>, const RmsNormOptions<double>&);

}  // namespace eckart

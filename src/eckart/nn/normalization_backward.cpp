#include "eckart/nn/normalization_backward.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/nn/normalization_checks.h"
#include "eckart/nn/rows.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

void check_output_gradient(std::string_view operation, const Shape& d_y, const Shape& x) {
  if (same_sizes(d_y, x)) return;
  throw_shape_error(std::string(operation) + ": d_y is " + to_string(d_y) + " and x is " +
                    to_string(x) + ", but both must have the same sizes");
}

template <class T>
struct NormGradients {
  Tensor<T> x;
  Tensor<T> weight;
  Tensor<T> bias;
};

template <class T>
struct NormCall {
  TensorView<const T> d_y;
  TensorView<const T> x;
  const T* weight = nullptr;
  double weight_shift = 0;
  bool subtracts_mean = false;
  double eps = 0;
};

// Sums over the vectors of one piece, in double.
struct PieceSums {
  std::vector<double> weight;
  std::vector<double> bias;
};

// The gradient by one vector of x; `unit` is x^ and `g` d_y times the weight, in double.
template <class T>
void gradient_of_row(const NormCall<T>& norm, double inverse, const std::vector<double>& unit,
                     const std::vector<double>& g, T* out) {
  const double n = static_cast<double>(unit.size());
  double mean = 0;
  double along = 0;
  for (std::size_t i = 0; i < unit.size(); ++i) {
    if (norm.subtracts_mean) mean += g[i];
    along += g[i] * unit[i];
  }
  mean /= n;
  along /= n;
  for (std::size_t i = 0; i < unit.size(); ++i) {
    out[i] = static_cast<T>((g[i] - mean - unit[i] * along) * inverse);
  }
}

template <class T>
PieceSums gradients_of_rows(const NormCall<T>& norm, Index begin, Index end, T* out) {
  const Index n = norm.x.size(-1);
  const std::size_t count = static_cast<std::size_t>(n);
  PieceSums sums{std::vector<double>(count, 0.0), std::vector<double>(count, 0.0)};
  std::vector<double> unit(count);
  std::vector<double> g(count);
  detail::Rows<T> x_rows(norm.x);
  detail::Rows<T> d_rows(norm.d_y);
  for (Index row = begin; row < end; ++row) {
    const T* const x = x_rows(row);
    const T* const d_y = d_rows(row);
    const detail::Deviation deviation = norm.subtracts_mean
                                            ? detail::layer_deviation(x, n, norm.eps)
                                            : detail::rms_deviation(x, n, norm.eps);
    for (std::size_t i = 0; i < count; ++i) {
      const double d = static_cast<double>(d_y[i]);
      unit[i] = (static_cast<double>(x[i]) * deviation.scale - deviation.mean) * deviation.inverse;
      g[i] = norm.weight == nullptr ? d
                                    : d * (static_cast<double>(norm.weight[i]) + norm.weight_shift);
      sums.weight[i] += d * unit[i];
      sums.bias[i] += d;
    }
    gradient_of_row(norm, deviation.inverse * deviation.scale, unit, g, out + row * n);
  }
  return sums;
}

// Vectors a piece, by the sizes alone: at most 64 pieces, whose sums are added in order.
Index rows_a_piece(Index n_rows, Index n) {
  return std::max(detail::rows_at_once(n), (n_rows + 63) / 64);
}

template <class T>
NormGradients<T> gradients_of(const NormCall<T>& norm) {
  const Index n = norm.x.size(-1);
  const Index n_rows = detail::row_count(norm.x);
  const Shape along = shape_with_names({n}, {norm.x.shape().name(-1)});
  NormGradients<T> result{Tensor<T>::uninitialized(norm.x.shape()), Tensor<T>(along),
                          Tensor<T>(along)};
  const Index piece = rows_a_piece(n_rows, n);
  std::vector<PieceSums> sums(static_cast<std::size_t>((n_rows + piece - 1) / piece));
  parallel_for(n_rows, piece, [&](Index begin, Index end) {
    sums[static_cast<std::size_t>(begin / piece)] =
        gradients_of_rows(norm, begin, end, result.x.data());
  });
  for (Index i = 0; i < n; ++i) {
    double weight = 0;
    double bias = 0;
    for (const PieceSums& of_piece : sums) {
      weight += of_piece.weight[static_cast<std::size_t>(i)];
      bias += of_piece.bias[static_cast<std::size_t>(i)];
    }
    result.weight(i) = static_cast<T>(weight);
    result.bias(i) = static_cast<T>(bias);
  }
  return result;
}

}  // namespace

template <class T>
LayerNormGradients<T> layer_norm_backward(TensorView<const T> d_y, TensorView<const T> x,
                                          const LayerNormOptions<T>& options) {
  constexpr std::string_view operation = "layer_norm_backward";
  detail::check_normalized(operation, x.shape(), options.eps);
  check_output_gradient(operation, d_y.shape(), x.shape());
  const detail::AlongLastAxis<T> weight(operation, "weight", x.shape(), options.weight);
  const detail::AlongLastAxis<T> bias(operation, "bias", x.shape(), options.bias);
  NormGradients<T> gradients = gradients_of(NormCall<T>{
      .d_y = d_y, .x = x, .weight = weight.data(), .subtracts_mean = true, .eps = options.eps});
  return {std::move(gradients.x), std::move(gradients.weight), std::move(gradients.bias)};
}

template <class T>
RmsNormGradients<T> rms_norm_backward(TensorView<const T> d_y, TensorView<const T> x,
                                      const RmsNormOptions<T>& options) {
  constexpr std::string_view operation = "rms_norm_backward";
  detail::check_rms_norm(operation, x.shape(), options.eps, options.adds_one && !options.weight);
  check_output_gradient(operation, d_y.shape(), x.shape());
  const detail::AlongLastAxis<T> weight(operation, "weight", x.shape(), options.weight);
  NormGradients<T> gradients =
      gradients_of(NormCall<T>{.d_y = d_y,
                               .x = x,
                               .weight = weight.data(),
                               .weight_shift = options.adds_one ? 1.0 : 0.0,
                               .eps = options.eps});
  return {std::move(gradients.x), std::move(gradients.weight)};
}

template LayerNormGradients<float> layer_norm_backward(TensorView<const float>,
                                                       TensorView<const float>,
                                                       const LayerNormOptions<float>&);
template LayerNormGradients<double> layer_norm_backward(TensorView<const double>,
                                                        TensorView<const double>,
                                                        const LayerNormOptions<double>&);
template RmsNormGradients<float> rms_norm_backward(TensorView<const float>, TensorView<const float>,
                                                   const RmsNormOptions<float>&);
template RmsNormGradients<double> rms_norm_backward(TensorView<const double>,
                                                    TensorView<const double>,
                                                    const RmsNormOptions<double>&);

}  // namespace eckart

#include "eckart/nn/softmax.h"

#include "eckart/core/broadcast.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/pieces.h"
#include "eckart/nn/hardmax.h"
#include "eckart/nn/softmax_simd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {
namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

enum class Result { weights, logarithms };

// A view stretched to x's sizes.
template <class U>
TensorView<const U> stretched(std::string_view operation, std::string_view name, const Shape& x,
                              const TensorView<const U>& view) {
  const Shape together = broadcast_shape(
      x, view.shape(), {.outer = true, .operation = operation, .left = "x", .right = name});
  if (!same_sizes(together, x)) {
    throw_shape_error(std::string(operation) + ": x is " + to_string(x) + " and " +
                      std::string(name) + " is " + to_string(view.shape()) + ", but " +
                      std::string(name) + " must broadcast to x, and not x to it");
  }
  return TensorView<const U>(view.data(), view.shape().without_names(), view.strides())
      .broadcast_to(x.without_names());
}

// Where the rows of a view along one axis begin.
class RowStarts {
 public:
  RowStarts(const Shape& shape, const std::vector<Index>& strides, Index axis) {
    for (Index i = shape.rank() - 1; i >= 0; --i) {
      if (i == axis) continue;
      sizes_.push_back(shape.size(i));
      strides_.push_back(strides[static_cast<std::size_t>(i)]);
    }
  }
  Index of(Index row) const {
    Index offset = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      offset += row % sizes_[i] * strides_[i];
      row /= sizes_[i];
    }
    return offset;
  }

 private:
  std::vector<Index> sizes_;  // innermost first
  std::vector<Index> strides_;
};

// One operand's rows along the axis; without data where it was not given.
template <class U>
struct RowsOf {
  const U* data = nullptr;
  RowStarts starts;
  Index stride = 0;

  RowsOf(const TensorView<const U>& view, Index axis)
      : data(view.data()),
        starts(view.shape(), view.strides(), axis),
        stride(view.strides()[static_cast<std::size_t>(axis)]) {}
};

// Copies a row's scores, divided by the temperature and with the bias, -infinity where one is
// hidden. The largest is subtracted before the division, so that nothing overflows.
template <class T>
class ScoreRow {
 public:
  ScoreRow(const RowsOf<T>& x, const std::optional<RowsOf<T>>& bias,
           const std::optional<RowsOf<bool>>& mask, double temperature)
      : x_(x), bias_(bias), mask_(mask), temperature_(static_cast<T>(temperature)) {}

  bool is_hard() const { return temperature_ == 0; }

  void write(Index row, Index n, T* scores) const {
    const T* const x = x_.data + x_.starts.of(row);
    const bool* const mask = mask_ ? mask_->data + mask_->starts.of(row) : nullptr;
    const T* const bias = bias_ ? bias_->data + bias_->starts.of(row) : nullptr;
    for (Index i = 0; i < n; ++i) {
      T score = x[i * x_.stride];
      if (mask != nullptr && !mask[i * mask_->stride]) score = -infinity<T>;
      if (bias != nullptr && bias[i * bias_->stride] == -infinity<T>) score = -infinity<T>;
      scores[i] = score;
    }
    if (temperature_ != 0 && temperature_ != 1) divide(scores, n);
    if (bias == nullptr) return;
    for (Index i = 0; i < n; ++i) {
      if (scores[i] == -infinity<T>) continue;
      // At temperature 0 no bias matters that is a number.
      const T term = bias[i * bias_->stride];
      scores[i] += is_hard() ? term - term : term;
    }
  }

 private:
  void divide(T* scores, Index n) const {
    T most = -infinity<T>;
    for (Index i = 0; i < n; ++i) most = scores[i] > most ? scores[i] : most;
    if (!std::isfinite(most)) return;  // all hidden, or lost anyway
    const bool is_uniform = temperature_ == infinity<T>;
    for (Index i = 0; i < n; ++i) {
      if (scores[i] == -infinity<T>) continue;
      const T distance = scores[i] - most;
      scores[i] = is_uniform ? (scores[i] - scores[i]) : distance / temperature_;
    }
  }

  const RowsOf<T>& x_;
  const std::optional<RowsOf<T>>& bias_;
  const std::optional<RowsOf<bool>>& mask_;
  T temperature_;
};

template <class T>
Tensor<T> rows_to(Result result, std::string_view operation, TensorView<const T> x,
                  const SoftmaxOptions<T>& options) {
  if (!(options.temperature >= 0)) {
    throw_argument_error(std::string(operation) + ": the temperature is " +
                             number_text(options.temperature) + ", but it must be at least 0",
                         "0 gives all weight to the largest score, infinity the same to each");
  }
  const Index axis = options.axis.in(x.shape());
  const RowsOf<T> of_x(x, axis);
  std::optional<RowsOf<T>> of_bias;
  std::optional<RowsOf<bool>> of_mask;
  if (options.bias) of_bias.emplace(stretched(operation, "bias", x.shape(), *options.bias), axis);
  if (options.mask) of_mask.emplace(stretched(operation, "mask", x.shape(), *options.mask), axis);
  const ScoreRow<T> score_row(of_x, of_bias, of_mask, options.temperature);
  Tensor<T> out = Tensor<T>::uninitialized(x.shape());
  if (out.count() == 0) return out;
  const Index n = x.size(axis);
  const RowsOf<T> of_out(TensorView<const T>(out.view()), axis);
  const auto write_row = [&](Index row, std::vector<T>& copy) {
    T* const to = out.data() + of_out.starts.of(row);
    T* const scores = of_out.stride == 1 ? to : copy.data();
    score_row.write(row, n, scores);
    if (score_row.is_hard()) {
      detail::harden_row(scores, n, -infinity<T>,
                         result == Result::weights ? detail::HardValues<T>{1, 0}
                                                   : detail::HardValues<T>{0, -infinity<T>});
    } else if (result == Result::weights) {
      detail::softmax_row(scores, n, -infinity<T>);
    } else {
      detail::log_softmax_row(scores, n);
    }
    if (scores == to) return;
    for (Index i = 0; i < n; ++i) to[i * of_out.stride] = scores[i];
  };
  parallel_for(out.count() / n, std::max<Index>(1, detail::piece_elements / n),
               [&](Index begin, Index end) {
                 std::vector<T> copy(of_out.stride == 1 ? 0 : static_cast<std::size_t>(n));
                 for (Index row = begin; row < end; ++row) write_row(row, copy);
               });
  return out;
}

}  // namespace

template <class T>
Tensor<T> softmax(TensorView<const T> x, const SoftmaxOptions<T>& options) {
  return rows_to(Result::weights, "softmax", x, options);
}

template <class T>
Tensor<T> log_softmax(TensorView<const T> x, const SoftmaxOptions<T>& options) {
  return rows_to(Result::logarithms, "log_softmax", x, options);
}

template Tensor<float> softmax(TensorView<const float>, const SoftmaxOptions<float>&);
template Tensor<double> softmax(TensorView<const double>, const SoftmaxOptions<double>&);
template Tensor<float> log_softmax(TensorView<const float>, const SoftmaxOptions<float>&);
template Tensor<double> log_softmax(TensorView<const double>, const SoftmaxOptions<double>&);

}  // namespace eckart

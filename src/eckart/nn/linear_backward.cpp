#include "eckart/nn/linear_backward.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/elementwise.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/reduce.h"

#include <string>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

// All leading axes as one, copied where the elements don't lie in order. Names are left out: the
// axes that are summed over were checked before.
template <class T>
class AsMatrix {
 public:
  explicit AsMatrix(TensorView<const T> view) {
    const Index n = view.size(-1);
    Index rows = 1;
    for (Index axis = 0; axis + 1 < view.rank(); ++axis) rows *= view.size(axis);
    const Shape shape{rows, n};
    const TensorView<const T> bare(view.data(), view.shape().without_names(), view.strides());
    if (bare.rank() == 2) {
      matrix_ = bare;
    } else if (bare.is_row_major()) {
      matrix_ = bare.reshape(shape);
    } else {
      copy_ = Tensor<T>(bare).reshaped(shape);
      matrix_ = std::as_const(copy_).view();
    }
  }

  TensorView<const T> view() const { return matrix_; }

 private:
  Tensor<T> copy_;
  TensorView<const T> matrix_;
};

template <class T>
TensorView<const T> bare(TensorView<const T> view) {
  return TensorView<const T>(view.data(), view.shape().without_names(), view.strides());
}

bool names_differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

// One array and what it is called.
struct Named {
  std::string_view name;
  const Shape& shape;
};

// Both have the same axes but for the last.
void check_rows(std::string_view operation, const Named& a, const Named& b) {
  bool fits = a.shape.rank() > 0 && a.shape.rank() == b.shape.rank();
  for (Index axis = 0; fits && axis + 1 < a.shape.rank(); ++axis) {
    fits = a.shape.size(axis) == b.shape.size(axis) &&
           !names_differ(a.shape.name(axis), b.shape.name(axis));
  }
  if (fits) return;
  throw_shape_error(std::string(operation) + ": " + std::string(a.name) + " is " +
                    to_string(a.shape) + " and " + std::string(b.name) + " is " +
                    to_string(b.shape) + ", but both must have the same axes but for the last");
}

// The last axis of `a` is the given axis of the matrix `m`.
void check_columns(std::string_view operation, const Named& a, const Named& m, Index axis) {
  check_matrix(operation, m.name, m.shape);
  if (a.shape.size(-1) == m.shape.size(axis) &&
      !names_differ(a.shape.name(-1), m.shape.name(axis))) {
    return;
  }
  throw_shape_error(std::string(operation) + ": " + std::string(a.name) + " is " +
                    to_string(a.shape) + " and " + std::string(m.name) + " is " +
                    to_string(m.shape) + ", but " + std::string(a.name) + "'s last axis must be " +
                    std::string(m.name) + (axis == 0 ? "'s rows" : "'s columns"));
}

// The same elements under another shape of that many, names included.
template <class T>
Tensor<T> shaped(Tensor<T> tensor, const Shape& shape) {
  tensor = std::move(tensor).reshaped(shape.without_names());
  return shape.has_names() ? std::move(tensor).named(shape.names()) : std::move(tensor);
}

template <class T>
Tensor<T> scaled(Tensor<T> tensor, double scale) {
  return scale == 1 ? std::move(tensor) : multiply(tensor, scale);
}

template <class T>
void check_factors(std::string_view operation, const Shape& x, const LoraFactors<T>& factors) {
  check_columns(operation, {"x", x}, {"lora_a", factors.lora_a.shape()}, 0);
  check_columns(operation, {"lora_a", factors.lora_a.shape()}, {"lora_b", factors.lora_b.shape()},
                0);
}

}  // namespace

template <class T>
LinearGradients<T> linear_backward(TensorView<const T> d_y, TensorView<const T> x,
                                   TensorView<const T> w) {
  constexpr std::string_view operation = "linear_backward";
  check_rows(operation, {"d_y", d_y.shape()}, {"x", x.shape()});
  check_columns(operation, {"x", x.shape()}, {"w", w.shape()}, 0);
  check_columns(operation, {"d_y", d_y.shape()}, {"w", w.shape()}, 1);
  const AsMatrix<T> rows_x(x);
  const AsMatrix<T> rows_d(d_y);
  const Shape columns = shape_with_names({w.size(1)}, {w.shape().name(1)});
  return {shaped(matmul(rows_d.view(), bare(w).transpose()), x.shape()),
          shaped(matmul(rows_x.view().transpose(), rows_d.view()), w.shape()),
          shaped(sum(rows_d.view(), {.axes = {0}}), columns)};
}

template <class T>
Tensor<T> lora_linear(TensorView<const T> x, TensorView<const T> w, const LoraFactors<T>& factors) {
  constexpr std::string_view operation = "lora_linear";
  if (x.rank() == 0)
    throw_shape_error("lora_linear: x is a scalar, but its last axis must be d_in");
  check_factors(operation, x.shape(), factors);
  check_columns(operation, {"lora_b", factors.lora_b.shape()}, {"w", w.shape()}, 1);
  Tensor<T> y = linear(x, w);
  const AsMatrix<T> rows(x);
  const Tensor<T> narrow = scaled(matmul(rows.view(), bare(factors.lora_a)), factors.scale);
  const Tensor<T> change = matmul(narrow.view(), bare(factors.lora_b));
  for (Index i = 0; i < y.count(); ++i) y.data()[i] += change.data()[i];
  return y;
}

template <class T>
LoraGradients<T> lora_backward(TensorView<const T> d_y, TensorView<const T> x,
                               const LoraFactors<T>& factors) {
  constexpr std::string_view operation = "lora_backward";
  check_rows(operation, {"d_y", d_y.shape()}, {"x", x.shape()});
  check_factors(operation, x.shape(), factors);
  check_columns(operation, {"d_y", d_y.shape()}, {"lora_b", factors.lora_b.shape()}, 1);
  const AsMatrix<T> rows_x(x);
  const AsMatrix<T> rows_d(d_y);
  const Tensor<T> back =
      scaled(matmul(rows_d.view(), bare(factors.lora_b).transpose()), factors.scale);
  const Tensor<T> narrow = scaled(matmul(rows_x.view(), bare(factors.lora_a)), factors.scale);
  return {shaped(matmul(rows_x.view().transpose(), back.view()), factors.lora_a.shape()),
          shaped(matmul(narrow.view().transpose(), rows_d.view()), factors.lora_b.shape())};
}

template LinearGradients<float> linear_backward(TensorView<const float>, TensorView<const float>,
                                                TensorView<const float>);
template LinearGradients<double> linear_backward(TensorView<const double>, TensorView<const double>,
                                                 TensorView<const double>);
template Tensor<float> lora_linear(TensorView<const float>, TensorView<const float>,
                                   const LoraFactors<float>&);
template Tensor<double> lora_linear(TensorView<const double>, TensorView<const double>,
                                    const LoraFactors<double>&);
template LoraGradients<float> lora_backward(TensorView<const float>, TensorView<const float>,
                                            const LoraFactors<float>&);
template LoraGradients<double> lora_backward(TensorView<const double>, TensorView<const double>,
                                             const LoraFactors<double>&);

}  // namespace eckart

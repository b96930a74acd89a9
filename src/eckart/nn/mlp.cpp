#include "eckart/nn/mlp.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/nn/activations_simd.h"
#include "eckart/nn/rows.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace eckart {
namespace {

std::string is(std::string_view name, const Shape& shape) {
  return std::string(name) + " is " + to_string(shape);
}

bool names_differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

// A bias with one element for each column of the matrix it stands beside.
template <class T>
void check_bias(std::string_view matrix_name, TensorView<const T> matrix, std::string_view name,
                const std::optional<TensorView<const T>>& bias) {
  if (!bias) return;
  const Shape& shape = bias->shape();
  if (shape.rank() == 1 && shape.size(0) == matrix.size(1) &&
      !names_differ(shape.name(0), matrix.shape().name(1))) {
    return;
  }
  throw_shape_error("mlp: " + is(matrix_name, matrix.shape()) + " and " + is(name, shape) +
                    ", but " + std::string(name) + " must have an element for each of " +
                    std::string(matrix_name) + "'s " + counted(matrix.size(1), "column"));
}

template <class T>
void check_weights(const Mlp<T>& weights) {
  check_matrix("mlp", "w_up", weights.w_up.shape());
  check_matrix("mlp", "w_down", weights.w_down.shape());
  const Shape& up = weights.w_up.shape();
  const Shape& down = weights.w_down.shape();
  if (up.size(1) != down.size(0) || names_differ(up.name(1), down.name(0))) {
    const bool fits = up.size(1) == down.size(1) && !names_differ(up.name(1), down.name(1));
    throw_shape_error("mlp: " + is("w_up", up) + " and " + is("w_down", down) +
                          ", but w_down must have a row for each of w_up's " +
                          counted(up.size(1), "column"),
                      fits ? "with w_down transposed it fits" : "");
  }
  if (weights.w_gate) {
    const Shape& gate = weights.w_gate->shape();
    const bool fits = same_sizes(gate, up) && !names_differ(gate.name(0), up.name(0)) &&
                      !names_differ(gate.name(1), up.name(1));
    if (!fits) {
      throw_shape_error("mlp: " + is("w_up", up) + " and " + is("w_gate", gate) +
                        ", but both must have the same shape");
    }
    check_bias<T>("w_gate", *weights.w_gate, "b_gate", weights.b_gate);
  } else if (weights.b_gate) {
    throw_argument_error("mlp: there is a b_gate and no w_gate, but it is added to x w_gate");
  }
  check_bias<T>("w_up", weights.w_up, "b_up", weights.b_up);
  check_bias<T>("w_down", weights.w_down, "b_down", weights.b_down);
}

template <class T>
void add_to(T* row, Index n, const std::optional<TensorView<const T>>& bias) {
  if (!bias) return;
  for (Index i = 0; i < n; ++i) row[i] += (*bias)(i);
}

// What stands between the products, row by row while it is in the cache: `up` becomes what w_down is
// multiplied with.
template <class T>
void activate_rows(Tensor<T>& up, Tensor<T>* gate, const Mlp<T>& weights) {
  if (up.count() == 0) return;
  const Index n = up.size(-1);
  const std::size_t count = static_cast<std::size_t>(n);
  parallel_for(up.count() / n, detail::rows_at_once(n), [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      T* const out = up.data() + row * n;
      add_to(out, n, weights.b_up);
      if (gate == nullptr) {
        detail::activate_run(weights.activation, out, out, count);
        continue;
      }
      T* const gates = gate->data() + row * n;
      add_to(gates, n, weights.b_gate);
      detail::activate_run(weights.activation, gates, gates, count);
      for (Index i = 0; i < n; ++i) out[i] *= gates[i];
    }
  });
}

}  // namespace

template <class T>
Tensor<T> mlp(TensorView<const T> x, const Mlp<T>& weights) {
  check_weights(weights);
  const auto product = [](TensorView<const T> left, TensorView<const T> right,
                          std::string_view name) {
    return matmul(left, right, {.operation = "mlp", .left = "x", .right = name});
  };
  Tensor<T> up = product(x, weights.w_up, "w_up");
  if (weights.w_gate) {
    Tensor<T> gate = product(x, *weights.w_gate, "w_gate");
    activate_rows(up, &gate, weights);
  } else {
    activate_rows<T>(up, nullptr, weights);
  }
  if (weights.b_down)
    return linear(TensorView<const T>(up.view()), weights.w_down, *weights.b_down);
  return linear(TensorView<const T>(up.view()), weights.w_down);
}

template Tensor<float> mlp(TensorView<const float>, const Mlp<float>&);
template Tensor<double> mlp(TensorView<const double>, const Mlp<double>&);

}  // namespace eckart

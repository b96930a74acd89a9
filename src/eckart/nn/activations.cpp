#include "eckart/nn/activations.h"

#include "eckart/core/parallel.h"
#include "eckart/linalg/pieces.h"
#include "eckart/nn/activations_simd.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace eckart {
namespace {

// Our names first, then those that config.json has for the same function.
constexpr std::array<std::pair<std::string_view, Activation>, 16> names = {{
    {"relu", Activation::relu},
    {"gelu", Activation::gelu},
    {"gelu_tanh", Activation::gelu_tanh},
    {"quick_gelu", Activation::quick_gelu},
    {"silu", Activation::silu},
    {"relu_squared", Activation::relu_squared},
    {"tanh", Activation::tanh},
    {"sigmoid", Activation::sigmoid},
    {"gelu_python", Activation::gelu},
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_python_tanh", Activation::gelu_tanh},
    {"gelu_accurate", Activation::gelu_tanh},
    {"swish", Activation::silu},
    {"relu2", Activation::relu_squared},
}};

template <class T>
void activate_all(const T* x, T* out, Index n, Activation activation) {
  parallel_for(n, detail::piece_elements, [&](Index begin, Index end) {
    detail::activate_run(activation, x + begin, out + begin, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

std::string_view to_string(Activation activation) {
  return std::find_if(names.begin(), names.end(),
                      [&](const auto& name) { return name.second == activation; })
      ->first;
}

std::optional<Activation> parse_activation(std::string_view name) {
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const auto& known) { return known.first == name; });
  if (found == names.end()) return std::nullopt;
  return found->second;
}

template <class T>
Tensor<T> activate(TensorView<const T> x, Activation activation) {
  if (x.is_row_major()) {
    Tensor<T> result = Tensor<T>::uninitialized(x.shape());
    activate_all(x.data(), result.data(), x.count(), activation);
    return result;
  }
  Tensor<T> result(x);
  activate_in_place(result.view(), activation);
  return result;
}

template <class T>
void activate_in_place(TensorView<T> x, Activation activation) {
  if (x.is_row_major()) {
    activate_all<T>(x.data(), x.data(), x.count(), activation);
    return;
  }
  Tensor<T> copy(x);
  activate_in_place(copy.view(), activation);
  for_each_element([](T& to, const T& from) { to = from; }, x,
                   TensorView<const T>(std::as_const(copy).view()));
}

template Tensor<float> activate(TensorView<const float>, Activation);
template Tensor<double> activate(TensorView<const double>, Activation);
template void activate_in_place(TensorView<float>, Activation);
template void activate_in_place(TensorView<double>, Activation);

}  // namespace eckart

// What stands between the two products of an MLP.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <optional>
#include <string_view>

namespace eckart {

enum class Activation {
  relu,          // max(x, 0)
  gelu,          // x Phi(x), Phi the normal distribution
  gelu_tanh,     // its approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  quick_gelu,    // x sigmoid(1.702 x)
  silu,          // x sigmoid(x), also called swish
  relu_squared,  // max(x, 0)^2
  tanh,
  sigmoid,  // 1 / (1 + e^-x)
};

/// `relu`, `gelu_tanh`, …: the enumerator's name.
std::string_view to_string(Activation activation);
/// The activation of that name, by ours or as config.json spells it (`gelu_new`,
/// `gelu_pytorch_tanh`, `gelu_fast`, `swish`, `relu2`, …), or nothing.
std::optional<Activation> parse_activation(std::string_view name);

/// The activation of each element of x, an array of any shape. T is float or double.
/// Returns the shape of x, names included.
/// Cost: one pass, with vector instructions; 0.3 (relu) to 6 ns (gelu) an element and core.
/// Accuracy: computed in double. Floats are rounded once, correctly but for one in 1e7 or so; doubles
/// are off by 8 eps of the result, also far out where it is tiny, and by eps of an exponential's
/// argument more where that is rounded itself (quick_gelu |x|, gelu_tanh 3 |x + 0.044715 x^3|). The
/// limit at infinities; NaN of NaN.
/// References: Hendrycks, Gimpel, "Gaussian error linear units", arXiv 1606.08415; So et al.,
/// "Primer", arXiv 2109.08668 (relu_squared).
template <class T>
Tensor<T> activate(TensorView<const T> x, Activation activation);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> activate(const A& x, Activation activation) {
  return activate(detail::read_only(x), activation);
}

/// The same in the place of x.
template <class T>
void activate_in_place(TensorView<T> x, Activation activation);
template <class T>
void activate_in_place(Tensor<T>& x, Activation activation) {
  activate_in_place(x.view(), activation);
}

/// The same by name: `gelu(x)` is `activate(x, Activation::gelu)`.
template <detail::ArrayLike A>
Tensor<detail::Element<A>> relu(const A& x) {
  return activate(detail::read_only(x), Activation::relu);
}
template <detail::ArrayLike A>
Tensor<detail::Element<A>> gelu(const A& x) {
  return activate(detail::read_only(x), Activation::gelu);
}
template <detail::ArrayLike A>
Tensor<detail::Element<A>> gelu_tanh(const A& x) {
  return activate(detail::read_only(x), Activation::gelu_tanh);
}
template <detail::ArrayLike A>
Tensor<detail::Element<A>> quick_gelu(const A& x) {
  return activate(detail::read_only(x), Activation::quick_gelu);
}
template <detail::ArrayLike A>
Tensor<detail::Element<A>> silu(const A& x) {
  return activate(detail::read_only(x), Activation::silu);
}
template <detail::ArrayLike A>
Tensor<detail::Element<A>> relu_squared(const A& x) {
  return activate(detail::read_only(x), Activation::relu_squared);
}
template <detail::ArrayLike A>
Tensor<detail::Element<A>> tanh(const A& x) {
  return activate(detail::read_only(x), Activation::tanh);
}
template <detail::ArrayLike A>
Tensor<detail::Element<A>> sigmoid(const A& x) {
  return activate(detail::read_only(x), Activation::sigmoid);
}

}  // namespace eckart

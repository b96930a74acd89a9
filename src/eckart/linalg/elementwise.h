// Arithmetic on arrays, element by element.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <type_traits>

namespace eckart {

struct ElementwiseOptions {
  /// Allow both operands to be stretched: 3 with 3x1 gives the 3x3 table of all pairs.
  bool outer = false;
};

namespace detail {

enum class Arithmetic { add, subtract, multiply, divide };

template <class T>
Tensor<T> elementwise(Arithmetic operation, TensorView<const T> a, TensorView<const T> b,
                      const ElementwiseOptions& options);

template <class A>
concept Number = std::is_arithmetic_v<A>;

/// Two arrays of one element type, or an array and a number.
template <class A, class B>
concept Operands = (ArrayLike<A> && ArrayLike<B> && std::is_same_v<Element<A>, Element<B>>) ||
                   (ArrayLike<A> && Number<B>) || (Number<A> && ArrayLike<B>);

template <class A, class B>
struct ElementOfEither {
  using type = Element<A>;
};
template <Number A, class B>
struct ElementOfEither<A, B> {
  using type = Element<B>;
};

template <class A, class B>
requires Operands<A, B>
auto arithmetic(Arithmetic operation, const A& a, const B& b, const ElementwiseOptions& options) {
  using T = typename ElementOfEither<A, B>::type;
  if constexpr (Number<A>) {
    const T number = static_cast<T>(a);
    return elementwise<T>(operation, TensorView<const T>(&number, Shape{}), b, options);
  } else if constexpr (Number<B>) {
    const T number = static_cast<T>(b);
    return elementwise<T>(operation, a, TensorView<const T>(&number, Shape{}), options);
  } else {
    return elementwise<T>(operation, a, b, options);
  }
}

}  // namespace detail

/// a + b, a - b, a * b or a / b for each pair of elements. a and b are arrays (Tensor or view) of
/// float or of double, whose shapes broadcast (see `broadcast_shape`), or one is a number, which is
/// rounded to the other's type.
/// Returns the shape that both are stretched to, with the names of both. Cost: one pass.
/// Accuracy: correctly rounded; division by zero gives infinity or NaN as IEEE 754 has it.
/// Throws ShapeError when sizes or names disagree, or when both would be stretched and
/// `options.outer` is false.
template <class A, class B>
requires detail::Operands<A, B>
auto add(const A& a, const B& b, const ElementwiseOptions& options = {}) {
  return detail::arithmetic(detail::Arithmetic::add, a, b, options);
}
template <class A, class B>
requires detail::Operands<A, B>
auto subtract(const A& a, const B& b, const ElementwiseOptions& options = {}) {
  return detail::arithmetic(detail::Arithmetic::subtract, a, b, options);
}
template <class A, class B>
requires detail::Operands<A, B>
auto multiply(const A& a, const B& b, const ElementwiseOptions& options = {}) {
  return detail::arithmetic(detail::Arithmetic::multiply, a, b, options);
}
template <class A, class B>
requires detail::Operands<A, B>
auto divide(const A& a, const B& b, const ElementwiseOptions& options = {}) {
  return detail::arithmetic(detail::Arithmetic::divide, a, b, options);
}

}  // namespace eckart

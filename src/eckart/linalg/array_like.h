// What an operation on read-only views also takes: a Tensor, or a view that could be written. From
// neither can a template deduce the T of a `TensorView<const T>`.
#pragma once

#include "eckart/core/tensor_view.h"

#include <type_traits>

namespace eckart::detail {

template <class A>
using Element = typename A::value_type;

template <class A>
concept ArrayLike = std::is_convertible_v<const A&, TensorView<const Element<A>>>;

template <class A>
inline constexpr bool is_read_only_view = std::is_same_v<A, TensorView<const Element<A>>>;

/// Arrays of one element type, at least one of which is not a read-only view already.
template <class A, class... Others>
concept Arrays = ArrayLike<A> &&(ArrayLike<Others>&&...) &&
                 (std::is_same_v<Element<A>, Element<Others>> && ...) &&
                 !(is_read_only_view<A> && (is_read_only_view<Others> && ...));

template <class A>
TensorView<const Element<A>> read_only(const A& a) {
  return a;
}

}  // namespace eckart::detail

// NaN and infinities are reported where they stand before any factorisation starts: LAPACK would
// return NaN everywhere, or never return.
#pragma once

#include "eckart/core/tensor_view.h"

#include <string_view>

namespace eckart {

/// Throws ArgumentError unless every element of `a` is finite, naming the first that is not, in
/// row-major order, with its position from 0: `svd: a has a NaN at (3, 7), but …`. `operation` and
/// `name` are how the message calls the operation and the array. T is float or double.
/// Cost: one pass over `a`.
template <class T>
void check_finite(std::string_view operation, std::string_view name, TensorView<const T> a);

}  // namespace eckart

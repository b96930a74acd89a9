// Cholesky's factor for the operations that stand on it. Internal.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

#include <string>
#include <string_view>

namespace eckart {

/// l of a = l l^T, row-major, 0 above the diagonal. `a` is square and finite. Throws ArgumentError,
/// with the hint, when it is not symmetric or not positive definite.
template <class T>
Tensor<T> factor_positive_definite(std::string_view operation, TensorView<const T> a,
                                   const std::string& hint);

}  // namespace eckart

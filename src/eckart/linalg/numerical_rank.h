// How many singular values count, and a basis of the null space. Internal.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/rank.h"
#include "eckart/linalg/svd.h"

#include <string_view>

namespace eckart {

/// Throws ArgumentError unless the tolerance, where there is one, is finite and at least 0.
void check_tolerance(std::string_view operation, const RankOptions& options);

/// The number of values of `s` (descending, of a matrix of this shape) above the tolerance.
template <class T>
Index numerical_rank(TensorView<const T> s, const Shape& shape, const RankOptions& options);

/// The largest over the smallest value, infinity when the rank is below the number of values.
template <class T>
T condition_of(TensorView<const T> s, Index rank);

/// An orthonormal basis (n x (n - rank)) of what is orthogonal to the first `rank` rows of vt.
template <class T>
Tensor<T> null_space_of(const Svd<T>& factors, Index rank);

}  // namespace eckart

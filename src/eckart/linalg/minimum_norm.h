// Least squares from factors that are there already. Internal.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/svd.h"

namespace eckart {

/// v diag(1 / s) u^T b from the first `rank` components: the minimum-norm answer, n x n_rhs.
template <class T>
Tensor<T> minimum_norm(const Svd<T>& factors, Index rank, TensorView<const T> b);

/// ||b - a x|| for b m x n_rhs and x n x n_rhs; it neither overflows nor underflows on the way.
template <class T>
T residual_norm(TensorView<const T> a, TensorView<const T> x, TensorView<const T> b);

/// The Euclidean norm of all elements, without overflow or underflow on the way.
template <class T>
T euclidean_norm(TensorView<const T> a);

/// The shape of the x for which a x is like b, with the names of both.
Shape answer_shape(const Shape& a, const Shape& b);

}  // namespace eckart

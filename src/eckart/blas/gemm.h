// Products of matrices on all cores. Every piece of a result is computed in one order of sums, so
// that results do not depend on the number of threads.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

namespace eckart::blas {

/// c := alpha a b + beta c, with a m x k, b k x n, c m x n, any strides (where neither stride of an
/// operand is 1 it is packed first). With beta = 0, c is not read. c overlaps neither a nor b.
/// T is float or double. Cost: 2 m n k FLOPs. The sizes are the caller's to check.
template <class T>
void gemm(T alpha, TensorView<const T> a, TensorView<const T> b, T beta, TensorView<T> c);

/// y := alpha a x + beta y, with a m x n, x n, y m, any strides. T is float or double.
template <class T>
void gemv(T alpha, TensorView<const T> a, TensorView<const T> x, T beta, TensorView<T> y);

/// a^T a (n x n, both triangles) of an m x n matrix, accumulated in double: products of two floats
/// are exact there. Cost: m n^2 double FLOPs, memory for 1024 rows in double beside the result.
template <class T>
Tensor<double> gram(TensorView<const T> a);

}  // namespace eckart::blas

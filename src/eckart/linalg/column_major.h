// LAPACK's layout. Internal.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

namespace eckart {

/// A row-major copy of the transpose of the matrix `a` (m x n gives n x m): the memory is `a` in
/// columns, m elements apart, as LAPACK takes it. Of `a.transpose()` it is a row-major copy of `a`.
/// Both ways it moves blocks that fit the cache, on all cores. T is float or double.
template <class T>
Tensor<T> transposed_copy(TensorView<const T> a);

/// A row-major copy of a matrix, fast for every layout.
template <class T>
Tensor<T> row_major_copy(TensorView<const T> a) {
  Tensor<T> copy = transposed_copy(a.transpose());
  return copy;
}

/// A vector or a matrix as a matrix: a vector becomes one column.
template <class T>
TensorView<const T> as_columns(TensorView<const T> b) {
  if (b.rank() == 2) return b;
  return TensorView<const T>(b.data(), Shape{b.size(0), 1}, {b.strides()[0], 1});
}

}  // namespace eckart

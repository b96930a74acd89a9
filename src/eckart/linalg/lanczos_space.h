// The Krylov space of a block of random vectors, and the matrix in it. Included by the library
// alone.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/spectral_density.h"

namespace eckart::detail {

/// V, orthonormal, whose first columns span the random vectors, and T = V^T B V. All scaled: B is
/// A^T A / scale^2 (or A A^T).
struct LanczosSpace {
  Index size = 0;            // rows of V
  Index dimension = 0;       // columns of V
  Index before_last = 0;     // the dimension without the last block
  Tensor<double> projected;  // T, dimension x dimension
  Tensor<double> start;      // V1^T Omega: what the random vectors are in the first block
  /// W^T W of the residual behind the last block: B V - V T = [0 … 0 W].
  Tensor<double> residual;
  double scale = 1;
  Index passes = 0;
  bool is_exhausted = false;
};

/// Eigenvalues (ascending) of a symmetric matrix, which becomes its eigenvectors, one a row. On one
/// thread: OpenBLAS rounds otherwise on each number of threads.
void eigenvectors_of(Tensor<double>& matrix, double* values);

template <class T>
LanczosSpace lanczos_space(const LinearOperator<T>& a, const QuadratureOptions& options);

}  // namespace eckart::detail

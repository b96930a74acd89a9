// The Krylov space of a block of random vectors, and the matrix in it. Included by the library
// alone.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/spectral_density.h"

namespace eckart::detail {

/// V, orthonormal, whose first columns span the random vectors, and T = V^T B V. All scaled: B is
/// A^T A / scale^2 (or A A^T).
struct BlockKrylov {
  Index size = 0;            // rows of V
  Index dimension = 0;       // columns of V
  Index before_last = 0;     // the dimension without the last block
  Tensor<double> projected;  // T, dimension x dimension
  Tensor<double> start;      // V1^T Omega: what the random vectors are in the first block
  /// W^T W of the residual behind the last block and the block before it: B V - V T = [0 … 0 W].
  Tensor<double> last_residual;
  Tensor<double> earlier_residual;
  double scale = 1;
  Index passes = 0;
  bool is_exhausted = false;
};

template <class T>
BlockKrylov block_krylov(const BlockOperator<T>& a, const QuadratureOptions& options);

}  // namespace eckart::detail

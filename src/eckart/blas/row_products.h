// Products of blocks of rows, for loops that cut their work into pieces by their own rules: BLAS on
// one thread, without the packing and the pieces of `gemm`. Their callers are inside
// `with_own_threads` (threads.h). T is float or double.
#pragma once

#include "eckart/core/shape.h"

namespace eckart::blas {

/// c := a^T a on and below the diagonal (n x n, row-major, without gaps) of a row-major a (m x n,
/// without gaps). Cost: m n^2 FLOPs, for a large n on all threads unless in a piece of a loop.
template <class T>
void gram_lower(Index m, Index n, const T* a, T* c);

/// Row-major matrices: a (m x k), b (n x k) and c (m x n), their rows lda, ldb and ldc apart.
template <class T>
struct RowProduct {
  Index m = 0, n = 0, k = 0;
  const T* a = nullptr;
  Index lda = 0;
  const T* b = nullptr;
  Index ldb = 0;
  T* c = nullptr;
  Index ldc = 0;
};
/// c := a b^T on the thread that calls. Cost: 2 m n k FLOPs.
template <class T>
void multiply_rows(const RowProduct<T>& product);

}  // namespace eckart::blas

// Products of a large float matrix with a few columns: what block methods for singular values
// spend their time on, and where BLAS libraries, made for square products, reach half their speed.
#pragma once

#include "eckart/core/shape.h"

namespace eckart::blas {

/// Columns of a result up to which `skinny_gemm` is the faster way.
constexpr Index skinny_columns = 128;

/// c := alpha a x (or alpha a^T x) + beta c on all cores, for row-major float matrices: a is stored
/// m x k (k x m where `transposed`) with rows `lda` apart, x is k x n with rows `ldx` apart, c is
/// m x n with rows `ldc` apart. Every element of c is summed in the order of k, in pieces of one
/// fixed length, whatever the number of threads. With beta = 0, c is not read.
struct SkinnyProduct {
  Index m = 0, n = 0, k = 0;
  float alpha = 1;
  const float* a = nullptr;
  Index lda = 0;
  bool transposed = false;
  const float* x = nullptr;
  Index ldx = 0;
  float beta = 0;
  float* c = nullptr;
  Index ldc = 0;
};
void skinny_gemm(const SkinnyProduct& product);

}  // namespace eckart::blas

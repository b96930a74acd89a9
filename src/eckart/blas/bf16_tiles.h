// Products of numbers rounded to bf16 on the processor's matrix tiles (Intel AMX), summed in float:
// some ten times the rate of float products, and good to two or three figures.
#pragma once

#include "eckart/core/shape.h"

#include <functional>

namespace eckart::blas {

/// Whether this processor and system have tiles for bf16.
bool has_bf16_tiles();

/// Rows of a matrix: `stride` floats from one to the next.
struct FloatRows {
  const float* data = nullptr;
  Index stride = 0;
};
/// Gives rows [first, first + count), where they lie or written to `scratch`, which has room for
/// them one behind the other. Called from several threads.
using RowSource = std::function<FloatRows(Index first, Index count, float* scratch)>;

/// b vectors through A and back: vectors are rows of x, y and z.
struct NormalSweep {
  Index m = 0;
  Index n = 0;
  Index b = 0;
  RowSource rows = {};       // of A, m x n
  const float* x = nullptr;  // b x n, one row behind the other
  float* y = nullptr;        // b x m: x A^T
  float* z = nullptr;        // b x n: y A
};

/// y := x A^T and z := y A in one sweep over A, with A, x and (on the way to z) y rounded to bf16.
/// Error of a product: at most 2^-7 of the norms' product, mostly 2^-9. The result does not depend
/// on the number of threads. `has_bf16_tiles` must be true.
void normal_sweep(const NormalSweep& sweep);

}  // namespace eckart::blas

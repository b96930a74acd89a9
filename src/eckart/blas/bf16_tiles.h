// Products of numbers rounded to bf16 on the processor's matrix tiles (Intel AMX), summed in float:
// some ten times the rate of float products, and good to two or three figures.
#pragma once

#include "eckart/core/tensor.h"

#include <cstdint>
#include <functional>
#include <vector>

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

/// A matrix rounded to bf16, for products with few vectors, there and back. `has_bf16_tiles` must be
/// true for all of it.
class TileMatrix {
 public:
  /// Rounds m x n numbers. Memory: 2 bytes an element.
  TileMatrix(Index m, Index n, const RowSource& rows);

  /// Of b vectors of n, the rows of x: y := x A^T (b x m) and z := y A (b x n) in one sweep over
  /// the matrix, each array row behind row, with x and (on the way to z) y rounded to bf16. Error of
  /// a product: at most 2^-7 of the norms' product, mostly 2^-9. The result does not depend on the
  /// number of threads. Cost: 4 m n b FLOPs, one read of the rounded matrix.
  void apply_normal(Index b, const float* x, float* y, float* z) const;

 private:
  Index m_ = 0;
  Index n_ = 0;
  Tensor<std::uint16_t> data_;  // panels of 32 rows, each as tiles [n/32][2] of 16 rows x 32
};

/// Rows rounded to bf16, packed for products of rows with rows.
class TileRows {
 public:
  /// Which factor of a product they are.
  enum class Side { left, right };
  /// Room for `most` rows of d elements. Memory: 2 bytes an element.
  TileRows(Index most, Index d, Side side);
  /// Takes n rows, `stride` floats apart, in the place of those before.
  void pack(const float* rows, Index n, Index stride);
  /// The rows, rounded up to a multiple of 16.
  Index padded_rows() const { return (n_ + 15) / 16 * 16; }
  /// Of each row, the squared length of what rounding changed.
  const std::vector<float>& rounding() const { return rounding_; }

 private:
  friend void multiply_rows(const TileRows& left, const TileRows& right, float* c, Index ldc);

  Tensor<std::uint16_t> data_;
  std::vector<float> rounding_;
  Index n_ = 0;
  Index d_ = 0;
  Side side_;
};

/// c (left x right, rows ldc apart) := the dot products of all pairs of rows, on this thread. c has
/// room for both numbers of rows rounded up to multiples of 16. Error: at most 2^-7 of the rows'
/// norms multiplied, where no element or product is below float's least normal number.
void multiply_rows(const TileRows& left, const TileRows& right, float* c, Index ldc);

}  // namespace eckart::blas

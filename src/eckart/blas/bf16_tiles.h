// Products of numbers rounded to bf16 on the processor's matrix tiles (Intel AMX), summed in float:
// some ten times the rate of float products, and good to two or three figures.
#pragma once

#include "eckart/core/shape.h"

#include <cstdint>
#include <functional>
#include <memory>
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

  struct Free {
    void operator()(std::uint16_t* data) const;
  };
  std::unique_ptr<std::uint16_t, Free> data_;
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

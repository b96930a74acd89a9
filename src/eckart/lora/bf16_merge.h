// base + delta of BF16 in one pass: a row is read, added to, rounded, measured and written while it is
// in the innermost cache. Included by the library alone.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/lora/delta_statistics.h"

#include <cstddef>
#include <span>
#include <vector>

namespace eckart {

/// The factors of one matrix's delta, arranged for the pass.
class Bf16Merge {
 public:
  /// left: rows x rank; right_t: columns x rank. `left` must outlive this.
  Bf16Merge(const Tensor<float>& left, const Tensor<float>& right_t);

  /// Rows [first, first + n) of the matrix: `base` is BF16, n x columns, and so is `out`. Sums are
  /// made in float and rounded once, to nearest even, as by `narrow`. Of the statistics the counts
  /// are exact, and the squares within 2^-16 of themselves: they are summed in float over a piece of
  /// a row, and in double where a float's range does not hold them. What is not finite makes
  /// `error_squares` so, and `out` is of no use then.
  /// Cost: 2 rank FLOPs and some 20 instructions of a vector for each of its lanes. On the thread
  /// that calls; no two of the same `base` and `out`.
  DeltaStatistics run(Index first, Index n, std::span<const std::byte> base,
                      std::span<std::byte> out) const;

 private:
  Index columns_ = 0;
  Index rank_ = 0;
  Index step_ = 0;  // columns of a tile
  const float* left_ = nullptr;
  std::vector<float> panels_;
};

}  // namespace eckart

#include "eckart/lora/bf16_merge.h"

#include "eckart/io/widen.h"
#include "eckart/lora/bf16_merge_simd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace eckart {
namespace {

// Floats of the right factor under a tile: 64 KiB, twice the innermost cache and far less than
// the next one, which the rows of a block take them from again and again.
constexpr Index tile_floats = Index{1} << 14;

// Squares of this size lose nothing that matters when smaller ones vanish below 2^-126: 2^10 entries
// of that are 2^-56 of it.
constexpr double least_sum = 0x1p-60;

bool holds(const RowSums& sums) {
  const double sum = sums.base + sums.wanted + sums.error;
  return std::isfinite(sum) && sums.base >= least_sum &&
         (sums.wanted >= least_sum || sums.n_wanted == 0);
}

// The same of a row in double.
DeltaStatistics measured(const MergeTile& tile, Index row) {
  const auto n = static_cast<std::size_t>(tile.columns);
  std::array<float, tile_columns> base, realised;
  const auto widened = [&](const std::uint8_t* from, std::array<float, tile_columns>& to) {
    widen<float>(Dtype::bf16, std::as_bytes(std::span(from + row * tile.stride, 2 * n)),
                 std::span(to).first(n));
  };
  widened(tile.base, base);
  widened(tile.out, realised);
  return delta_statistics(tile.columns, base.data(), tile.delta + row * tile_columns,
                          realised.data());
}

}  // namespace

Bf16Merge::Bf16Merge(const Tensor<float>& left, const Tensor<float>& right_t)
    : columns_(right_t.size(0)), rank_(right_t.size(1)), left_(left.data()) {
  const Index width = panel_columns();
  const Index n_panels = (columns_ + width - 1) / width;
  panels_.resize(static_cast<std::size_t>(n_panels * width * rank_));
  pack_panels(columns_, rank_, right_t.data(), panels_.data());
  const Index fitting = tile_floats / std::max<Index>(rank_, 1) / width * width;
  step_ = std::clamp<Index>(fitting, 4 * width, tile_columns);
}

DeltaStatistics Bf16Merge::run(Index first, Index n, std::span<const std::byte> base,
                               std::span<std::byte> out) const {
  std::array<float, tile_rows * tile_columns> delta;
  std::array<RowSums, tile_rows> sums;
  DeltaStatistics all;
  MergeTile tile{.rank = rank_, .stride = 2 * columns_, .delta = delta.data()};
  for (Index column = 0; column < columns_; column += step_) {
    tile.columns = std::min(step_, columns_ - column);
    tile.right = panels_.data() + column * rank_;
    for (Index row = 0; row < n; row += tile_rows) {
      tile.rows = std::min(tile_rows, n - row);
      tile.left = left_ + (first + row) * rank_;
      const Index at = row * tile.stride + 2 * column;
      tile.base = reinterpret_cast<const std::uint8_t*>(base.data()) + at;
      tile.out = reinterpret_cast<std::uint8_t*>(out.data()) + at;
      merge_tile(tile, sums.data());
      for (Index r = 0; r < tile.rows; ++r) {
        const RowSums& of_row = sums[static_cast<std::size_t>(r)];
        all.add(holds(of_row) ? DeltaStatistics{of_row.base, of_row.wanted, of_row.error,
                                                of_row.n_wanted, of_row.n_unchanged}
                              : measured(tile, r));
      }
    }
  }
  return all;
}

}  // namespace eckart

// The inner loop of a merge into BF16: product, sum, rounding and statistics of a few rows while they
// are in the innermost cache. Included by bf16_merge.cpp alone.
#pragma once

#include "eckart/core/shape.h"

#include <cstdint>

namespace eckart {

/// Rows of a tile, at most, and columns: a multiple of every panel's width.
inline constexpr Index tile_rows = 6;
inline constexpr Index tile_columns = 1024;

/// `rows` (at most tile_rows) by `columns` (at most tile_columns) of base + left right.
struct MergeTile {
  Index rows = 0, columns = 0, rank = 0;
  const float* left = nullptr;   // rows x rank, rows `rank` apart
  const float* right = nullptr;  // panels as `pack_panels` makes them
  const std::uint8_t* base = nullptr;
  std::uint8_t* out = nullptr;
  Index stride = 0;        // of base and out: bytes from row to row
  float* delta = nullptr;  // scratch, tile_rows x tile_columns; left right stays there
};

/// Of one row of a tile, in float: squares below 2^-126 are lost, those above 2^127 are infinite.
struct RowSums {
  double base = 0, wanted = 0, error = 0;
  std::int32_t n_wanted = 0, n_unchanged = 0;
};

/// The width of a panel, for this processor.
Index panel_columns();
/// right_t (columns x rank) as panels of columns side by side, filled up with zeros: for each panel,
/// for each of the rank's rows, its columns.
void pack_panels(Index columns, Index rank, const float* right_t, float* packed);
/// `sums`: one a row.
void merge_tile(const MergeTile& tile, RowSums* sums);

}  // namespace eckart

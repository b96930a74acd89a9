// The instructions behind bf16_tiles.h. Internal: raw memory alone, because this file's source is
// compiled for processors that have them, and an inline function of another header compiled so
// could end up in everybody's program.
#pragma once

#include <cstdint>

namespace eckart::blas::tiles {

/// Rows of a panel: two tiles of 16.
inline constexpr long panel_rows = 32;
/// Bytes of a tile: 16 rows of 64.
inline constexpr long tile_bytes = 1024;

/// Begin and end of using tiles on this thread.
void configure();
void release();

/// float to bf16, to nearest even.
void round_row(const float* from, long n, std::uint16_t* to);

/// Packs `count` (at most 32) rows of n floats, zeros behind them, for products A x: as tiles
/// [n/32][2] of 16 rows x 32. n is rounded up to a multiple of 32.
struct Panel {
  const float* rows;
  long stride;
  long count;
  long n;
  std::uint16_t* left;
};
void pack(const Panel& panel);

/// The same rows for products y A: as tiles [n/16] of 16 pairs of rows x 16 columns.
void pair_rows(const std::uint16_t* left, long n_steps, std::uint16_t* right);

/// y (32 x width floats) := panel times x, given as tiles [n/32][width/16] of 16 pairs x 16.
struct Multiply {
  const std::uint16_t* left;
  const std::uint16_t* x;
  long n_steps;  // n / 32
  long width;    // multiple of 16
  float* y;
};
void multiply(const Multiply& product);

/// Packs up to 16 rows of n floats, zeros behind them, for products of rows with rows: as tiles
/// [n/32] of 16 rows x 32 (`pack_left`), or turned, as tiles [n/32] of 16 pairs of elements x 16 rows
/// (`pack_right`). `to` holds n rounded up to a multiple of 32, times 16.
struct SixteenRows {
  const float* rows;
  long stride;
  long count;
  long n;
  std::uint16_t* to;
  float* rounding;  // of each row, the squared length of what rounding changed
};
void pack_left(const SixteenRows& rows);
void pack_right(const SixteenRows& rows);

/// c (rows `stride` floats apart) := dot products of two sixteens of left rows, one behind the other,
/// with two sixteens of right ones; the second of either may be missing.
struct MultiplyRows {
  const std::uint16_t* left;
  const std::uint16_t* right;
  long n_steps;  // n / 32
  long n_left;   // sixteens: 1 or 2
  long n_right;
  float* c;
  long stride;
};
void multiply_rows(const MultiplyRows& product);

/// z, as tiles [n/16][width/16] of 16 x 16 floats, += y^T (tiles [width/16] of 16 x 32) times panel.
struct Accumulate {
  const std::uint16_t* y;
  const std::uint16_t* right;
  long n_blocks;  // n / 16
  long width;
  float* z;
};
void accumulate(const Accumulate& product);

}  // namespace eckart::blas::tiles

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18 (AMX).
#include "eckart/blas/bf16_tile_kernels.h"

#if defined(ECKART_BF16_TILES)
#include <immintrin.h>

namespace eckart::blas::tiles {
namespace {

struct alignas(64) Configuration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr long tile_words = tile_bytes / 2;
constexpr long tile_floats = tile_bytes / 4;
constexpr long row_bytes = 64;

// The first n of sixteen.
__mmask16 mask_of(long n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

// 32 floats from `from`, those from position n on zero, as bf16.
__m512i load_rounded(const float* from, long n) {
  const __m512 low = _mm512_maskz_loadu_ps(mask_of(n), from);
  const __m512 high = _mm512_maskz_loadu_ps(mask_of(n - 16), from + 16);
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

}  // namespace

void configure() {
  // Static: of a local one, g++ 12 keeps the first eight bytes alone, which is all that the
  // instruction says it reads.
  static const Configuration configuration;
  _tile_loadconfig(&configuration);
}

void release() { _tile_release(); }

void round_row(const float* from, long n, std::uint16_t* to) {
  for (long i = 0; i < n; i += 32) _mm512_storeu_si512(to + i, load_rounded(from + i, n - i));
}

void pack(const Panel& panel) {
  // Row by row from end to end: memory is read in order.
  for (long row = 0; row < panel_rows; ++row) {
    const float* const from = panel.rows + row * panel.stride;
    std::uint16_t* left = panel.left + row * 32;
    for (long column = 0; column < panel.n; column += 32, left += 2 * tile_words) {
      _mm512_store_si512(left, row < panel.count ? load_rounded(from + column, panel.n - column)
                                                 : _mm512_setzero_si512());
    }
  }
}

void pair_rows(const std::uint16_t* left, long n_steps, std::uint16_t* right) {
  // Words of two rows in turns: columns 0 … 15, and 16 … 31.
  alignas(64) std::uint16_t order[64];
  for (int i = 0; i < 64; ++i) {
    order[i] = static_cast<std::uint16_t>(i / 2 + (i % 2 == 0 ? 0 : 32));
  }
  const __m512i low = _mm512_load_si512(order);
  const __m512i high = _mm512_load_si512(order + 32);
  for (long step = 0; step < n_steps; ++step, left += 2 * tile_words, right += 2 * tile_words) {
    for (long row = 0; row < panel_rows; row += 2) {
      const __m512i even = _mm512_load_si512(left + row * 32);
      const __m512i odd = _mm512_load_si512(left + (row + 1) * 32);
      _mm512_store_si512(right + row * 16, _mm512_permutex2var_epi16(even, low, odd));
      _mm512_store_si512(right + tile_words + row * 16, _mm512_permutex2var_epi16(even, high, odd));
    }
  }
}

void multiply(const Multiply& product) {
  const long blocks = product.width / 16;
  for (long block = 0; block < blocks; block += 2) {
    const bool is_pair = block + 1 < blocks;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    const std::uint16_t* left = product.left;
    const std::uint16_t* x = product.x + block * tile_words;
    for (long step = 0; step < product.n_steps; ++step) {
      _tile_loadd(4, left, row_bytes);
      _tile_loadd(5, left + tile_words, row_bytes);
      _tile_loadd(6, x, row_bytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 5, 6);
      if (is_pair) {
        _tile_loadd(7, x + tile_words, row_bytes);
        _tile_dpbf16ps(2, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
      }
      left += 2 * tile_words;
      x += blocks * tile_words;
    }
    float* const y = product.y + block * 16;
    const long stride = product.width * 4;
    _tile_stored(0, y, stride);
    _tile_stored(1, y + 16 * product.width, stride);
    if (is_pair) {
      _tile_stored(2, y + 16, stride);
      _tile_stored(3, y + 16 * product.width + 16, stride);
    }
  }
}

namespace {

// Row `row` of sixteen, rounded, into its row of each tile, and what that changed.
void round_one(const SixteenRows& rows, long row, std::uint16_t* to) {
  if (row >= rows.count) {
    for (long i = 0; i < rows.n; i += 32, to += tile_words) {
      _mm512_store_si512(to, _mm512_setzero_si512());
    }
    return;
  }
  const float* const from = rows.rows + row * rows.stride;
  __m512 even = _mm512_setzero_ps(), odd = even;
  for (long i = 0; i < rows.n; i += 32, to += tile_words) {
    const long rest = rows.n - i;
    const __m512i rounded = load_rounded(from + i, rest);
    _mm512_store_si512(to, rounded);
    const __m512 low = _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(rounded)), 16));
    const __m512 high = _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(rounded, 1)), 16));
    const __m512 off_low = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask_of(rest), from + i), low);
    const __m512 off_high =
        _mm512_sub_ps(_mm512_maskz_loadu_ps(mask_of(rest - 16), from + i + 16), high);
    even = _mm512_fmadd_ps(off_low, off_low, even);
    odd = _mm512_fmadd_ps(off_high, off_high, odd);
  }
  rows.rounding[row] = _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
}

}  // namespace

void pack_left(const SixteenRows& rows) {
  for (long row = 0; row < 16; ++row) round_one(rows, row, rows.to + row * 32);
}

void pack_right(const SixteenRows& rows) {
  pack_left(rows);
  // Row r of a tile is pair r of each of the sixteen: the left tile with its pairs turned around a
  // diagonal, gathered a row at a time.
  const __m512i rows_apart =
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(16));
  __m512i turned[16];
  for (long i = 0; i < rows.n; i += 32) {
    std::uint16_t* const tile = rows.to + i / 32 * tile_words;
    for (int pair = 0; pair < 16; ++pair) {
      const __m512i at = _mm512_add_epi32(rows_apart, _mm512_set1_epi32(pair));
      turned[pair] = _mm512_i32gather_epi32(at, tile, 4);
    }
    for (int pair = 0; pair < 16; ++pair) _mm512_store_si512(tile + pair * 32, turned[pair]);
  }
}

void multiply_rows(const MultiplyRows& product) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const std::uint16_t* left = product.left;
  const std::uint16_t* right = product.right;
  const long sixteen = product.n_steps * tile_words;
  const bool two_left = product.n_left > 1;
  const bool two_right = product.n_right > 1;
  for (long step = 0; step < product.n_steps; ++step) {
    _tile_loadd(4, left, row_bytes);
    _tile_loadd(6, right, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (two_left) {
      _tile_loadd(5, left + sixteen, row_bytes);
      _tile_dpbf16ps(1, 5, 6);
    }
    if (two_right) {
      _tile_loadd(7, right + sixteen, row_bytes);
      _tile_dpbf16ps(2, 4, 7);
      if (two_left) _tile_dpbf16ps(3, 5, 7);
    }
    left += tile_words;
    right += tile_words;
  }
  const long stride = product.stride * 4;
  _tile_stored(0, product.c, stride);
  if (two_left) _tile_stored(1, product.c + 16 * product.stride, stride);
  if (two_right) _tile_stored(2, product.c + 16, stride);
  if (two_left && two_right) _tile_stored(3, product.c + 16 * product.stride + 16, stride);
}

void accumulate(const Accumulate& product) {
  const long blocks = product.width / 16;
  // Four tiles of y stay in registers while the panel passes by.
  for (long first = 0; first < blocks; first += 4) {
    const long count = blocks - first < 4 ? blocks - first : 4;
    const std::uint16_t* const y = product.y + first * tile_words;
    _tile_loadd(4, y, row_bytes);
    if (count > 1) _tile_loadd(5, y + tile_words, row_bytes);
    if (count > 2) _tile_loadd(6, y + 2 * tile_words, row_bytes);
    if (count > 3) _tile_loadd(7, y + 3 * tile_words, row_bytes);
    for (long j = 0; j < product.n_blocks; ++j) {
      float* const z = product.z + (j * blocks + first) * tile_floats;
      _tile_loadd(0, product.right + j * tile_words, row_bytes);
      _tile_loadd(1, z, row_bytes);
      _tile_dpbf16ps(1, 4, 0);
      _tile_stored(1, z, row_bytes);
      if (count > 1) {
        _tile_loadd(2, z + tile_floats, row_bytes);
        _tile_dpbf16ps(2, 5, 0);
        _tile_stored(2, z + tile_floats, row_bytes);
      }
      if (count > 2) {
        _tile_loadd(3, z + 2 * tile_floats, row_bytes);
        _tile_dpbf16ps(3, 6, 0);
        _tile_stored(3, z + 2 * tile_floats, row_bytes);
      }
      if (count > 3) {
        _tile_loadd(1, z + 3 * tile_floats, row_bytes);
        _tile_dpbf16ps(1, 7, 0);
        _tile_stored(1, z + 3 * tile_floats, row_bytes);
      }
    }
  }
}

}  // namespace eckart::blas::tiles
#endif

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18 (AMX).
#include "eckart/blas/bf16_tile_kernels.h"

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)
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

// 32 floats from `from`, those from position n on zero, as bf16.
__m512i load_rounded(const float* from, long n) {
  const auto mask = [](long left) {
    return static_cast<__mmask16>(left >= 16 ? 0xffff : left <= 0 ? 0 : (1 << left) - 1);
  };
  const __m512 low = _mm512_maskz_loadu_ps(mask(n), from);
  const __m512 high = _mm512_maskz_loadu_ps(mask(n - 16), from + 16);
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
  // Words of two rows in turns: columns 0 … 15, and 16 … 31.
  alignas(64) std::uint16_t order[64];
  for (int i = 0; i < 64; ++i) {
    order[i] = static_cast<std::uint16_t>(i / 2 + (i % 2 == 0 ? 0 : 32));
  }
  const __m512i low = _mm512_load_si512(order);
  const __m512i high = _mm512_load_si512(order + 32);
  const __m512i zero = _mm512_setzero_si512();
  // Two rows at a time from end to end: memory is read in order.
  for (long row = 0; row < panel_rows; row += 2) {
    const float* const from = panel.rows + row * panel.stride;
    std::uint16_t* left = panel.left + row * 32;
    std::uint16_t* right = panel.right + row * 16;
    for (long column = 0; column < panel.n; column += 32) {
      const long rest = panel.n - column;
      const __m512i even = row < panel.count ? load_rounded(from + column, rest) : zero;
      const __m512i odd =
          row + 1 < panel.count ? load_rounded(from + panel.stride + column, rest) : zero;
      _mm512_store_si512(left, even);
      _mm512_store_si512(left + 32, odd);
      _mm512_store_si512(right, _mm512_permutex2var_epi16(even, low, odd));
      _mm512_store_si512(right + tile_words, _mm512_permutex2var_epi16(even, high, odd));
      left += 2 * tile_words;
      right += 2 * tile_words;
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

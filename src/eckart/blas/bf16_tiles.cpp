#include "eckart/blas/bf16_tiles.h"

#include "eckart/blas/bf16_tile_kernels.h"
#include "eckart/core/parallel.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(ECKART_BF16_TILES)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace eckart::blas {

#if defined(ECKART_BF16_TILES)
namespace {

bool find_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const bool has_avx512 = (b >> 16 & 1) != 0 && (b >> 30 & 1) != 0;  // F and BW
  const bool has_tiles = (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;   // AMX-BF16 and AMX-TILE
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return false;
  const bool has_bf16 = (a >> 5 & 1) != 0;
  if (!has_avx512 || !has_tiles || !has_bf16) return false;
  // Linux gives the tiles' registers to processes that ask for them:
  // Documentation/arch/x86/xstate.rst. It refuses where the system does not save them.
  constexpr long request_permission = 0x1023;
  constexpr long tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

template <class T>
Tensor<T> room_for(Index count) {
  return Tensor<T>::uninitialized({count});
}

Index up_to_multiple(Index size, Index of) { return (size + of - 1) / of * of; }

constexpr Index tile_words = tiles::tile_bytes / 2;
constexpr Index tile_floats = tiles::tile_bytes / 4;

// One product, there and back.
struct Sweep {
  Index m, n, b;
  const std::uint16_t* matrix;
  const float* x;
  float* y;
  float* z;

  Index n_steps() const { return (n + 31) / 32; }
  Index width() const { return up_to_multiple(b, 16); }
};

// The vectors as tiles [n/32][width/16] of 16 pairs of elements x 16 vectors.
void pack_vectors(const Sweep& sweep, std::uint16_t* to) {
  const Index n_padded = sweep.n_steps() * 32;
  const Index blocks = sweep.width() / 16;
  std::fill_n(to, n_padded * sweep.width(), std::uint16_t{0});
  std::vector<std::uint16_t> row(static_cast<std::size_t>(n_padded));
  for (Index vector = 0; vector < sweep.b; ++vector) {
    tiles::round_row(sweep.x + vector * sweep.n, sweep.n, row.data());
    for (Index i = 0; i < sweep.n; ++i) {
      std::uint16_t* const tile = to + (i / 32 * blocks + vector / 16) * tile_words;
      tile[i % 32 / 2 * 32 + vector % 16 * 2 + i % 2] = row[static_cast<std::size_t>(i)];
    }
  }
}

// One thread's work: the sums over some panels of rows.
class Sweeper {
 public:
  Sweeper(const Sweep& sweep, const std::uint16_t* x)
      : sweep_(sweep),
        x_(x),
        right_(room_for<std::uint16_t>(tiles::panel_rows * sweep.n_steps() * 32)),
        y_(room_for<float>(tiles::panel_rows * sweep.width())),
        y_turned_(room_for<float>(tiles::panel_rows * sweep.width())),
        y_rounded_(room_for<std::uint16_t>(tiles::panel_rows * sweep.width())) {}

  // Adds the rows from `first` on to `sums`, tiles [n/16][width/16].
  void take(Index first, float* sums) {
    const Index n_steps = sweep_.n_steps(), width = sweep_.width();
    const std::uint16_t* const left =
        sweep_.matrix + first / tiles::panel_rows * n_steps * 2 * tile_words;
    tiles::multiply({left, x_, n_steps, width, y_.data()});
    turn();
    const Index count = std::min<Index>(tiles::panel_rows, sweep_.m - first);
    for (Index vector = 0; vector < sweep_.b; ++vector) {
      std::copy_n(y_turned_.data() + vector * tiles::panel_rows, count,
                  sweep_.y + vector * sweep_.m + first);
    }
    tiles::pair_rows(left, n_steps, right_.data());
    tiles::accumulate({y_rounded_.data(), right_.data(), n_steps * 2, width, sums});
  }

 private:
  // y^T, as it is and as tiles [width/16] of 16 x 32.
  void turn() {
    const Index width = sweep_.width();
    for (Index row = 0; row < tiles::panel_rows; ++row) {
      for (Index vector = 0; vector < width; ++vector) {
        y_turned_.data()[vector * tiles::panel_rows + row] = y_.data()[row * width + vector];
      }
    }
    tiles::round_row(y_turned_.data(), tiles::panel_rows * width, y_rounded_.data());
  }

  const Sweep& sweep_;
  const std::uint16_t* x_;
  Tensor<std::uint16_t> right_;
  Tensor<float> y_, y_turned_;
  Tensor<std::uint16_t> y_rounded_;
};

// z from the sums of `n_parts` parts, in their order.
void add_parts(const Sweep& sweep, const float* sums, Index n_parts) {
  const Index blocks = sweep.width() / 16, size = sweep.n_steps() * 32 * sweep.width();
  parallel_for(sweep.n_steps() * 2, 16, [&](Index begin, Index end) {
    for (Index block = begin; block < end; ++block) {
      const Index columns = std::min<Index>(16, sweep.n - block * 16);
      for (Index vector = 0; vector < sweep.b; ++vector) {
        const float* const from =
            sums + (block * blocks + vector / 16) * tile_floats + vector % 16 * 16;
        float* const to = sweep.z + vector * sweep.n + block * 16;
        for (Index column = 0; column < columns; ++column) {
          float sum = 0;
          for (Index i = 0; i < n_parts; ++i) sum += from[i * size + column];
          to[column] = sum;
        }
      }
    }
  });
}

}  // namespace

TileMatrix::TileMatrix(Index m, Index n, const RowSource& rows) : m_(m), n_(n) {
  assert(has_bf16_tiles());
  const Index n_padded = up_to_multiple(n, 32);
  data_ = room_for<std::uint16_t>(up_to_multiple(m, tiles::panel_rows) * n_padded);
  const Index n_panels = (m + tiles::panel_rows - 1) / tiles::panel_rows;
  parallel_for(n_panels, 4, [&](Index begin, Index end) {
    Tensor<float> scratch = room_for<float>(tiles::panel_rows * n);
    for (Index panel = begin; panel < end; ++panel) {
      const Index first = panel * tiles::panel_rows;
      const Index count = std::min<Index>(tiles::panel_rows, m - first);
      const FloatRows from = rows(first, count, scratch.data());
      tiles::pack({from.data, from.stride, count, n, data_.data() + first * n_padded});
    }
  });
}

void TileMatrix::apply_normal(Index b, const float* x, float* y, float* z) const {
  if (b == 0 || n_ == 0) return;
  const Sweep sweep{m_, n_, b, data_.data(), x, y, z};
  const Index size = sweep.n_steps() * 32 * sweep.width();
  Tensor<std::uint16_t> packed = room_for<std::uint16_t>(size);
  pack_vectors(sweep, packed.data());
  // Sums over at most eight parts of the rows, added in their order: as many whatever the number of
  // threads.
  const Index part = up_to_multiple(std::max<Index>(256, (m_ + 7) / 8), tiles::panel_rows);
  const Index n_parts = (m_ + part - 1) / part;
  Tensor<float> sums = room_for<float>(n_parts * size);
  parallel_for(n_parts, 1, [&](Index begin, Index end) {
    Sweeper sweeper(sweep, packed.data());
    tiles::configure();
    for (Index i = begin; i < end; ++i) {
      float* const to = sums.data() + i * size;
      std::fill_n(to, size, 0.0F);
      const Index last = std::min(m_, (i + 1) * part);
      for (Index row = i * part; row < last; row += tiles::panel_rows) sweeper.take(row, to);
    }
    tiles::release();
  });
  add_parts(sweep, sums.data(), n_parts);
}

TileRows::TileRows(Index most, Index d, Side side) : d_(d), side_(side) {
  const Index size = up_to_multiple(most, 16) * up_to_multiple(d, 32);
  data_ = room_for<std::uint16_t>(size);
}

void TileRows::pack(const float* rows, Index n, Index stride) {
  n_ = n;
  rounding_.resize(static_cast<std::size_t>(n));
  const Index sixteen = 16 * up_to_multiple(d_, 32);
  for (Index first = 0; first < n; first += 16) {
    const tiles::SixteenRows packed{rows + first * stride,
                                    stride,
                                    std::min<Index>(16, n - first),
                                    d_,
                                    data_.data() + first / 16 * sixteen,
                                    rounding_.data() + first};
    side_ == Side::left ? tiles::pack_left(packed) : tiles::pack_right(packed);
  }
}

void multiply_rows(const TileRows& left, const TileRows& right, float* c, Index ldc) {
  assert(left.side_ == TileRows::Side::left && right.side_ == TileRows::Side::right);
  assert(left.d_ == right.d_);
  const Index n_steps = up_to_multiple(left.d_, 32) / 32;
  const Index sixteen = n_steps * tile_words;
  const Index n_left = left.padded_rows() / 16, n_right = right.padded_rows() / 16;
  tiles::configure();
  for (Index i = 0; i < n_left; i += 2) {
    for (Index j = 0; j < n_right; j += 2) {
      tiles::multiply_rows({left.data_.data() + i * sixteen, right.data_.data() + j * sixteen,
                            n_steps, std::min<Index>(2, n_left - i),
                            std::min<Index>(2, n_right - j), c + i * 16 * ldc + j * 16, ldc});
    }
  }
  tiles::release();
}

bool has_bf16_tiles() {
  static const bool has = find_tiles();
  return has;
}

#else

bool has_bf16_tiles() { return false; }
TileMatrix::TileMatrix(Index, Index, const RowSource&) {
  assert(false && "there are no bf16 tiles");
}
void TileMatrix::apply_normal(Index, const float*, float*, float*) const {}
TileRows::TileRows(Index, Index d, Side side) : d_(d), side_(side) {
  assert(false && "there are no bf16 tiles");
}
void TileRows::pack(const float*, Index n, Index) { n_ = n; }
void multiply_rows(const TileRows&, const TileRows&, float*, Index) {}

#endif

}  // namespace eckart::blas

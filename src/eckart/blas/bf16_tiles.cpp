#include "eckart/blas/bf16_tiles.h"

#include "eckart/blas/bf16_tile_kernels.h"
#include "eckart/core/parallel.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
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

// Memory at the beginning of a cache line.
template <class T>
class Aligned {
 public:
  explicit Aligned(Index count)
      : data_(static_cast<T*>(
            ::operator new (static_cast<std::size_t>(count) * sizeof(T), std::align_val_t{64}))) {}
  T* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Free> data_;
};

Index up_to_multiple(Index size, Index of) { return (size + of - 1) / of * of; }

constexpr Index tile_words = tiles::tile_bytes / 2;
constexpr Index tile_floats = tiles::tile_bytes / 4;

// The vectors as tiles [n/32][width/16] of 16 pairs of elements x 16 vectors.
void pack_vectors(const NormalSweep& sweep, Index n_padded, Index width, std::uint16_t* to) {
  const Index blocks = width / 16;
  std::fill_n(to, n_padded * width, std::uint16_t{0});
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
  Sweeper(const NormalSweep& sweep, Index n_padded, Index width, const std::uint16_t* x)
      : sweep_(sweep),
        n_padded_(n_padded),
        width_(width),
        x_(x),
        scratch_(tiles::panel_rows * sweep.n),
        left_(tiles::panel_rows * n_padded),
        right_(tiles::panel_rows * n_padded),
        y_(tiles::panel_rows * width),
        y_turned_(tiles::panel_rows * width),
        y_rounded_(tiles::panel_rows * width) {}

  // Adds to `sums`, tiles [n/16][width/16].
  void take(Index first, Index count, float* sums) {
    const FloatRows rows = sweep_.rows(first, count, scratch_.get());
    tiles::pack({rows.data, rows.stride, count, sweep_.n, left_.get(), right_.get()});
    tiles::multiply({left_.get(), x_, n_padded_ / 32, width_, y_.get()});
    turn();
    for (Index vector = 0; vector < sweep_.b; ++vector) {
      std::copy_n(y_turned_.get() + vector * tiles::panel_rows, count,
                  sweep_.y + vector * sweep_.m + first);
    }
    tiles::accumulate({y_rounded_.get(), right_.get(), n_padded_ / 16, width_, sums});
  }

 private:
  // y^T, as it is and as tiles [width/16] of 16 x 32.
  void turn() {
    for (Index row = 0; row < tiles::panel_rows; ++row) {
      for (Index vector = 0; vector < width_; ++vector) {
        y_turned_.get()[vector * tiles::panel_rows + row] = y_.get()[row * width_ + vector];
      }
    }
    tiles::round_row(y_turned_.get(), tiles::panel_rows * width_, y_rounded_.get());
  }

  const NormalSweep& sweep_;
  Index n_padded_, width_;
  const std::uint16_t* x_;
  Aligned<float> scratch_;
  Aligned<std::uint16_t> left_, right_;
  Aligned<float> y_, y_turned_;
  Aligned<std::uint16_t> y_rounded_;
};

}  // namespace

void TileRows::Free::operator()(std::uint16_t* data) const {
  ::operator delete (data, std::align_val_t{64});
}

TileRows::TileRows(Index most, Index d, Side side) : d_(d), side_(side) {
  const Index size = up_to_multiple(most, 16) * up_to_multiple(d, 32);
  data_.reset(static_cast<std::uint16_t*>(::operator new (
      static_cast<std::size_t>(size) * sizeof(std::uint16_t), std::align_val_t{64})));
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
                                    data_.get() + first / 16 * sixteen,
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
      tiles::multiply_rows({left.data_.get() + i * sixteen, right.data_.get() + j * sixteen,
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

void normal_sweep(const NormalSweep& sweep) {
  assert(has_bf16_tiles());
  if (sweep.b == 0 || sweep.n == 0) return;
  const Index n_padded = up_to_multiple(sweep.n, 32);
  const Index width = up_to_multiple(sweep.b, 16);
  const Aligned<std::uint16_t> x(n_padded * width);
  pack_vectors(sweep, n_padded, width, x.get());
  // Sums over at most eight parts of the rows, added in their order: as many whatever the number of
  // threads.
  const Index part = up_to_multiple(std::max<Index>(256, (sweep.m + 7) / 8), tiles::panel_rows);
  const Index n_parts = (sweep.m + part - 1) / part;
  const Index size = n_padded * width;
  const Aligned<float> sums(n_parts * size);
  parallel_for(n_parts, 1, [&](Index begin, Index end) {
    Sweeper sweeper(sweep, n_padded, width, x.get());
    tiles::configure();
    for (Index i = begin; i < end; ++i) {
      float* const to = sums.get() + i * size;
      std::fill_n(to, size, 0.0F);
      const Index last = std::min(sweep.m, (i + 1) * part);
      for (Index row = i * part; row < last; row += tiles::panel_rows) {
        sweeper.take(row, std::min<Index>(tiles::panel_rows, last - row), to);
      }
    }
    tiles::release();
  });
  parallel_for(n_padded / 16, 16, [&](Index begin, Index end) {
    for (Index block = begin; block < end; ++block) {
      const Index columns = std::min<Index>(16, sweep.n - block * 16);
      for (Index vector = 0; vector < sweep.b; ++vector) {
        const Index at = (block * (width / 16) + vector / 16) * tile_floats + vector % 16 * 16;
        float* const to = sweep.z + vector * sweep.n + block * 16;
        for (Index column = 0; column < columns; ++column) {
          float sum = 0;
          for (Index i = 0; i < n_parts; ++i) sum += sums.get()[i * size + at + column];
          to[column] = sum;
        }
      }
    }
  });
}

#else

bool has_bf16_tiles() { return false; }
void normal_sweep(const NormalSweep&) { assert(false && "there are no bf16 tiles"); }
void TileRows::Free::operator()(std::uint16_t*) const {}
TileRows::TileRows(Index, Index d, Side side) : d_(d), side_(side) {
  assert(false && "there are no bf16 tiles");
}
void TileRows::pack(const float*, Index n, Index) { n_ = n; }
void multiply_rows(const TileRows&, const TileRows&, float*, Index) {}

#endif

}  // namespace eckart::blas

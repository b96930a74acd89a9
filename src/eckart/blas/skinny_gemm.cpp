// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
//
// x is copied to panels of up to four vectors (two where there are but 16 registers), which the inner
// loop reads in order. It keeps six rows of such a panel of c in registers and does 24 (12)
// multiplications and additions of vectors for each six numbers of a and four (two) vectors of x
// that it loads. A block of a is read once for all panels of x.
#include "eckart/blas/skinny_gemm.h"

#include "eckart/core/parallel.h"

#include <cstddef>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/blas/skinny_gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
using D = hn::ScalableTag<float>;
#else
using D = hn::CappedTag<float, 16>;
#endif
using V = hn::Vec<D>;

constexpr Index tile_rows = 6;
// Six rows of so many vectors of sums, as many vectors of x and one number of a fit the registers:
// 32 of AVX-512, NEON and SVE, 16 of SSE and AVX2.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
constexpr Index panel_vectors = 2;
#else
constexpr Index panel_vectors = 4;
#endif
// What one thread needs of a product, in numbers of floats.
struct Sizes {
  Index lanes, panel, n_panels;
};

Sizes sizes_of(Index n) {
  const auto lanes = static_cast<Index>(hn::Lanes(D()));
  const Index panel = panel_vectors * lanes;
  return {lanes, panel, (n + panel - 1) / panel};
}

// Vectors of panel number `panel`, of which the last may have fewer than the others.
Index vectors_of(const Sizes& sizes, Index n, Index panel) {
  const Index columns = n - panel * sizes.panel;
  return columns >= sizes.panel ? panel_vectors : (columns + sizes.lanes - 1) / sizes.lanes;
}

// Rows [first, first + count) of x, padded with zeros to whole vectors: for each panel, for each
// row, its vectors.
void pack_x(const blas::SkinnyProduct& p, Index first, Index count, float* packed) {
  const Sizes sizes = sizes_of(p.n);
  for (Index panel = 0; panel < sizes.n_panels; ++panel) {
    const Index width = vectors_of(sizes, p.n, panel) * sizes.lanes;
    const Index begin = panel * sizes.panel;
    const Index filled = width < p.n - begin ? width : p.n - begin;
    float* to = packed + begin * count;
    for (Index row = 0; row < count; ++row, to += width) {
      const float* from = p.x + (first + row) * p.ldx + begin;
      for (Index i = 0; i < filled; ++i) to[i] = from[i];
      for (Index i = filled; i < width; ++i) to[i] = 0;
    }
  }
}

// Where the inner loop finds six rows of a: number r of the sum's index i at `at[r * row + i * index]`.
struct Rows {
  const float* at;
  Index row, index;
};

// `height` rows of c by `n_vectors` vectors: the sum over `count` indices of a and packed x.
template <std::size_t height, std::size_t n_vectors>
HWY_INLINE void tile(Rows a, const float* HWY_RESTRICT x, Index count, float* HWY_RESTRICT out) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sums[height][n_vectors];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(d);
  }
  const float* at = a.at;
  for (Index i = 0; i < count; ++i) {
    V columns[n_vectors];
    for (std::size_t v = 0; v < n_vectors; ++v) columns[v] = hn::LoadU(d, x + v * lanes);
    for (std::size_t r = 0; r < height; ++r) {
      const V number = hn::Set(d, at[static_cast<Index>(r) * a.row]);
      for (std::size_t v = 0; v < n_vectors; ++v) {
        sums[r][v] = hn::MulAdd(number, columns[v], sums[r][v]);
      }
    }
    at += a.index;
    x += n_vectors * lanes;
  }
  for (std::size_t r = 0; r < height; ++r) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      hn::StoreU(sums[r][v], d, out + (r * n_vectors + v) * lanes);
    }
  }
}

struct Tile {
  Rows a;
  const float* x;
  Index count;
  float* out;
};

template <std::size_t n_vectors>
void tile_of_height(Index height, const Tile& t) {
  switch (height) {
    case 1:
      return tile<1, n_vectors>(t.a, t.x, t.count, t.out);
    case 2:
      return tile<2, n_vectors>(t.a, t.x, t.count, t.out);
    case 3:
      return tile<3, n_vectors>(t.a, t.x, t.count, t.out);
    case 4:
      return tile<4, n_vectors>(t.a, t.x, t.count, t.out);
    case 5:
      return tile<5, n_vectors>(t.a, t.x, t.count, t.out);
    default:
      return tile<6, n_vectors>(t.a, t.x, t.count, t.out);
  }
}

void tile_of(Index n_vectors, Index height, const Tile& t) {
  if constexpr (panel_vectors > 2) {
    if (n_vectors == 3) return tile_of_height<3>(height, t);
    if (n_vectors == 4) return tile_of_height<4>(height, t);
  }
  return n_vectors == 1 ? tile_of_height<1>(height, t) : tile_of_height<2>(height, t);
}

// Rows [row, row + rows) of c += alpha a x, over one block of the sum. `a` is where the first of
// these rows is.
void multiply_block(const blas::SkinnyProduct& p, Index row, Index rows, Index count, Rows a,
                    const float* x) {
  const Sizes sizes = sizes_of(p.n);
  float sums[tile_rows * 4 * 16];
  for (Index begin = 0; begin < rows; begin += tile_rows) {
    const Index height = rows - begin < tile_rows ? rows - begin : tile_rows;
    const Rows from{a.at + begin * a.row, a.row, a.index};
    for (Index panel = 0; panel < sizes.n_panels; ++panel) {
      const Index n_vectors = vectors_of(sizes, p.n, panel);
      const Index width = n_vectors * sizes.lanes;
      const Index column = panel * sizes.panel;
      const Index filled = width < p.n - column ? width : p.n - column;
      const float* const columns = x + column * count;
      tile_of(n_vectors, height, {from, columns, count, sums});
      for (Index r = 0; r < height; ++r) {
        float* to = p.c + (row + begin + r) * p.ldc + column;
        for (Index i = 0; i < filled; ++i) to[i] += p.alpha * sums[r * width + i];
      }
    }
  }
}

// The distance between lines of `rows` numbers in the scratch: an odd number of cache lines, since
// those of an even number, or of a power of two, would share few sets of the first cache.
Index scratch_line(Index rows) { return (rows + 15) / 16 / 2 * 32 + 16; }

// All blocks of the sum for rows [begin, end) of c. `scratch` holds block_sum lines of them.
void multiply_rows(const blas::SkinnyProduct& p, Index begin, Index end, Index block_sum,
                   const float* x, float* scratch) {
  const Sizes sizes = sizes_of(p.n);
  const Index columns = (p.n + sizes.lanes - 1) / sizes.lanes * sizes.lanes;
  const Index rows = end - begin;
  for (Index first = 0; first < p.k; first += block_sum) {
    const Index count = p.k - first < block_sum ? p.k - first : block_sum;
    Rows a{p.a + begin * p.lda + first, p.lda, 1};
    if (p.transposed) {
      // Read in place, lines of a power of two apart would push each other out of the cache.
      const Index line = scratch_line(rows);
      for (Index i = 0; i < count; ++i) {
        const float* from = p.a + (first + i) * p.lda + begin;
        for (Index r = 0; r < rows; ++r) scratch[i * line + r] = from[r];
      }
      a = {scratch, 1, line};
    }
    multiply_block(p, begin, rows, count, a, x + first * columns);
  }
}

Index padded_columns(Index n) {
  const Sizes sizes = sizes_of(n);
  return (n + sizes.lanes - 1) / sizes.lanes * sizes.lanes;
}

}  // namespace
}  // namespace eckart::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart {
namespace {

HWY_EXPORT(pack_x);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(padded_columns);
HWY_EXPORT(scratch_line);

void scale(const blas::SkinnyProduct& p, Index begin, Index end) {
  for (Index row = begin; row < end; ++row) {
    float* const to = p.c + row * p.ldc;
    for (Index i = 0; i < p.n; ++i) to[i] = p.beta == 0 ? 0 : p.beta * to[i];
  }
}

}  // namespace

void blas::skinny_gemm(const SkinnyProduct& p) {
  // Lengths of a block of the sum and of a piece of the result: a block of a and one of x stay in
  // the second cache. Of a transposed a, whole lines are copied first, the longer the better.
  const Index block_sum = p.transposed ? 128 : 512;
  const Index block_rows = p.transposed ? 512 : 96;
  const Index columns = HWY_DYNAMIC_DISPATCH(padded_columns)(p.n);
  // All of x, packed once; the blocks of a are packed where they are used.
  std::vector<float> x(static_cast<std::size_t>(p.k * columns));
  const Index n_blocks = (p.k + block_sum - 1) / block_sum;
  parallel_for(n_blocks, 1, [&](Index begin, Index end) {
    for (Index block = begin; block < end; ++block) {
      const Index first = block * block_sum;
      const Index count = p.k - first < block_sum ? p.k - first : block_sum;
      HWY_DYNAMIC_DISPATCH(pack_x)(p, first, count, x.data() + first * columns);
    }
  });
  parallel_for(p.m, block_rows, [&](Index begin, Index end) {
    const Index line = HWY_DYNAMIC_DISPATCH(scratch_line)(end - begin);
    std::vector<float> scratch(static_cast<std::size_t>(p.transposed ? block_sum * line : 0));
    scale(p, begin, end);
    HWY_DYNAMIC_DISPATCH(multiply_rows)(p, begin, end, block_sum, x.data(), scratch.data());
  });
}

}  // namespace eckart
#endif  // HWY_ONCE

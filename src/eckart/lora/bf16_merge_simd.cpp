// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
//
// The product keeps 6 x 2 vectors in registers, as many as 16 registers hold beside their operands,
// and leaves a tile in the innermost cache, which the second loop turns into the result.
#include "eckart/lora/bf16_merge_simd.h"

#include <cstddef>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/lora/bf16_merge_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
using D = hn::ScalableTag<float>;
#else
using D = hn::CappedTag<float, 16>;
#endif
using V = hn::Vec<D>;
using DWord = hn::Rebind<std::uint16_t, D>;
using DInt = hn::RebindToSigned<D>;
using DBits = hn::RebindToUnsigned<D>;

constexpr std::size_t panel_vectors = 2;

Index panel_width() {
  return static_cast<Index>(panel_vectors) * static_cast<Index>(hn::Lanes(D()));
}

void pack(Index columns, Index rank, const float* right_t, float* packed) {
  const Index width = panel_width();
  for (Index first = 0; first < columns; first += width) {
    const Index filled = width < columns - first ? width : columns - first;
    for (Index k = 0; k < rank; ++k, packed += width) {
      for (Index i = 0; i < filled; ++i) packed[i] = right_t[(first + i) * rank + k];
      for (Index i = filled; i < width; ++i) packed[i] = 0;
    }
  }
}

template <std::size_t height>
HWY_INLINE void multiply_panel(const MergeTile& tile, const float* HWY_RESTRICT right,
                               float* HWY_RESTRICT out) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sums[height][panel_vectors];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(d);
  }
  for (Index k = 0; k < tile.rank; ++k) {
    V columns[panel_vectors];
    for (std::size_t v = 0; v < panel_vectors; ++v) columns[v] = hn::LoadU(d, right + v * lanes);
    for (std::size_t r = 0; r < height; ++r) {
      const V number = hn::Set(d, tile.left[static_cast<Index>(r) * tile.rank + k]);
      for (std::size_t v = 0; v < panel_vectors; ++v) {
        sums[r][v] = hn::MulAdd(number, columns[v], sums[r][v]);
      }
    }
    right += panel_vectors * lanes;
  }
  for (std::size_t r = 0; r < height; ++r) {
    for (std::size_t v = 0; v < panel_vectors; ++v) {
      hn::StoreU(sums[r][v], d, out + r * tile_columns + v * lanes);
    }
  }
}

template <std::size_t height>
void multiply(const MergeTile& tile) {
  const Index width = panel_width();
  const float* right = tile.right;
  for (Index column = 0; column < tile.columns; column += width) {
    multiply_panel<height>(tile, right, tile.delta + column);
    right += width * tile.rank;
  }
}

// What a row's loop keeps in registers.
struct Lanes {
  V base, wanted, error;
  hn::Vec<DInt> n_wanted, n_unchanged;
};

HWY_INLINE V load_bf16(const std::uint8_t* from) {
  const DWord d_word;
#if HWY_TARGET == HWY_SCALAR
  std::uint16_t word;
  std::memcpy(&word, from, sizeof word);
  const auto words = hn::Set(d_word, word);
#else
  const hn::Repartition<std::uint8_t, DWord> d_byte;
  const auto words = hn::BitCast(d_word, hn::LoadU(d_byte, from));
#endif
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(DBits(), words)));
}

// One vector: sum, rounding to nearest even, and what became of the delta. What is not finite makes a
// sum that is not, so that its own rounding does not matter.
HWY_INLINE void finish_vector(const std::uint8_t* from, V delta, std::uint8_t* to, Lanes& lanes) {
  const D d;
  const DInt d_int;
  const DBits d_bits;
  const DWord d_word;
  const V base = load_bf16(from);
  const auto sum = hn::BitCast(d_bits, hn::Add(base, delta));
  const auto is_odd = hn::And(hn::ShiftRight<16>(sum), hn::Set(d_bits, 1u));
  const auto carried = hn::Add(sum, hn::Add(is_odd, hn::Set(d_bits, 0x7fffu)));
  const auto high = hn::ShiftRight<16>(carried);
  const V realised = hn::BitCast(d, hn::ShiftLeft<16>(high));
  const auto words = hn::DemoteTo(d_word, hn::BitCast(d_int, high));
#if HWY_TARGET == HWY_SCALAR
  const std::uint16_t word = hn::GetLane(words);
  std::memcpy(to, &word, sizeof word);
#else
  const hn::Repartition<std::uint8_t, DWord> d_byte;
  hn::StoreU(hn::BitCast(d_byte, words), d_byte, to);
#endif
  const V error = hn::Sub(hn::Sub(realised, base), delta);
  lanes.base = hn::MulAdd(base, base, lanes.base);
  lanes.wanted = hn::MulAdd(delta, delta, lanes.wanted);
  lanes.error = hn::MulAdd(error, error, lanes.error);
  const auto is_wanted = hn::Ne(delta, hn::Zero(d));
  const auto is_unchanged = hn::And(is_wanted, hn::Eq(realised, base));
  // A true lane is -1.
  lanes.n_wanted =
      hn::Sub(lanes.n_wanted, hn::VecFromMask(d_int, hn::RebindMask(d_int, is_wanted)));
  lanes.n_unchanged =
      hn::Sub(lanes.n_unchanged, hn::VecFromMask(d_int, hn::RebindMask(d_int, is_unchanged)));
}

RowSums total_of(const Lanes& lanes) {
  constexpr std::size_t most = HWY_MAX_BYTES / sizeof(float);
  float base[most], wanted[most], error[most];
  std::int32_t n_wanted[most], n_unchanged[most];
  hn::StoreU(lanes.base, D(), base);
  hn::StoreU(lanes.wanted, D(), wanted);
  hn::StoreU(lanes.error, D(), error);
  hn::StoreU(lanes.n_wanted, DInt(), n_wanted);
  hn::StoreU(lanes.n_unchanged, DInt(), n_unchanged);
  RowSums sums;
  for (std::size_t i = 0; i < hn::Lanes(D()); ++i) {
    sums.base += static_cast<double>(base[i]);
    sums.wanted += static_cast<double>(wanted[i]);
    sums.error += static_cast<double>(error[i]);
    sums.n_wanted += n_wanted[i];
    sums.n_unchanged += n_unchanged[i];
  }
  return sums;
}

RowSums finish_row(Index columns, const std::uint8_t* base, const float* delta, std::uint8_t* out) {
  const D d;
  const DInt d_int;
  const auto n = static_cast<std::size_t>(columns);
  const std::size_t lanes = hn::Lanes(d);
  Lanes sums{hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d_int), hn::Zero(d_int)};
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    finish_vector(base + 2 * i, hn::LoadU(d, delta + i), out + 2 * i, sums);
  }
  if (i < n) {
    // Zeros count nowhere.
    std::uint8_t padded_base[HWY_MAX_BYTES] = {}, padded_out[HWY_MAX_BYTES];
    float padded_delta[HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(padded_base, base + 2 * i, 2 * (n - i));
    std::memcpy(padded_delta, delta + i, (n - i) * sizeof(float));
    finish_vector(padded_base, hn::LoadU(d, padded_delta), padded_out, sums);
    std::memcpy(out + 2 * i, padded_out, 2 * (n - i));
  }
  return total_of(sums);
}

void merge(const MergeTile& tile, RowSums* sums) {
  switch (tile.rows) {
    case 1:
      multiply<1>(tile);
      break;
    case 2:
      multiply<2>(tile);
      break;
    case 3:
      multiply<3>(tile);
      break;
    case 4:
      multiply<4>(tile);
      break;
    case 5:
      multiply<5>(tile);
      break;
    default:
      multiply<6>(tile);
  }
  for (Index row = 0; row < tile.rows; ++row) {
    sums[row] = finish_row(tile.columns, tile.base + row * tile.stride,
                           tile.delta + row * tile_columns, tile.out + row * tile.stride);
  }
}

}  // namespace
}  // namespace eckart::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart {
namespace {

HWY_EXPORT(panel_width);
HWY_EXPORT(pack);
HWY_EXPORT(merge);

}  // namespace

Index panel_columns() { return HWY_DYNAMIC_DISPATCH(panel_width)(); }

void pack_panels(Index columns, Index rank, const float* right_t, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack)(columns, rank, right_t, packed);
}

void merge_tile(const MergeTile& tile, RowSums* sums) { HWY_DYNAMIC_DISPATCH(merge)(tile, sums); }

}  // namespace eckart
#endif  // HWY_ONCE

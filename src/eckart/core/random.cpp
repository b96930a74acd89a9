#include "eckart/core/random.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace eckart {
namespace {

constexpr std::uint64_t multiplier_0 = 0xD2511F53;
constexpr std::uint64_t multiplier_1 = 0xCD9E8D57;
constexpr std::uint32_t weyl_0 = 0x9E3779B9;  // the golden ratio
constexpr std::uint32_t weyl_1 = 0xBB67AE85;  // sqrt(3) - 1
constexpr int rounds = 10;

// Elements that one piece of a parallel fill computes: long enough to hide the hand-over.
constexpr Index fill_grain = 1 << 14;

__extension__ using Wide = unsigned __int128;  // a product of two 64-bit numbers

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

std::uint64_t pair(std::uint32_t lower, std::uint32_t upper) {
  return static_cast<std::uint64_t>(upper) << 32 | lower;
}

// The top 53 bits as a multiple of 2^-53, so that every result is exact and below 1.
double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

template <class T>
void fill(std::span<T> out, const auto& value) {
  parallel_for(static_cast<Index>(out.size()), fill_grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      out[static_cast<std::size_t>(i)] = value(static_cast<std::uint64_t>(i));
    }
  });
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter[0];
    const std::uint64_t product_1 = multiplier_1 * counter[2];
    counter = {high(product_1) ^ counter[1] ^ key[0], low(product_1),
               high(product_0) ^ counter[3] ^ key[1], low(product_0)};
    key = {key[0] + weyl_0, key[1] + weyl_1};
  }
  return counter;
}

std::array<std::uint32_t, 4> RandomStream::block(std::uint64_t position) const {
  return philox4x32({low(position), high(position), low(stream_), high(stream_)},
                    {low(seed_), high(seed_)});
}

std::uint64_t RandomStream::bits(std::uint64_t position) const {
  const auto words = block(position);
  return pair(words[0], words[1]);
}

double RandomStream::uniform(std::uint64_t position) const { return to_unit(bits(position)); }

double RandomStream::normal(std::uint64_t position) const {
  const auto words = block(position);
  const double radius_uniform = 1.0 - to_unit(pair(words[0], words[1]));  // (0, 1]: its log exists
  const double angle = 2.0 * std::numbers::pi * to_unit(pair(words[2], words[3]));
  return std::sqrt(-2.0 * std::log(radius_uniform)) * std::cos(angle);
}

std::uint64_t RandomStream::below(std::uint64_t position, std::uint64_t bound) const {
  if (bound == 0) throw_argument_error("below: the bound is 0, but no integer lies in [0, 0)");
  // Lemire's multiply-shift on 64 bits; the bias of at most bound / 2^64 is removed by drawing
  // again, at the same position under the next key.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t drawn = RandomStream(seed_ + attempt, stream_).bits(position);
    const auto product = static_cast<Wide>(drawn) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) {
      return static_cast<std::uint64_t>(product >> 64);
    }
  }
}

template <class T>
void RandomStream::fill_normal(std::span<T> out, std::uint64_t first) const {
  fill(out, [&](std::uint64_t i) { return static_cast<T>(normal(first + i)); });
}

template <class T>
void RandomStream::fill_uniform(std::span<T> out, std::uint64_t first) const {
  const T largest_below_one = std::nextafter(T{1}, T{0});
  fill(out, [&](std::uint64_t i) {
    return std::min(static_cast<T>(uniform(first + i)), largest_below_one);
  });
}

template void RandomStream::fill_normal<float>(std::span<float>, std::uint64_t) const;
template void RandomStream::fill_normal<double>(std::span<double>, std::uint64_t) const;
template void RandomStream::fill_uniform<float>(std::span<float>, std::uint64_t) const;
template void RandomStream::fill_uniform<double>(std::span<double>, std::uint64_t) const;

}  // namespace eckart

// Seeded random streams: the same numbers on every machine and for every number of threads.
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011) is a counter-based generator: number i of stream s is a function of (seed, s, i), so that
// any thread can compute any part of a sequence without computing what stands before it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace eckart {

/// The Philox4x32-10 bijection of a 128-bit counter under a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// A sequence of random numbers, addressed by position.
class RandomStream {
 public:
  /// `seed` chooses the family of streams, `stream` one of its 2^64 independent members.
  explicit RandomStream(std::uint64_t seed, std::uint64_t stream = 0)
      : seed_(seed), stream_(stream) {}

  /// 64 random bits at `position`.
  std::uint64_t bits(std::uint64_t position) const;
  /// Uniform on [0, 1) with 53 random bits.
  double uniform(std::uint64_t position) const;
  /// Standard normal (Box-Muller on two uniforms of this position alone).
  double normal(std::uint64_t position) const;
  /// An integer of [0, bound), without modulo bias. Throws ArgumentError when `bound` is 0.
  std::uint64_t below(std::uint64_t position, std::uint64_t bound) const;

  /// Standard normals at positions first, first + 1, …: element i equals `normal(first + i)`
  /// rounded to T. T is float or double.
  template <class T>
  void fill_normal(std::span<T> out, std::uint64_t first = 0) const;
  /// Uniforms on [0, 1) at positions first, first + 1, …; for float never rounded up to 1.
  template <class T>
  void fill_uniform(std::span<T> out, std::uint64_t first = 0) const;

 private:
  std::array<std::uint32_t, 4> block(std::uint64_t position) const;

  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace eckart

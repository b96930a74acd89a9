#include "bench/memory_bandwidth.h"

#include "eckart/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/memory_bandwidth.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The bitwise or of everything, so that no load can be left out. `n` is a multiple of 256.
std::uint64_t read_piece(const std::uint8_t* in, std::size_t n) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* words = reinterpret_cast<const std::uint64_t*>(in);
  auto a = hn::Zero(d);
  auto b = a;
  auto c = a;
  auto e = a;
  for (std::size_t i = 0; i < n / 8; i += 4 * lanes) {
    a = hn::Or(a, hn::LoadU(d, words + i));
    b = hn::Or(b, hn::LoadU(d, words + i + lanes));
    c = hn::Or(c, hn::LoadU(d, words + i + 2 * lanes));
    e = hn::Or(e, hn::LoadU(d, words + i + 3 * lanes));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Or(hn::Or(a, b), hn::Or(c, e))));
}

// Each vector that is read is written `times` times.
void copy_piece(const std::uint64_t* in, std::size_t n_words, int times, std::uint64_t* out) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < n_words; i += lanes) {
    const auto words = hn::LoadU(d, in + i);
    for (int k = 0; k < times; ++k, out += lanes) hn::Stream(words, d, out);
  }
  hwy::FlushStream();
}

}  // namespace
}  // namespace eckart::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::bench {
namespace {

HWY_EXPORT(read_piece);
HWY_EXPORT(copy_piece);

constexpr std::size_t piece_bytes = 1 << 20;

}  // namespace

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<double> least_seconds(const std::vector<std::function<void()>>& works, int rounds) {
  std::vector<double> least(works.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < works.size(); ++i) least[i] = std::min(least[i], seconds(works[i]));
  }
  return least;
}

void read_memory(std::span<const std::byte> bytes) {
  static std::atomic<std::uint64_t> sink{0};
  const auto* const in = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto whole = static_cast<Index>(bytes.size() / 256 * 256);
  parallel_for(whole, piece_bytes, [&](Index begin, Index end) {
    sink |= HWY_DYNAMIC_DISPATCH(read_piece)(in + begin, static_cast<std::size_t>(end - begin));
  });
}

void copy_memory(std::span<const std::byte> in, std::span<std::byte> out) {
  const auto* const from = reinterpret_cast<const std::uint64_t*>(in.data());
  auto* const to = reinterpret_cast<std::uint64_t*>(out.data());
  const auto times = static_cast<Index>(out.size() / in.size());
  // Pieces of the output are as long as those that widen cuts.
  const Index grain = static_cast<Index>(piece_bytes / sizeof(std::uint64_t)) / times / 64 * 64;
  parallel_for(static_cast<Index>(in.size() / sizeof(std::uint64_t)), grain,
               [&](Index begin, Index end) {
                 HWY_DYNAMIC_DISPATCH(copy_piece)
                 (from + begin, static_cast<std::size_t>(end - begin), static_cast<int>(times),
                  to + begin * times);
               });
}

}  // namespace eckart::bench
#endif  // HWY_ONCE

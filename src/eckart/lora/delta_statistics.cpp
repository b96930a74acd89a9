#include "eckart/lora/delta_statistics.h"

#include <cstdint>

namespace eckart {
namespace {

constexpr Index lanes = 8;

// Lanes are summed apart and in one order, so that wider registers change the speed and not the
// result.
struct Lanes {
  double base[lanes] = {};
  double wanted[lanes] = {};
  double error[lanes] = {};
  std::int32_t n_wanted[lanes] = {};
  std::int32_t n_unchanged[lanes] = {};
};

[[gnu::always_inline]] inline void measure(Index n, const float* base, const float* delta,
                                           const float* realised, Lanes& sums) {
  for (Index i = 0; i < n; i += lanes) {
    for (Index lane = 0; lane < lanes; ++lane) {
      const auto b = static_cast<double>(base[i + lane]);
      const auto d = static_cast<double>(delta[i + lane]);
      const double change = static_cast<double>(realised[i + lane]) - b;
      const double error = change - d;
      sums.base[lane] += b * b;
      sums.wanted[lane] += d * d;
      sums.error[lane] += error * error;
    }
    for (Index lane = 0; lane < lanes; ++lane) {
      const std::int32_t is_wanted = delta[i + lane] != 0.0f ? 1 : 0;
      sums.n_wanted[lane] += is_wanted;
      sums.n_unchanged[lane] += is_wanted & (realised[i + lane] == base[i + lane] ? 1 : 0);
    }
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void measure_avx2(Index n, const float* base, const float* delta,
                                          const float* realised, Lanes& sums) {
  measure(n, base, delta, realised, sums);
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

double sum_of(const double* sums) {
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

Index sum_of(const std::int32_t* counts) {
  Index sum = 0;
  for (Index lane = 0; lane < lanes; ++lane) sum += counts[lane];
  return sum;
}

double root_of_ratio(double part, double whole) { return whole == 0 ? 0 : std::sqrt(part / whole); }

}  // namespace

void DeltaStatistics::add(const DeltaStatistics& other) {
  base_squares += other.base_squares;
  wanted_squares += other.wanted_squares;
  error_squares += other.error_squares;
  n_wanted += other.n_wanted;
  n_unchanged += other.n_unchanged;
}

double DeltaStatistics::relative_norm() const {
  return root_of_ratio(wanted_squares, base_squares);
}

double DeltaStatistics::swallowed() const { return root_of_ratio(error_squares, wanted_squares); }

double DeltaStatistics::unchanged_share() const {
  return n_wanted == 0 ? 0 : static_cast<double>(n_unchanged) / static_cast<double>(n_wanted);
}

DeltaStatistics delta_statistics(Index n, const float* base, const float* delta,
                                 const float* realised) {
  // The 32-bit counts of a lane hold pieces of this length.
  constexpr Index piece = Index{1} << 24;
  DeltaStatistics all;
  for (Index first = 0; first < n; first += piece) {
    const Index whole = (n - first < piece ? n - first : piece) / lanes * lanes;
    Lanes sums;
#if defined(__x86_64__)
    if (has_avx2()) {
      measure_avx2(whole, base + first, delta + first, realised + first, sums);
    } else {
      measure(whole, base + first, delta + first, realised + first, sums);
    }
#else
    measure(whole, base + first, delta + first, realised + first, sums);
#endif
    all.add({sum_of(sums.base), sum_of(sums.wanted), sum_of(sums.error), sum_of(sums.n_wanted),
             sum_of(sums.n_unchanged)});
  }
  const Index rest = n % lanes;
  if (rest == 0) return all;
  float last[3][lanes] = {};
  for (Index i = 0; i < rest; ++i) {
    last[0][i] = base[n - rest + i];
    last[1][i] = delta[n - rest + i];
    last[2][i] = realised[n - rest + i];
  }
  Lanes sums;
  measure(lanes, last[0], last[1], last[2], sums);
  all.add({sum_of(sums.base), sum_of(sums.wanted), sum_of(sums.error), sum_of(sums.n_wanted),
           sum_of(sums.n_unchanged)});
  return all;
}

}  // namespace eckart

// dot and norm against the rate at which the same bytes are read, in the same run and in turns: of
// 10^6 elements, which the caches hold, and of 10^8, which they don't.
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"
#include "eckart/core/tensor.h"
#include "eckart/linalg/norms.h"
#include "eckart/linalg/vectors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include <fmt/core.h>

namespace {

using eckart::Index;
using eckart::Tensor;

constexpr int rounds = 15;
constexpr double goal = 0.85;

template <class T>
Tensor<T> random_vector(Index n, std::uint64_t seed) {
  Tensor<T> x(eckart::Shape{n});
  constexpr Index period = 1 << 20;  // random numbers again and again
  const Index first = std::min(n, period);
  eckart::RandomStream(seed).fill_normal(std::span<T>(x.data(), static_cast<std::size_t>(first)));
  for (Index i = period; i < n; ++i) x(i) = x(i - period);
  return x;
}

template <class T>
std::span<const std::byte> bytes_of(const Tensor<T>& x) {
  return std::as_bytes(std::span<const T>(x.data(), static_cast<std::size_t>(x.count())));
}

// By a plain loop in long double.
template <class T>
bool is_right(const Tensor<T>& u, const Tensor<T>& v) {
  long double sum = 0;
  long double magnitude = 0;
  for (Index i = 0; i < u.count(); ++i) {
    const long double product = static_cast<long double>(u(i)) * static_cast<long double>(v(i));
    sum += product;
    magnitude += std::abs(product);
  }
  const auto error = std::abs(static_cast<long double>(eckart::dot(u, v)) - sum);
  if (error <= 1e-13L * magnitude) return true;
  fmt::print("wrong: dot is off by {} of {}\n", static_cast<double>(error),
             static_cast<double>(magnitude));
  return false;
}

// So often that a round takes milliseconds.
std::function<void()> repeated(Index times, const std::function<void()>& work) {
  return [times, work] {
    for (Index i = 0; i < times; ++i) work();
  };
}

template <class T>
bool run(std::string_view type, Index n) {
  const Tensor<T> u = random_vector<T>(n, 1);
  const Tensor<T> v = random_vector<T>(n, 2);
  if (!is_right(u, v)) return false;
  double sink = 0;
  const Index times = std::max<Index>(1, Index{20'000'000} / n);
  const std::vector<double> least = eckart::bench::least_seconds(
      {repeated(times, [&] { sink += eckart::dot(u, v); }),
       repeated(times,
                [&] {
                  eckart::bench::read_memory(bytes_of(u));
                  eckart::bench::read_memory(bytes_of(v));
                }),
       repeated(times, [&] { sink += eckart::norm(u); }),
       repeated(times, [&] { eckart::bench::read_memory(bytes_of(u)); })},
      rounds);
  const double gigabytes = static_cast<double>(times) * static_cast<double>(n) * sizeof(T) / 1e9;
  const double dot_ratio = least[1] / least[0];
  const double norm_ratio = least[3] / least[2];
  fmt::print("{:<8}{:>10}  dot {:>6.1f} GB/s {:>4.0f}%   norm {:>6.1f} GB/s {:>4.0f}%\n", type, n,
             2 * gigabytes / least[0], 100 * dot_ratio, gigabytes / least[2], 100 * norm_ratio);
  return dot_ratio >= goal && norm_ratio >= goal && std::isfinite(sink);
}

}  // namespace

int main() {
  fmt::print("share of the rate of reading the same bytes, {} threads, least of {} rounds\n",
             eckart::thread_count(), rounds);
  const eckart::bench::MachineLoad load;
  bool reached = true;
  for (const Index n : {Index{1'000'000}, Index{100'000'000}}) {
    reached = run<float>("float", n) && reached;
    reached = run<double>("double", n) && reached;
  }
  load.report();
  fmt::print("goal: at least {:.0f}% each: {}\n", 100 * goal, reached ? "reached" : "missed");
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

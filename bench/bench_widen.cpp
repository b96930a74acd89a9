// Widening of stored numbers against the bandwidth of the memory: the same bytes read and written
// by a copy with streaming stores, in the same run and in turns.
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"
#include "eckart/core/tensor.h"
#include "eckart/io/widen.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include <fmt/core.h>
#include <fmt/ranges.h>

namespace {

using eckart::Dtype;
using eckart::Index;
using eckart::Tensor;

// Far beyond the caches of any machine this is run on: 2 GiB of floats.
constexpr Index n_elements = Index{1} << 29;
constexpr int rounds = 7;
constexpr double goal = 0.80;

float reference(Dtype dtype, const std::uint8_t* in) {
  std::uint16_t word = 0;
  switch (dtype) {
    case Dtype::f16:
      std::memcpy(&word, in, 2);
      return eckart::f16_to_float(word);
    case Dtype::bf16:
      std::memcpy(&word, in, 2);
      return eckart::bf16_to_float(word);
    case Dtype::f8_e4m3:
      return eckart::f8_e4m3_to_float(*in);
    default:
      return eckart::f8_e5m2_to_float(*in);
  }
}

// Every element against the arithmetic on one number. A NaN stands for any NaN.
bool is_right(Dtype dtype, std::span<const std::byte> in, std::span<const float> out) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(in.data());
  const std::size_t size = static_cast<std::size_t>(eckart::bits(dtype)) / 8;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float expected = reference(dtype, bytes + i * size);
    if (std::isnan(expected) ? !std::isnan(out[i])
                             : std::memcmp(&expected, &out[i], sizeof(float)) != 0) {
      fmt::print("wrong: element {} of {} is {}, but it must be {}\n", i, to_string(dtype), out[i],
                 expected);
      return false;
    }
  }
  return true;
}

void fill_random(std::span<std::uint64_t> words) {
  const eckart::RandomStream random(1);
  constexpr std::size_t period = 1 << 20;  // 8 MiB of random bits, again and again
  for (std::size_t i = 0; i < words.size() && i < period; ++i) words[i] = random.bits(i);
  for (std::size_t i = period; i < words.size(); ++i) words[i] = words[i - period];
}

}  // namespace

int main() {
  Tensor<std::uint64_t> stored(eckart::Shape{n_elements / 4});
  Tensor<float> out(eckart::Shape{n_elements});
  fill_random({stored.data(), static_cast<std::size_t>(stored.count())});
  const std::span<float> floats(out.data(), static_cast<std::size_t>(n_elements));
  const std::span<const std::byte> all = std::as_bytes(
      std::span<const std::uint64_t>(stored.data(), static_cast<std::size_t>(stored.count())));

  fmt::print("widening to float, {} elements, {} threads, least of {} rounds\n", n_elements,
             eckart::thread_count(), rounds);
  fmt::print("{:<10}{:>14}{:>14}{:>9}\n", "from", "widen GB/s", "copy GB/s", "ratio");
  bool reached = true;
  const eckart::bench::MachineLoad load;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f8_e4m3, Dtype::f8_e5m2}) {
    const auto n_bytes = *eckart::stored_bytes(dtype, n_elements);
    const std::span<const std::byte> in = all.first(n_bytes);
    eckart::widen(dtype, in, floats);
    if (!is_right(dtype, in, floats.first(std::size_t{1} << 24))) return EXIT_FAILURE;
    const std::vector<double> least = eckart::bench::least_seconds(
        {[&] { eckart::widen(dtype, in, floats); },
         [&] { eckart::bench::copy_memory(in, std::as_writable_bytes(floats)); }},
        rounds);
    const double traffic = static_cast<double>(n_bytes + floats.size_bytes()) / 1e9;
    const double ratio = least[1] / least[0];
    reached = reached && ratio >= goal;
    fmt::print("{:<10}{:>14.1f}{:>14.1f}{:>8.0f}%\n", to_string(dtype), traffic / least[0],
               traffic / least[1], 100 * ratio);
  }
  load.report();
  fmt::print("goal: at least {:.0f}% each: {}\n", 100 * goal, reached ? "reached" : "missed");
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

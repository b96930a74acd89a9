// Fused attention against a product of matrices, decoding against a read of memory, and the memory
// that a long sequence takes.
#include "eckart/blas/gemm.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"
#include "eckart/core/tensor.h"
#include "eckart/io/npy.h"
#include "eckart/nn/attention.h"
#include "eckart/nn/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include "bench/serve.h"
#include <fmt/core.h>

namespace {

using eckart::Index;
using eckart::Tensor;
using eckart::TensorView;

constexpr int rounds = 5;
constexpr Index n_heads = 4;
constexpr Index context = 16'384;
constexpr Index d_decode = 128;
constexpr Index n_long = 65'536;
constexpr double goal_full = 0.75;
constexpr double goal_causal = 0.6;
constexpr double goal_odd = 1.15;
constexpr double goal_decode = 0.85;
constexpr double goal_scratch = 2 << 20;  // bytes a thread

Tensor<float> random(const eckart::Shape& shape, std::uint64_t seed) {
  Tensor<float> x = Tensor<float>::uninitialized(shape);
  eckart::RandomStream(seed).fill_normal(
      std::span<float>(x.data(), static_cast<std::size_t>(x.count())));
  return x;
}

struct Case {
  Index tokens, d_head;
  bool causal;
  Tensor<float> q, k, v;

  Case(Index n, Index d, bool is_causal, Index heads = n_heads)
      : tokens(n),
        d_head(d),
        causal(is_causal),
        q(random({heads, n, d}, 1)),
        k(random({heads, n, d}, 2)),
        v(random({heads, n, d}, 3)) {}

  Tensor<float> run() const { return eckart::attention(q, k, v, {.causal = causal}); }
  // Two products of 2 d FLOPs for each pair that is seen.
  double flops() const {
    const double n = static_cast<double>(tokens);
    const double pairs = causal ? n * (n + 1) / 2 : n * n;
    return 4 * pairs * static_cast<double>(d_head * q.size(0));
  }
};

// Whether some rows are the formula's, in double.
bool is_right(const Case& c) {
  const Tensor<float> out = c.run();
  const double scale = 1 / std::sqrt(static_cast<double>(c.d_head));
  for (Index row = 0; row < c.tokens; row += c.tokens / 7) {
    const Index n = c.causal ? row + 1 : c.tokens;
    std::vector<double> weights(static_cast<std::size_t>(n));
    double sum = 0;
    for (Index j = 0; j < n; ++j) {
      double score = 0;
      for (Index i = 0; i < c.d_head; ++i) {
        score += static_cast<double>(c.q(1, row, i)) * static_cast<double>(c.k(1, j, i));
      }
      sum += weights[static_cast<std::size_t>(j)] = std::exp(score * scale);
    }
    for (Index i = 0; i < c.d_head; i += 5) {
      double mixed = 0;
      for (Index j = 0; j < n; ++j) {
        mixed += weights[static_cast<std::size_t>(j)] * static_cast<double>(c.v(1, j, i));
      }
      if (!(std::abs(mixed / sum - static_cast<double>(out(1, row, i))) < 1e-5)) return false;
    }
  }
  return true;
}

// The most memory that this process has had, in bytes.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kib = 0;
    status >> kib;
    return kib * 1024;
  }
  return 0;
}

// What a long sequence takes beside its arguments and its result, in bytes.
double scratch_of_a_long_sequence() {
  const Case c(n_long, 64, true, 1);
  const double before = peak_memory();
  const Tensor<float> out = c.run();
  return std::max(0.0, peak_memory() - before - static_cast<double>(out.count() * 4));
}

// A token's attention to a full cache.
struct Decoding {
  Index kv_heads;
  eckart::KvCache<float> cache;
  Tensor<float> q = random({32, 1, d_decode}, 4);

  explicit Decoding(Index heads)
      : kv_heads(heads),
        cache({.n_kv_heads = heads, .d_head = d_decode, .precision = eckart::KvPrecision::bf16}) {
    constexpr Index piece = 1024;
    const Tensor<float> k = random({heads, piece, d_decode}, 5);
    for (Index i = 0; i < context; i += piece) cache.append(k, k);
  }
  void run() const { static_cast<void>(cache.attend(q)); }
};

void print_products(const std::string& name, double time, double flops, double probe) {
  fmt::print("{:<44}{:>9.3f} s{:>9.1f} GFLOP/s{:>7.0f}%\n", name, time, flops / time / 1e9,
             100 * flops / time / probe);
}

int run() {
  const double scratch = scratch_of_a_long_sequence();
  const double scratch_allowed = goal_scratch * eckart::thread_count() + (1 << 20);
  fmt::print("{} tokens: {:.1f} MB beside arguments and result (2 MiB a thread and 1 MiB: {})\n",
             n_long, scratch / 1e6, scratch <= scratch_allowed ? "reached" : "missed");

  const std::vector<Case> cases = [] {
    std::vector<Case> list;
    for (const bool causal : {false, true}) {
      for (const Index tokens : {512, 4096}) {
        for (const Index d : {64, 128}) list.emplace_back(tokens, d, causal);
      }
    }
    for (const Index d : {72, 80, 96, 112}) list.emplace_back(2048, d, false);
    return list;
  }();
  for (const Case& c : cases) {
    if (is_right(c)) continue;
    fmt::print("wrong: {} tokens, d_head {}: not what double gives\n", c.tokens, c.d_head);
    return EXIT_FAILURE;
  }
  constexpr Index n = 2048;
  const Tensor<float> a = random({n, n}, 8), b = random({n, n}, 9);
  Tensor<float> product({n, n});
  std::vector<std::function<void()>> works{[&] { eckart::blas::gemm<float>(1, a, b, 0, product); }};
  for (const Case& c : cases) works.emplace_back([&c] { static_cast<void>(c.run()); });
  const Decoding grouped(8), equal(32);
  const std::vector<std::byte> bytes(equal.cache.bytes(), std::byte{1});
  const std::span<const std::byte> all(bytes), some = all.first(grouped.cache.bytes());
  const std::size_t first_decoding = works.size();
  works.insert(works.end(), {[&] { eckart::bench::read_memory(all); }, [&] { equal.run(); },
                             [&] { eckart::bench::read_memory(some); }, [&] { grouped.run(); }});
  const eckart::bench::MachineLoad load;
  const std::vector<double> least = eckart::bench::least_seconds(works, rounds);

  fmt::print(
      "{} heads of floats, {} threads, least of {} rounds; causal counts the pairs it needs\n",
      n_heads, eckart::thread_count(), rounds);
  const double probe = 2.0 * n * n * n / least[0];
  print_products("probe: product of matrices, 2048", least[0], 2.0 * n * n * n, probe);
  double full = 0, causal = 0, worst_odd = 0;
  std::vector<double> per_width;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const double time = least[i + 1];
    print_products(
        fmt::format("{} tokens, d_head {}{}", c.tokens, c.d_head, c.causal ? ", causal" : ""), time,
        c.flops(), probe);
    const double rate = c.flops() / time / probe;
    if (c.tokens == 4096 && c.d_head == 128) (c.causal ? causal : full) = rate;
    if (c.tokens == 2048) per_width.push_back(rate);
  }
  // 72 beside 80, and 80 and 96 beside the next one.
  for (std::size_t i = 0; i + 1 < per_width.size(); ++i) {
    worst_odd = std::max(worst_odd, per_width[i + 1] / per_width[i]);
  }
  const auto decode = [&](const std::string& name, std::size_t at, double size) {
    fmt::print("{:<44}{:>9.2f} ms{:>8.1f} GB/s   {:>7.0f}%\n", name, 1e3 * least[at + 1],
               size / 1e9 / least[at + 1], 100 * least[at] / least[at + 1]);
    return least[at] / least[at + 1];
  };
  fmt::print("probe: read of memory{:>34.1f} GB/s\n",
             static_cast<double>(all.size()) / 1e9 / least[first_decoding]);
  const double of_equal = decode(fmt::format("one token at {}, 32 heads, bf16", context),
                                 first_decoding, static_cast<double>(all.size()));
  const double of_grouped = decode(fmt::format("one token at {}, 32 heads on 8, bf16", context),
                                   first_decoding + 2, static_cast<double>(some.size()));
  load.report();
  const bool reached = full >= goal_full && causal >= goal_causal && worst_odd <= goal_odd &&
                       std::min(of_equal, of_grouped) >= goal_decode && scratch <= scratch_allowed;
  fmt::print(
      "goal: at 4096 tokens and d_head 128 {:.0f}% of the product and causal {:.0f}%, rates "
      "of odd widths within {:.0f}%, decoding at {:.0f}% of the read: {}\n",
      100 * goal_full, 100 * goal_causal, 100 * (goal_odd - 1), 100 * goal_decode,
      reached ? "reached" : "missed");
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

// For bench/peers/compare: q, k and v of head x token x d_head, and whether it is causal.
int serve(char** paths, bool causal) {
  const auto q = eckart::load_npy<float>(paths[0]);
  const auto k = eckart::load_npy<float>(paths[1]);
  const auto v = eckart::load_npy<float>(paths[2]);
  Tensor<float> out;
  eckart::bench::serve([&] { out = eckart::attention(q, k, v, {.causal = causal}); },
                       [&] {
                         // Some of it, for the check.
                         std::string text;
                         for (Index i = 0; i < out.count(); i += out.count() / 1000) {
                           text += (text.empty() ? "[" : ", ") + fmt::format("{}", out.data()[i]);
                         }
                         return text + "]";
                       });
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  return argc == 5 ? serve(argv + 1, std::string(argv[4]) == "causal") : run();
}

// Cutting the modules of a rank-128 adapter to rank 16 through their factors, against forming each
// product and decomposing it with LAPACK, as most tools do.
//
//   bench_lora_resize             the shapes of one layer of a model of 7B
#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/core/random.h"
#include "eckart/core/tensor.h"
#include "eckart/lora/factored_svd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include <fmt/core.h>

namespace {

using eckart::Index;
using eckart::Tensor;

constexpr Index rank_before = 128;
constexpr Index rank_after = 16;
constexpr int rounds = 3;
constexpr double goal = 100;

// Of a layer of 7 modules; 224 are 32 layers of them.
struct Module {
  const char* name;
  Index d_out;
  Index d_in;
  Index n;  // of one layer
};
constexpr Module modules[] = {
    {"q, k, v, o", 4096, 4096, 4}, {"gate, up", 11008, 4096, 2}, {"down", 4096, 11008, 1}};

Tensor<float> random_matrix(Index rows, Index columns, std::uint64_t seed) {
  Tensor<float> a = Tensor<float>::uninitialized({rows, columns});
  eckart::RandomStream(seed).fill_normal(
      std::span<float>(a.data(), static_cast<std::size_t>(a.count())));
  return a;
}

// Everything that resize does with a module but reading and writing it.
double cut(const Tensor<float>& b, const Tensor<float>& a) {
  const eckart::Svd<double> svd = eckart::factored_svd(b, a, 0.5);
  const auto cut = eckart::balanced_factors(svd, rank_after);
  return eckart::product_distance({cut.b, cut.a, 1}, {b, a, 0.5});
}

// The product and its whole decomposition with vectors; returns what lies behind rank_after.
double cut_densely(const Tensor<float>& b, const Tensor<float>& a) {
  const Index m = b.size(0), n = a.size(1), k = std::min(m, n);
  Tensor<float> w = Tensor<float>::uninitialized({m, n});
  eckart::blas::gemm<float>(0.5F, b, a, 0, w.view());
  Tensor<float> s({k}), u({m, k}), vt({k, n});
  // LAPACK's matrix is the transpose: its u is n x k.
  eckart::blas::gesdd<float>(n, m, w.data(), n, s.data(), vt.data(), n, u.data(), k);
  double lost = 0;
  for (Index i = k; i-- > rank_after;) lost = std::hypot(lost, static_cast<double>(s(i)));
  return lost;
}

}  // namespace

int main() {
  const eckart::bench::MachineLoad load;
  double own_layer = 0, dense_layer = 0;
  bool agree = true;
  fmt::print("  {:<12}{:>16}{:>12}{:>12}{:>10}\n", "module", "shape", "factors ms", "product s",
             "ratio");
  for (const Module& module : modules) {
    const Tensor<float> b = random_matrix(module.d_out, rank_before, 1);
    const Tensor<float> a = random_matrix(rank_before, module.d_in, 2);
    double error = 0, dense_error = 0;
    const double own = eckart::bench::least_seconds({[&] { error = cut(b, a); }}, rounds).front();
    const double dense = eckart::bench::seconds([&] { dense_error = cut_densely(b, a); });
    agree = agree && std::abs(error - dense_error) <= 1e-4 * dense_error;
    fmt::print("  {:<12}{:>16}{:>12.1f}{:>12.2f}{:>10.0f}\n", module.name,
               fmt::format("{} x {}", module.d_out, module.d_in), 1e3 * own, dense, dense / own);
    own_layer += static_cast<double>(module.n) * own;
    dense_layer += static_cast<double>(module.n) * dense;
  }
  constexpr double layers = 32;
  const double ratio = dense_layer / own_layer;
  fmt::print("224 modules: {:.1f} s by factors, {:.0f} s by products: {:.0f} times faster\n",
             layers * own_layer, layers * dense_layer, ratio);
  load.report();
  if (!agree) fmt::print("the two do not lose the same\n");
  fmt::print("goals: {}\n", agree && ratio >= goal ? "reached" : "missed");
  return agree && ratio >= goal ? EXIT_SUCCESS : EXIT_FAILURE;
}

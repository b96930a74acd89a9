// Principal components of activation-like rows against a product of matrices of as many FLOPs.
#include "eckart/blas/gemm.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"
#include "eckart/core/tensor.h"
#include "eckart/io/npy.h"
#include "eckart/linalg/pca.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include "bench/serve.h"
#include <fmt/core.h>
#include <fmt/ranges.h>

namespace {

using eckart::Index;
using eckart::Tensor;
using eckart::TensorView;

constexpr Index n_rows = 200'000;
constexpr Index width = 768;
constexpr Index n_components = 50;
constexpr int rounds = 5;
constexpr double goal = 0.75;
constexpr double largest_error = 1e-6;

Tensor<float> random_matrix(Index rows, Index columns, std::uint64_t seed) {
  Tensor<float> matrix = Tensor<float>::uninitialized({rows, columns});
  eckart::parallel_for(rows, 512, [&](Index begin, Index end) {
    const auto count = static_cast<std::size_t>((end - begin) * columns);
    eckart::RandomStream(seed).fill_normal(std::span<float>(matrix.data() + begin * columns, count),
                                           static_cast<std::uint64_t>(begin * columns));
  });
  return matrix;
}

// Variances that fall as 1 / i in mixed directions, around means of about 10.
Tensor<float> activations() {
  const Tensor<float> normal = random_matrix(n_rows, width, 1);
  Tensor<float> mix = random_matrix(width, width, 2);
  for (Index i = 0; i < width; ++i) {
    const auto deviation =
        static_cast<float>(1 / std::sqrt(static_cast<double>(i + 1) * static_cast<double>(width)));
    for (Index j = 0; j < width; ++j) mix(i, j) *= deviation;
  }
  Tensor<float> x = Tensor<float>::uninitialized({n_rows, width});
  eckart::blas::gemm<float>(1, normal, mix, 0, x);
  const Tensor<float> mean = random_matrix(1, width, 3);
  for (Index i = 0; i < x.count(); ++i) x.data()[i] += 10 * mean.data()[i % width];
  return x;
}

int run() {
  const Tensor<float> x = activations();
  const eckart::Pca<float> found = eckart::pca(x, {.k = n_components});
  const auto exact = eckart::pca<float>(eckart::pca_state(x), {.k = n_components});
  double error = 0;
  for (Index i = 0; i < n_components; ++i) {
    error =
        std::max(error, std::abs(found.explained_variance(i) / exact.explained_variance(i) - 1));
  }
  fmt::print("{} components of {}x{} floats, {} threads, least of {} rounds\n", n_components,
             n_rows, width, eckart::thread_count(), rounds);
  fmt::print("largest relative error of an eigenvalue against double: {:.1e}\n", error);
  if (!(error <= largest_error)) {
    fmt::print("wrong: the error is above {:.0e}\n", largest_error);
    return EXIT_FAILURE;
  }
  // As many FLOPs as the triangle of x^T x.
  const TensorView<const float> half =
      TensorView<const float>(x.view()).slice(0, {0, n_rows / 2, 1});
  Tensor<float> product({width, width});
  const eckart::bench::MachineLoad load;
  const std::vector<double> least = eckart::bench::least_seconds(
      {[&] { eckart::blas::gemm<float>(1, half.transpose(), half, 0, product); },
       [&] { static_cast<void>(eckart::pca(x, {.k = n_components})); },
       [&] { static_cast<void>(eckart::pca_state(x, eckart::PcaProducts::in_float)); },
       [&] { static_cast<void>(eckart::pca_state(x)); }},
      rounds);
  const double flops = static_cast<double>(n_rows) * width * width / 1e9;
  const auto row = [&](const char* name, double time) {
    fmt::print("{:<44}{:>9.3f} s{:>9.1f} GFLOP/s{:>7.0f}%\n", name, time, flops / time,
               100 * least[0] / time);
  };
  row("probe: product of matrices, as many FLOPs", least[0]);
  row("pca", least[1]);
  row("pca_state, products of floats", least[2]);
  row("pca_state, products of doubles", least[3]);
  load.report();
  const bool reached = least[0] / least[1] >= goal;
  fmt::print("goal: pca at least {:.0f}% of the product: {}\n", 100 * goal,
             reached ? "reached" : "missed");
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

// For bench/peers/compare: X.npy and the number of components.
int serve(const std::string& path, Index k) {
  const auto x = eckart::load_npy<float>(path);
  eckart::Pca<float> model;
  eckart::bench::serve([&] { model = eckart::pca(x, {.k = k}); },
                       [&] {
                         return fmt::format("[{}]",
                                            fmt::join(model.explained_variance.data(),
                                                      model.explained_variance.data() + k, ", "));
                       });
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) { return argc == 3 ? serve(argv[1], std::atoll(argv[2])) : run(); }

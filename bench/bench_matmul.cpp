// Products of matrices against OpenBLAS on as many threads, at the shapes that models and block
// methods have.
#include "eckart/blas/gemm.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"
#include "eckart/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include <cblas.h>
#include <fmt/core.h>

namespace {

using eckart::Index;
using eckart::Tensor;

constexpr int rounds = 7;
constexpr double goal = 0.95;

struct Sizes {
  Index m, n, k;
  bool transposed;  // the first factor is stored k x m
};

template <class T>
Tensor<T> normals(Index rows, Index columns, std::uint64_t stream) {
  Tensor<T> matrix = Tensor<T>::uninitialized({rows, columns});
  eckart::RandomStream(1, stream).fill_normal(
      std::span<T>(matrix.data(), static_cast<std::size_t>(matrix.count())));
  return matrix;
}

template <class T>
void peer(const Sizes& sizes, const Tensor<T>& a, const Tensor<T>& b, Tensor<T>& c) {
  const auto size = [](Index count) { return static_cast<blasint>(count); };
  const CBLAS_TRANSPOSE transposition = sizes.transposed ? CblasTrans : CblasNoTrans;
  if constexpr (std::is_same_v<T, float>) {
    cblas_sgemm(CblasRowMajor, transposition, CblasNoTrans, size(sizes.m), size(sizes.n),
                size(sizes.k), 1, a.data(), size(a.size(1)), b.data(), size(sizes.n), 0, c.data(),
                size(sizes.n));
  } else {
    cblas_dgemm(CblasRowMajor, transposition, CblasNoTrans, size(sizes.m), size(sizes.n),
                size(sizes.k), 1, a.data(), size(a.size(1)), b.data(), size(sizes.n), 0, c.data(),
                size(sizes.n));
  }
}

// Largest difference, relative to the size of the sums.
template <class T>
double difference(const Tensor<T>& a, const Tensor<T>& b, Index k) {
  double largest = 0;
  for (Index i = 0; i < a.count(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a.data()[i] - b.data()[i])));
  }
  return largest / std::sqrt(static_cast<double>(k));
}

template <class T>
bool measure(const Sizes& sizes) {
  const Tensor<T> a =
      sizes.transposed ? normals<T>(sizes.k, sizes.m, 1) : normals<T>(sizes.m, sizes.k, 1);
  const Tensor<T> b = normals<T>(sizes.k, sizes.n, 2);
  Tensor<T> own({sizes.m, sizes.n}), theirs({sizes.m, sizes.n});
  const auto left = sizes.transposed ? a.view().transpose() : a.view();
  const std::vector<double> least =
      eckart::bench::least_seconds({[&] { eckart::blas::gemm<T>(1, left, b, 0, own.view()); },
                                    [&] {
                                      openblas_set_num_threads(eckart::thread_count());
                                      peer(sizes, a, b, theirs);
                                      openblas_set_num_threads(1);
                                    }},
                                   rounds);
  const double bound = 100 * static_cast<double>(std::numeric_limits<T>::epsilon());
  const bool is_right = difference(own, theirs, sizes.k) < bound;
  const double flops = 2e-9 * static_cast<double>(sizes.m * sizes.n) * static_cast<double>(sizes.k);
  fmt::print("{:<7}{:>6} x {:>5} x {:>5}{:<4}{:>10.1f}{:>10.1f}{:>9.0f}%{}\n",
             std::is_same_v<T, float> ? "float" : "double", sizes.m, sizes.n, sizes.k,
             sizes.transposed ? " A^T" : "", flops / least[0], flops / least[1],
             100 * least[1] / least[0], is_right ? "" : "  wrong");
  return is_right && least[1] / least[0] >= goal;
}

}  // namespace

int main() {
  fmt::print("{:<7}{:>21}{:<4}{:>10}{:>10}{:>10}\n", "", "m x n x k", "", "own GF/s", "OpenBLAS",
             "ratio");
  bool reached = true;
  const eckart::bench::MachineLoad load;
  for (const Sizes& sizes : {Sizes{4096, 4096, 4096, false},
                             {1000, 1000, 1000, false},
                             {4096, 16, 4096, false},
                             {4096, 16, 4096, true},
                             {4096, 64, 4096, false},
                             {4096, 64, 4096, true},
                             {4096, 128, 4096, false},
                             {4096, 128, 4096, true},
                             {512, 4096, 4096, false},
                             {64, 64, 100'000, true}}) {
    reached = measure<float>(sizes) && reached;
  }
  for (const Sizes& sizes : {Sizes{2048, 2048, 2048, false}, {4096, 64, 4096, true}}) {
    reached = measure<double>(sizes) && reached;
  }
  load.report();
  fmt::print("goal: at least {:.0f}% each: {}\n", 100 * goal, reached ? "reached" : "missed");
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

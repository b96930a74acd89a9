// The truncated SVD of a weight-like matrix against LAPACK's whole one and against the products it
// is made of; all singular values against LAPACK's.
//
//   bench_low_rank                                    everything, 4096 x 4096
//   bench_low_rank --serve X.npy RANK TOLERANCE       for bench/peers/compare
//   bench_low_rank --serve-exact X.npy RANK           the same by the exact method
//   bench_low_rank --serve-values X.npy               all singular values
//   bench_low_rank --write weight_like|flat N X.npy   the matrix that is measured
#include "eckart/blas/bf16_tiles.h"
#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/core/random.h"
#include "eckart/io/npy.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/linalg/singular_values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include "bench/serve.h"
#include "bench/weight_like.h"
#include <fmt/core.h>

namespace {

using eckart::Index;
using eckart::LowRank;
using eckart::LowRankOptions;
using eckart::Tensor;

constexpr Index size = 4096;
constexpr int rounds = 5;

// What is asked of each rank: the largest excess over the least possible error, and with which
// tolerance it is reached.
struct Case {
  Index rank;
  double tolerance;
  double largest_excess;
  double least_speedup;  // over sgesdd, values only; 0: none asked
};
constexpr Case cases[] = {{16, 3e-4, 1e-4, 50}, {64, 5e-4, 1e-3, 0}, {256, 1e-2, 1e-2, 0}};

double least_error(const Tensor<double>& values, Index rank) {
  double sum = 0;
  for (Index i = values.count(); i-- > rank;) sum += values(i) * values(i);
  return std::sqrt(sum);
}

// Seconds of a product with `columns` columns, A and A^T in turns.
double product_seconds(const Tensor<float>& a, Index columns) {
  Tensor<float> x({a.size(1), columns}, 1.0F);
  Tensor<float> y({a.size(0), columns});
  const std::vector<double> least = eckart::bench::least_seconds(
      {[&] { eckart::blas::gemm<float>(1, a, x, 0, y.view()); },
       [&] { eckart::blas::gemm<float>(1, a.view().transpose(), x, 0, y.view()); }},
      rounds);
  return (least[0] + least[1]) / 2;
}

struct Reference {
  Tensor<double> values;
  double svd_seconds = 0;  // sgesdd, values only
};

// Singular values, ours and LAPACK's of the same matrix.
Reference measure_values(const Tensor<float>& a, bool& reached) {
  Reference reference;
  double own = 1e30;
  for (int round = 0; round < 2; ++round) {
    own = std::min(
        own, eckart::bench::seconds([&] { reference.values = eckart::singular_values(a).values; }));
  }
  const Index m = a.size(0), n = a.size(1);
  Tensor<float> copy(a);
  Tensor<float> values({std::min(m, n)});
  reference.svd_seconds = eckart::bench::seconds([&] {
    eckart::blas::gesdd<float>(n, m, copy.data(), n, values.data(), nullptr, 1, nullptr, 1);
  });
  double difference = 0;
  for (Index i = 0; i < values.count(); ++i) {
    difference =
        std::max(difference, std::abs(static_cast<double>(values(i)) - reference.values(i)));
  }
  const double speedup = reference.svd_seconds / own;
  fmt::print(
      "  all singular values: {:.2f} s, sgesdd {:.2f} s: {:.2f} times faster; they differ by "
      "at most {:.1e} sigma_1\n",
      own, reference.svd_seconds, speedup, difference / reference.values(0));
  reached = reached && speedup >= 2 && difference < 1e-5 * reference.values(0);
  return reference;
}

void measure_low_rank(const Tensor<float>& a, const Reference& reference, bool& reached) {
  fmt::print("  {:>5}{:>11}{:>9}{:>11}{:>8}{:>14}{:>18}\n", "rank", "tolerance", "ms", "excess",
             "passes", "sgesdd / own", "products / own");
  for (const Case& one : cases) {
    LowRank<float> found;
    const std::vector<double> least = eckart::bench::least_seconds(
        {[&] { found = eckart::low_rank(a, {.rank = one.rank, .tolerance = one.tolerance}); }},
        rounds);
    const double excess = found.frobenius_error / least_error(reference.values, found.rank) - 1;
    const Index columns = one.rank <= 16 ? 16 : one.rank <= 128 ? 32 : 64;
    // A pass by tiles is two products, there and back; the first pass is the norm.
    const double a_pass = eckart::blas::has_bf16_tiles() ? 2 : 1;
    const double products =
        a_pass * static_cast<double>(found.passes - 1) * product_seconds(a, columns);
    const double speedup = reference.svd_seconds / least[0];
    reached = reached && excess <= one.largest_excess && speedup >= one.least_speedup;
    fmt::print("  {:>5}{:>11.0e}{:>9.1f}{:>11.1e}{:>8}{:>14.1f}{:>17.0f}%\n", one.rank,
               one.tolerance, 1e3 * least[0], excess, found.passes, speedup,
               100 * products / least[0]);
  }
}

int measure_all() {
  bool reached = true;
  const eckart::bench::MachineLoad load;
  for (const bool has_spikes : {true, false}) {
    const Tensor<float> a =
        has_spikes ? eckart::bench::weight_like(size) : eckart::bench::flat(size);
    fmt::print("{0} {1} x {1}\n", has_spikes ? "weight-like" : "flat", size);
    const Reference reference = measure_values(a, reached);
    measure_low_rank(a, reference, reached);
    LowRank<float> found;
    const double exact =
        eckart::bench::seconds([&] { found = eckart::low_rank(a, {.rank = 512, .exact = true}); });
    fmt::print("  exact, all values and 512 vectors: {:.2f} s, excess {:.1e}\n", exact,
               found.frobenius_error / least_error(reference.values, 512) - 1);
  }
  load.report();
  fmt::print("goals: {}\n", reached ? "reached" : "missed");
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

std::string list_of(const LowRank<float>& found) {
  return fmt::format("{{\"error\": {}, \"norm\": {}, \"passes\": {}}}", found.frobenius_error,
                     found.frobenius_norm, found.passes);
}

int serve(const std::string& kind, const std::vector<std::string>& given) {
  const Tensor<float> a = eckart::load_npy<float>(given.at(0));
  if (kind == "--serve-values") {
    Tensor<double> values;
    eckart::bench::serve([&] { values = eckart::singular_values(a).values; },
                         [&] {
                           std::string list = "[";
                           for (Index i = 0; i < values.count(); ++i) {
                             list += fmt::format("{}{}", i > 0 ? ", " : "", values(i));
                           }
                           return list + "]";
                         });
    return EXIT_SUCCESS;
  }
  LowRankOptions options{.rank = std::stoll(given.at(1))};
  if (kind == "--serve-exact") {
    options.exact = true;
  } else {
    options.tolerance = std::stod(given.at(2));
  }
  LowRank<float> found;
  eckart::bench::serve([&] { found = eckart::low_rank(a, options); },
                       [&] { return list_of(found); });
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return measure_all();
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  const std::map<std::string, std::size_t> n_operands = {
      {"--write", 3}, {"--serve", 3}, {"--serve-exact", 2}, {"--serve-values", 1}};
  const auto wanted = n_operands.find(arguments[0]);
  if (wanted == n_operands.end() || wanted->second != rest.size()) {
    fmt::print(stderr, "usage: see the first lines of bench/bench_low_rank.cpp\n");
    return 2;
  }
  if (arguments[0] == "--write") {
    const Index n = std::stoll(rest.at(1));
    eckart::save_npy(rest.at(2),
                     rest.at(0) == "flat" ? eckart::bench::flat(n) : eckart::bench::weight_like(n));
    return EXIT_SUCCESS;
  }
  return serve(arguments[0], rest);
}

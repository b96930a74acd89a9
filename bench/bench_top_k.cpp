// Nearest neighbours of many queries against a product of matrices of as many FLOPs, and of one
// query against a read of memory.
#include "eckart/blas/gemm.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"
#include "eckart/core/tensor.h"
#include "eckart/io/npy.h"
#include "eckart/linalg/top_k.h"

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
using eckart::Metric;
using eckart::Tensor;
using eckart::TensorView;

constexpr Index n_items = 200'000;
constexpr Index n_queries = 1000;
constexpr Index width = 768;
constexpr Index k = 10;
constexpr int rounds = 5;
constexpr double goal_many = 0.9;
constexpr double goal_one = 0.85;

// Rows of length 1 in clusters, as embeddings are.
Tensor<float> embeddings(Index rows, std::uint64_t seed) {
  constexpr Index n_clusters = 500;
  Tensor<float> centers = Tensor<float>::uninitialized({n_clusters, width});
  eckart::RandomStream(1).fill_normal(
      std::span<float>(centers.data(), static_cast<std::size_t>(centers.count())));
  Tensor<float> x = Tensor<float>::uninitialized({rows, width});
  eckart::parallel_for(rows, 256, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      float* const row = x.data() + i * width;
      eckart::RandomStream(seed, static_cast<std::uint64_t>(i))
          .fill_normal(std::span<float>(row, static_cast<std::size_t>(width)));
      double square = 0;
      for (Index j = 0; j < width; ++j) {
        row[j] += centers(i % n_clusters, j);
        square += static_cast<double>(row[j]) * static_cast<double>(row[j]);
      }
      for (Index j = 0; j < width; ++j) row[j] *= static_cast<float>(1 / std::sqrt(square));
    }
  });
  return x;
}

// Whether these are the k best dot products of a query, in double.
bool is_right(const Tensor<float>& queries, const Tensor<float>& items,
              const eckart::TopK<float>& found, Index query) {
  struct Scored {
    double score;
    Index item;
  };
  std::vector<Scored> scored(static_cast<std::size_t>(n_items));
  eckart::parallel_for(n_items, 1024, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      double sum = 0;
      for (Index j = 0; j < width; ++j) {
        sum += static_cast<double>(queries(query, j)) * static_cast<double>(items(i, j));
      }
      scored[static_cast<std::size_t>(i)] = {sum, i};
    }
  });
  std::partial_sort(scored.begin(), scored.begin() + k, scored.end(),
                    [](const Scored& a, const Scored& b) {
                      return a.score != b.score ? a.score > b.score : a.item < b.item;
                    });
  for (Index i = 0; i < k; ++i) {
    if (found.indices(query, i) != scored[static_cast<std::size_t>(i)].item) return false;
  }
  return true;
}

int run() {
  const Tensor<float> items = embeddings(n_items, 2);
  const Tensor<float> queries = embeddings(n_queries, 3);
  const TensorView<const float> one = TensorView<const float>(queries.view()).slice(0, {0, 1, 1});
  const eckart::TopK<float> found = eckart::top_k(queries, items, {.k = k});
  for (Index query = 0; query < n_queries; query += 199) {
    if (!is_right(queries, items, found, query)) {
      fmt::print("wrong: the neighbors of query {} are not those of double\n", query);
      return EXIT_FAILURE;
    }
  }
  // The probe multiplies blocks of items, so that its result stays small.
  constexpr Index block = 8192;
  Tensor<float> product({n_queries, block});
  const auto multiply = [&] {
    for (Index first = 0; first + block <= n_items; first += block) {
      const auto rows = TensorView<const float>(items.view()).slice(0, {first, first + block, 1});
      eckart::blas::gemm<float>(1, queries, rows.transpose(), 0, product);
    }
  };
  const double share = static_cast<double>(n_items / block * block) / n_items;
  const auto search = [&](const auto& of, Metric metric) {
    static_cast<void>(eckart::top_k<float>(of, items, {.k = k, .metric = metric}));
  };
  const auto bytes =
      std::as_bytes(std::span<const float>(items.data(), static_cast<std::size_t>(items.count())));
  const eckart::bench::MachineLoad load;
  const std::vector<double> least = eckart::bench::least_seconds(
      {multiply, [&] { search(queries, Metric::dot); }, [&] { search(queries, Metric::cosine); },
       [&] { search(queries, Metric::l2); }, [&] { eckart::bench::read_memory(bytes); },
       [&] { search(one, Metric::dot); }, [&] { search(one, Metric::cosine); },
       [&] { search(one, Metric::l2); }},
      rounds);
  fmt::print("top {} of {}x{} floats, {} threads, least of {} rounds\n", k, n_items, width,
             eckart::thread_count(), rounds);
  const double product_time = least[0] / share;
  const double flops = 2.0 * n_items * n_queries * width / 1e9;
  const auto many = [&](const std::string& name, double time) {
    fmt::print("{:<44}{:>9.3f} s{:>9.1f} GFLOP/s{:>7.0f}%\n", name, time, flops / time,
               100 * product_time / time);
  };
  many("probe: product of matrices", product_time);
  many(fmt::format("{} queries, dot", n_queries), least[1]);
  many(fmt::format("{} queries, cosine", n_queries), least[2]);
  many(fmt::format("{} queries, l2", n_queries), least[3]);
  const auto single = [&](const std::string& name, double time) {
    fmt::print("{:<44}{:>9.3f} s{:>9.1f} GB/s   {:>7.0f}%\n", name, time,
               static_cast<double>(bytes.size()) / 1e9 / time, 100 * least[4] / time);
  };
  single("probe: read of memory", least[4]);
  single("one query, dot", least[5]);
  single("one query, cosine", least[6]);
  single("one query, l2", least[7]);
  load.report();
  const bool reached = product_time / least[1] >= goal_many && least[4] / least[5] >= goal_one;
  fmt::print("goal: many queries at {:.0f}% of the product, one at {:.0f}% of the read: {}\n",
             100 * goal_many, 100 * goal_one, reached ? "reached" : "missed");
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

// For bench/peers/compare: items, queries and the number of neighbors.
int serve(const std::string& items_path, const std::string& queries_path, Index count) {
  const auto items = eckart::load_npy<float>(items_path);
  const auto queries = eckart::load_npy<float>(queries_path);
  eckart::TopK<float> found;
  eckart::bench::serve([&] { found = eckart::top_k(queries, items, {.k = count}); },
                       [&] {
                         return fmt::format(
                             "[{}]", fmt::join(found.indices.data(),
                                               found.indices.data() + found.indices.count(), ", "));
                       });
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  return argc == 4 ? serve(argv[1], argv[2], std::atoll(argv[3])) : run();
}

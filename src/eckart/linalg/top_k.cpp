#include "eckart/linalg/top_k.h"

#include "eckart/blas/bf16_tiles.h"
#include "eckart/blas/threads.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/top_k_exact.h"
#include "eckart/linalg/top_k_scores.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

using detail::Block;
using detail::ExactScore;
using detail::TileScores;

// Items that one thread works through with its own lists of candidates.
constexpr Index chunk_items = 4096;
// A tile of items: small enough for the second-level cache where each item is read once, and large
// where the product of matrices packs its operands anew for each tile.
constexpr Index streamed_tile_bytes = Index{1} << 17;
constexpr Index product_tile_elements = Index{1} << 21;
constexpr Index largest_tile = 1024;
// Packing for the tiles of bf16 is cheap: the scores stay in the cache.
constexpr Index rounded_tile = 256;
constexpr Index most_queries = 1024;
// Candidates of all queries and chunks together.
constexpr Index most_candidates = Index{1} << 24;

template <class T>
struct Candidate {
  T lower, upper;
  Index item;
};

// Lower bounds of the k-th nearest item that any thread has found: what is below is no neighbour.
template <class T>
class Thresholds {
 public:
  Thresholds(Index n, Index k)
      : k_(static_cast<std::size_t>(k)), of_(static_cast<std::size_t>(n)) {}

  T of(Index query) const {
    return of_[static_cast<std::size_t>(query)].least.load(std::memory_order_relaxed);
  }
  void raise(Index query, T least) {
    std::atomic<T>& known = of_[static_cast<std::size_t>(query)].least;
    T old = known.load(std::memory_order_relaxed);
    while (old < least && !known.compare_exchange_weak(old, least, std::memory_order_relaxed)) {
    }
  }
  // Takes lower bounds of items that no other call brings, and raises the threshold to the k-th best
  // of all that were brought.
  void merge(Index query, const std::vector<Candidate<T>>& candidates) {
    Threshold& one = of_[static_cast<std::size_t>(query)];
    const std::lock_guard lock(one.mutex);
    for (const Candidate<T>& candidate : candidates) one.best.push_back(candidate.lower);
    if (one.best.size() < k_) return;
    const auto kth = one.best.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(one.best.begin(), kth, one.best.end(), std::greater<>());
    raise(query, *kth);
    one.best.resize(k_);
  }

 private:
  struct Threshold {
    std::atomic<T> least = -std::numeric_limits<T>::infinity();
    std::mutex mutex;
    std::vector<T> best;
  };
  std::size_t k_;
  std::vector<Threshold> of_;
};

// What one block of queries is searched with.
template <class T>
struct Search {
  const Block<T>& block;
  TensorView<const T> items;
  const ExactScore<T>& exact;
  Index first_query;
  Index k;
  Index tile;
  Thresholds<T>& thresholds;
};

// The candidates of one query: at most as many as there is room for, among them all that may be
// among the k nearest of those it was given.
template <class T>
class CandidateList {
 public:
  CandidateList(const Search<T>& search, Index query, Index room)
      : search_(&search), query_(query), room_(room) {
    least_ = search.thresholds.of(query);
  }

  T least() {
    least_ = std::max(least_, search_->thresholds.of(query_));
    return least_;
  }

  void add(const TileScores<T>& scores, Index position, Index item) {
    Candidate<T> candidate{scores.lower(query_, position), scores.upper(query_, position), item};
    if (candidate.upper < least_) return;
    if (!std::isfinite(candidate.lower) || !std::isfinite(candidate.upper)) {
      candidate.lower = -std::numeric_limits<T>::infinity();
      candidate.upper = std::numeric_limits<T>::infinity();
    }
    candidates_.push_back(candidate);
    if (static_cast<Index>(candidates_.size()) < room_) return;
    shrink();
    if (static_cast<Index>(candidates_.size()) * 4 > room_ * 3) keep_nearest();
  }

  // Raises the threshold to the k-th best lower bound and drops what is below it.
  void shrink() {
    if (static_cast<Index>(candidates_.size()) > search_->k) {
      std::vector<T> lowers;
      lowers.reserve(candidates_.size());
      for (const Candidate<T>& candidate : candidates_) lowers.push_back(candidate.lower);
      const auto kth = lowers.begin() + (search_->k - 1);
      std::nth_element(lowers.begin(), kth, lowers.end(), std::greater<>());
      least_ = std::max(least_, *kth);
      search_->thresholds.raise(query_, least_);
    }
    std::erase_if(candidates_, [&](const auto& candidate) { return candidate.upper < least(); });
  }

  std::vector<Candidate<T>> taken() { return std::move(candidates_); }

 private:
  // Where bounds can't tell candidates apart, their scores in double do.
  void keep_nearest() {
    struct Ranked {
      double key;
      Candidate<T> candidate;
    };
    std::vector<Ranked> ranked;
    ranked.reserve(candidates_.size());
    for (const Candidate<T>& one : candidates_) {
      ranked.push_back({search_->exact.key(search_->first_query + query_, one.item), one});
    }
    const auto kth =
        ranked.begin() + std::min<Index>(search_->k, static_cast<Index>(ranked.size()));
    std::nth_element(ranked.begin(), kth, ranked.end(), [](const Ranked& a, const Ranked& b) {
      return ExactScore<T>::is_nearer(a.key, a.candidate.item, b.key, b.candidate.item);
    });
    candidates_.clear();
    for (auto one = ranked.begin(); one != kth; ++one) candidates_.push_back(one->candidate);
  }

  const Search<T>* search_;
  Index query_;
  Index room_;
  T least_;
  std::vector<Candidate<T>> candidates_;
};

template <class T>
using Lists = std::vector<std::vector<Candidate<T>>>;  // one a query

// The candidates of the items [begin, end).
template <class T>
Lists<T> search_chunk(const Search<T>& search, Index begin, Index end) {
  const Index m = search.block.queries.size(0);
  const Index room = std::min(2 * search.k + 64, std::max<Index>(end - begin + 1, search.k + 1));
  std::vector<CandidateList<T>> lists;
  lists.reserve(static_cast<std::size_t>(m));
  for (Index query = 0; query < m; ++query) lists.emplace_back(search, query, room);
  TileScores<T> scores(search.block, std::min(search.tile, end - begin));
  std::vector<std::uint32_t> chosen(static_cast<std::size_t>(search.tile));
  for (Index first = begin; first < end; first += search.tile) {
    scores.score(search.items.slice(0, {first, std::min(first + search.tile, end), 1}));
    for (Index query = 0; query < m; ++query) {
      CandidateList<T>& list = lists[static_cast<std::size_t>(query)];
      const Index n_chosen =
          detail::choose(scores.upper_bounds(query), list.least(), chosen.data());
      for (Index i = 0; i < n_chosen; ++i) {
        const auto position = static_cast<Index>(chosen[static_cast<std::size_t>(i)]);
        list.add(scores, position, first + position);
      }
    }
  }
  Lists<T> result(static_cast<std::size_t>(m));
  for (std::size_t query = 0; query < result.size(); ++query) {
    lists[query].shrink();
    result[query] = lists[query].taken();
    search.thresholds.merge(static_cast<Index>(query), result[query]);
  }
  return result;
}

// The k nearest of the candidates of all chunks, in double.
template <class T>
void rank(const Search<T>& search, const std::vector<Lists<T>>& chunks, Index query,
          TopK<T>& result) {
  struct Ranked {
    double key;
    Index item;
  };
  std::vector<Ranked> ranked;
  const T least = search.thresholds.of(query);
  const Index row = search.first_query + query;
  for (const Lists<T>& chunk : chunks) {
    for (const Candidate<T>& candidate : chunk[static_cast<std::size_t>(query)]) {
      if (candidate.upper < least) continue;
      ranked.push_back({search.exact.key(row, candidate.item), candidate.item});
    }
  }
  assert(static_cast<Index>(ranked.size()) >= search.k);
  std::partial_sort(ranked.begin(), ranked.begin() + search.k, ranked.end(),
                    [](const Ranked& a, const Ranked& b) {
                      return ExactScore<T>::is_nearer(a.key, a.item, b.key, b.item);
                    });
  for (Index i = 0; i < search.k; ++i) {
    const Ranked& one = ranked[static_cast<std::size_t>(i)];
    result.indices.data()[row * search.k + i] = one.item;
    result.scores.data()[row * search.k + i] = static_cast<T>(search.exact.score(one.key));
  }
}

template <class T>
void search_block(const Search<T>& search, TopK<T>& result) {
  const Index n = search.items.size(0);
  std::vector<Lists<T>> chunks(static_cast<std::size_t>((n + chunk_items - 1) / chunk_items));
  parallel_for(n, chunk_items, [&](Index begin, Index end) {
    chunks[static_cast<std::size_t>(begin / chunk_items)] = search_chunk(search, begin, end);
  });
  parallel_for(search.block.queries.size(0), 16, [&](Index begin, Index end) {
    for (Index query = begin; query < end; ++query) rank(search, chunks, query, result);
  });
}

template <class T>
void check(TensorView<const T> queries, TensorView<const T> items, const TopKOptions& options) {
  const std::string both =
      "queries is " + to_string(queries.shape()) + " and items is " + to_string(items.shape());
  if (queries.rank() != 2 || items.rank() != 2) {
    throw_shape_error("top_k: " + both + ", but both must be matrices with a vector in each row",
                      "a single vector of d elements is the matrix 1xd");
  }
  if (queries.size(1) != items.size(1)) {
    throw_shape_error("top_k: " + both + ", but both must have the same number of columns",
                      queries.size(1) == items.size(0) ? "with items transposed they fit" : "");
  }
  const std::string& of_queries = queries.shape().has_names() ? queries.shape().name(1) : "";
  const std::string& of_items = items.shape().has_names() ? items.shape().name(1) : "";
  if (!of_queries.empty() && !of_items.empty() && of_queries != of_items) {
    throw_shape_error("top_k: " + both + ", but their columns must have the same name");
  }
  if (options.k < 1 || options.k > items.size(0)) {
    throw_argument_error("top_k: k is " + std::to_string(options.k) + ", but items is " +
                         to_string(items.shape()) + " and has 1 to " +
                         std::to_string(items.size(0)) + " neighbors");
  }
}

// Names the first vector without a direction.
template <class T>
void throw_zero(const char* name, TensorView<const T> rows) {
  for (Index i = 0; i < rows.size(0); ++i) {
    bool is_zero = true;
    for (Index j = 0; j < rows.size(1); ++j) is_zero = is_zero && rows(i, j) == T{0};
    if (is_zero) {
      throw_argument_error(std::string("top_k: row ") + std::to_string(i) + " of " + name +
                               " is zero, but a cosine needs a direction",
                           "zero_vector = zero counts it as similarity 0, zero_vector = nan ranks "
                           "it last");
    }
  }
}

template <class T>
TopK<T> empty_result(const Shape& queries, Index k) {
  const std::string axis = queries.has_names() ? queries.name(0) : "";
  const Shape shape({queries.size(0), k}, {axis, axis == "neighbor" ? "" : "neighbor"});
  return {Tensor<Index>(shape), Tensor<T>(shape)};
}

}  // namespace

template <class T>
TopK<T> top_k(TensorView<const T> queries, TensorView<const T> items, const TopKOptions& options) {
  check(queries, items, options);
  if (options.nan == NanScores::error) check_finite("top_k", "queries", queries);
  const Index n_queries = queries.size(0);
  const Index n_items = items.size(0);
  const Index d = std::max<Index>(items.size(1), 1);
  const bool streamed = n_queries <= detail::streamed_queries;
  const bool rounded = !streamed && std::is_same_v<T, float> && blas::has_bf16_tiles();
  const Index tile = std::clamp<Index>(
      streamed ? streamed_tile_bytes / (d * Index{sizeof(T)}) : product_tile_elements / d, 16,
      rounded ? rounded_tile : largest_tile);
  const Index n_chunks = (n_items + chunk_items - 1) / chunk_items;
  const Index at_once =
      std::clamp<Index>(most_candidates / std::min(options.k * n_chunks, n_items), 1, most_queries);
  const ExactScore<T> exact(queries, items, options);
  std::vector<T> shift;
  if (options.metric == Metric::l2 && !streamed) shift = detail::middle_of(items);
  TopK<T> result = empty_result<T>(queries.shape(), options.k);
  blas::with_own_threads([&] {
    for (Index first = 0; first < n_queries; first += at_once) {
      const Index end = std::min(first + at_once, n_queries);
      const Block<T> block =
          detail::block_of(queries.slice(0, {first, end, 1}), shift, options.metric, streamed);
      Thresholds<T> thresholds(end - first, options.k);
      search_block<T>({block, items, exact, first, options.k, tile, thresholds}, result);
    }
  });
  if (exact.saw_no_number() && options.nan == NanScores::error) {
    check_finite("top_k", "items", items);
  }
  if (exact.saw_zero() && options.zero_vector == ZeroVector::error) {
    throw_zero("queries", queries);
    throw_zero("items", items);
  }
  return result;
}

template TopK<float> top_k(TensorView<const float>, TensorView<const float>, const TopKOptions&);
template TopK<double> top_k(TensorView<const double>, TensorView<const double>, const TopKOptions&);

}  // namespace eckart

#include "eckart/nn/attention_blocks.h"

#include "eckart/core/parallel.h"
#include "eckart/nn/attention_scores.h"
#include "eckart/nn/attention_simd.h"
#include "eckart/nn/attention_worker.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace eckart::detail {
namespace {

constexpr double log2_e = 1.4426950408889634074;

// Rows of a block where they would else be too few blocks for the threads of a large machine, which
// the sizes must not depend on.
constexpr Index fewest_blocks = 32;
constexpr Index least_block_rows = 48;
// With fewer blocks than this the keys are split as well, in parts of so many.
constexpr Index unsplit_blocks = 8;
constexpr Index unsplit_few_blocks = 64;
constexpr Index part_keys = 1024;
constexpr Index few_part_keys = 512;
constexpr Index most_parts = 128;

Index divide_up(Index n, Index by) { return (n + by - 1) / by; }

// How the work is cut: it depends on sizes alone.
template <class T>
struct Cut {
  BlockSizes sizes;
  Index heads = 1;        // of a block
  Index queries = 1;      // of a block
  Index head_blocks = 0;  // of a key head
  Index query_blocks = 0;
  Index keys = 0;  // of a part
  Index parts = 1;

  explicit Cut(const AttentionPlan<T>& plan) {
    const Index all_rows = plan.n_batches * plan.n_heads * plan.n_queries;
    // Where the keys are many, their parts are enough for all threads.
    const bool has_parts = plan.n_keys >= 8 * plan.n_queries;
    const Index rows = has_parts ? all_rows : all_rows / fewest_blocks;
    sizes = block_sizes(plan, std::max(least_block_rows, rows));
    const Index group = plan.heads_per_key();
    heads = std::min(group, sizes.rows);
    queries = std::min(plan.n_queries, sizes.rows / heads);
    head_blocks = divide_up(group, heads);
    query_blocks = divide_up(plan.n_queries, queries);
    split_keys(plan);
  }

  Index blocks(const AttentionPlan<T>& plan) const {
    return plan.n_batches * plan.n_kv_heads * head_blocks * query_blocks;
  }

  // Block number `i`: later queries, which see more keys when causal, first.
  RowBlock block(const AttentionPlan<T>& plan, Index i) const {
    RowBlock block;
    const Index head_block = i % head_blocks;
    i /= head_blocks;
    block.kv_head = i % plan.n_kv_heads;
    i /= plan.n_kv_heads;
    block.batch = i % plan.n_batches;
    const Index query_block = query_blocks - 1 - i / plan.n_batches;
    const Index group = plan.heads_per_key();
    block.first_head = block.kv_head * group + head_block * heads;
    block.n_heads = std::min(heads, group - head_block * heads);
    block.first_query = query_block * queries;
    block.n_queries = std::min(queries, plan.n_queries - block.first_query);
    return block;
  }

 private:
  void split_keys(const AttentionPlan<T>& plan) {
    keys = std::max<Index>(plan.n_keys, 1);
    if (plan.temperature == 0) return;
    if (blocks(plan) >= (sizes.is_few ? unsplit_few_blocks : unsplit_blocks)) return;
    const Index least = sizes.is_few ? few_part_keys : part_keys;
    keys = least * std::max<Index>(1, divide_up(plan.n_keys, least * most_parts));
    parts = std::max<Index>(1, divide_up(plan.n_keys, keys));
  }
};

template <class T>
bool is_empty(const AttentionPlan<T>& plan) {
  return plan.n_batches == 0 || plan.n_heads == 0 || plan.n_queries == 0;
}

template <class T>
Index row_number(const AttentionPlan<T>& plan, const RowBlock& block, Index row) {
  return (block.batch * plan.n_heads + block.head(row)) * plan.n_queries + block.query(row);
}

template <class T>
void divide(const T* mixed, T sum, Index n, T* out) {
  for (Index i = 0; i < n; ++i) out[i] = sum == 0 ? T{0} : mixed[i] / sum;
}

// What each part of the keys gives every row, until they are put together.
template <class T>
struct Parts {
  Index n, width;
  std::vector<T> largest, sum;
  Tensor<T> mixed;

  Parts(Index n_rows, Index n_parts, Index d_v)
      : n(n_parts),
        width(d_v),
        largest(static_cast<std::size_t>(n_rows * n_parts)),
        sum(largest.size()),
        mixed(Tensor<T>::uninitialized({n_rows * n_parts * d_v})) {}

  void set(Index row, Index part, const BlockWorker<T>& worker, Index worker_row) {
    const Index i = row * n + part;
    largest[static_cast<std::size_t>(i)] = worker.largest(worker_row);
    sum[static_cast<std::size_t>(i)] = worker.sum(worker_row);
    std::copy_n(worker.mixed(worker_row), width, mixed.data() + i * width);
  }

  // The row's mixture: every part times two to its reference less the largest of them.
  void merge(Index row, T* out) const {
    const T* const references = largest.data() + row * n;
    const T most = *std::max_element(references, references + n);
    std::fill_n(out, width, T{0});
    if (most == -std::numeric_limits<T>::infinity()) {
      // Nothing was seen, or nothing but NaN, which no largest score tells of but the sum.
      T total = 0;
      for (Index part = 0; part < n; ++part) total += sum[static_cast<std::size_t>(row * n + part)];
      if (total != 0) std::fill_n(out, width, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    std::vector<T> factors(static_cast<std::size_t>(n));
    for (Index part = 0; part < n; ++part) {
      factors[static_cast<std::size_t>(part)] = references[part] - most;
    }
    powers_of_two(factors.data(), n, factors.data());
    T total = 0;
    for (Index part = 0; part < n; ++part) {
      const T factor = factors[static_cast<std::size_t>(part)];
      const T* const of_part = mixed.data() + (row * n + part) * width;
      if (sum[static_cast<std::size_t>(row * n + part)] == 0) continue;
      total += factor * sum[static_cast<std::size_t>(row * n + part)];
      for (Index i = 0; i < width; ++i) out[i] += factor * of_part[i];
    }
    divide(out, total, width, out);
  }
};

template <class T>
void attend_in_parts(const AttentionPlan<T>& plan, const ScoreRules<T>& rules, const Cut<T>& cut,
                     T* out) {
  const Index n_rows = plan.n_batches * plan.n_heads * plan.n_queries;
  Parts<T> parts(n_rows, cut.parts, plan.d_v);
  parallel_for(cut.blocks(plan) * cut.parts, 1, [&](Index begin, Index end) {
    BlockWorker<T> worker(plan, rules, cut.sizes);
    for (Index i = begin; i < end; ++i) {
      const RowBlock block = cut.block(plan, i / cut.parts);
      const Index part = i % cut.parts;
      const Index first = part * cut.keys;
      worker.attend(block, {first, std::min(plan.n_keys, first + cut.keys)}, part == 0);
      for (Index r = 0; r < block.rows(); ++r) {
        parts.set(row_number(plan, block, r), part, worker, r);
      }
    }
  });
  parallel_for(n_rows, 16, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) parts.merge(row, out + row * plan.d_v);
  });
}

}  // namespace

template <class T>
void attend_in_blocks(const AttentionPlan<T>& plan, T* out) {
  if (is_empty(plan) || plan.d_v == 0) return;
  // At temperature 0 no power is taken, and scores that are equal must stay so.
  const ScoreRules<T> rules(plan, plan.temperature == 0 ? 1 : log2_e);
  const Cut<T> cut(plan);
  if (cut.parts > 1) return attend_in_parts(plan, rules, cut, out);
  parallel_for(cut.blocks(plan), 1, [&](Index begin, Index end) {
    BlockWorker<T> worker(plan, rules, cut.sizes);
    for (Index i = begin; i < end; ++i) {
      const RowBlock block = cut.block(plan, i);
      worker.attend(block, {0, plan.n_keys}, true);
      for (Index r = 0; r < block.rows(); ++r) {
        divide(worker.mixed(r), worker.sum(r), plan.d_v,
               out + row_number(plan, block, r) * plan.d_v);
      }
    }
  });
}

template <class T>
void score_table(const AttentionPlan<T>& plan, T* table) {
  if (is_empty(plan) || plan.n_keys == 0) return;
  const ScoreRules<T> rules(plan, 1);
  const Cut<T> cut(plan);
  parallel_for(cut.blocks(plan), 1, [&](Index begin, Index end) {
    BlockWorker<T> worker(plan, rules, cut.sizes);
    for (Index i = begin; i < end; ++i) worker.write_scores(cut.block(plan, i), table);
  });
}

template void attend_in_blocks(const AttentionPlan<float>&, float*);
template void attend_in_blocks(const AttentionPlan<double>&, double*);
template void score_table(const AttentionPlan<float>&, float*);
template void score_table(const AttentionPlan<double>&, double*);

}  // namespace eckart::detail

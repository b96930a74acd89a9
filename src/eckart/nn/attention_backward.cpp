#include "eckart/nn/attention_backward.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/sums_simd.h"
#include "eckart/nn/attention_plan.h"
#include "eckart/nn/rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

constexpr std::string_view operation = "attention_backward";
// Queries whose weights are formed at once.
constexpr Index block = 128;

// An array … x head x row x column in row-major order, and its matrices by number.
template <class T>
class Matrices {
 public:
  explicit Matrices(Tensor<T> all) : all_(std::move(all)) {}

  /// Rows [begin, end) of matrix number `i`.
  TensorView<const T> rows(Index i, Index begin, Index end) const {
    return TensorView<const T>(all_.data() + offset(i, begin), {end - begin, all_.size(-1)});
  }
  TensorView<T> rows(Index i, Index begin, Index end) {
    return TensorView<T>(all_.data() + offset(i, begin), {end - begin, all_.size(-1)});
  }
  Tensor<T> take() { return std::move(all_); }

 private:
  Index offset(Index i, Index row) const { return (i * all_.size(-2) + row) * all_.size(-1); }

  Tensor<T> all_;
};

template <class T>
struct Problem {
  const AttentionOptions<T>& options;
  detail::AttentionPlan<T> plan;
  Matrices<T> q, k, v, d_y;
  Matrices<T> d_q, d_k, d_v;

  // What a score's gradient is multiplied by to be that of a product of query and key.
  double score_factor() const {
    const bool is_constant = plan.temperature == 0 || std::isinf(plan.temperature);
    return is_constant ? 0 : plan.scale / plan.temperature;
  }
};

// Some queries of one head and the keys that any of them sees.
struct Block {
  Index batch = 0, head = 0;
  Index query = 0, query_end = 0;
  Index key = 0, key_end = 0;

  Index n_queries() const { return query_end - query; }
  Index n_keys() const { return key_end - key; }
};

template <class T>
Block block_of(const detail::AttentionPlan<T>& plan, Index matrix, Index query) {
  Block b{.batch = matrix / plan.n_heads,
          .head = matrix % plan.n_heads,
          .query = query,
          .query_end = std::min(query + block, plan.n_queries),
          .key_end = plan.n_keys};
  if (!plan.causal) return b;
  constexpr Index far = Index{1} << 60;  // more changes nothing
  const Index offset = std::clamp(plan.offset, -far, far);
  b.key_end = std::clamp<Index>(offset + b.query_end, 0, plan.n_keys);
  if (plan.window > 0) {
    b.key = std::clamp<Index>(offset + query - std::min(plan.window, far) + 1, 0, b.key_end);
  }
  return b;
}

template <class U>
std::optional<TensorView<const U>> part_of(const detail::Operand<U>& table, const Block& b) {
  if (table.data == nullptr) return std::nullopt;
  return TensorView<const U>(table.at(b.batch, b.head, b.query) + b.key * table.column,
                             {b.n_queries(), b.n_keys()}, {table.row, table.column});
}

template <class T>
std::optional<TensorView<const T>> one_of(const std::optional<TensorView<const T>>& per_head,
                                          const Block& b) {
  if (!per_head) return std::nullopt;
  return TensorView<const T>(per_head->data() + b.head * per_head->strides()[0], {1});
}

template <class T>
Tensor<T> weights_of(const Problem<T>& problem, const Block& b, TensorView<const T> q,
                     TensorView<const T> k) {
  AttentionOptions<T> options = problem.options;
  // Counted from the block's first key.
  options.offset = problem.plan.offset + b.query - b.key;
  options.scale = problem.plan.scale;
  options.mask = part_of(problem.plan.mask, b);
  options.bias = part_of(problem.plan.bias, b);
  options.alibi_slopes = one_of(problem.options.alibi_slopes, b);
  options.sinks = one_of(problem.options.sinks, b);
  return attention_weights(q, k, options);
}

// d_w becomes what the loss changes by the products of queries and keys.
template <class T>
void to_products(const Problem<T>& problem, const Tensor<T>& w, Tensor<T>& d_w) {
  const Index n = w.size(1);
  const double factor = problem.score_factor();
  parallel_for(w.size(0), detail::rows_at_once(n), [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      const T* const weights = w.data() + row * n;
      T* const d = d_w.data() + row * n;
      const double mean = detail::dot_run(weights, d, static_cast<std::size_t>(n));
      for (Index i = 0; i < n; ++i) {
        d[i] = static_cast<T>(static_cast<double>(weights[i]) * (static_cast<double>(d[i]) - mean) *
                              factor);
      }
    }
  });
}

// The slope of cap tanh(s / cap) is 1 - tanh^2(s / cap).
template <class T>
void through_softcap(const Problem<T>& problem, TensorView<const T> q, TensorView<const T> k,
                     Tensor<T>& d_s) {
  const double cap = problem.plan.softcap;
  if (cap == 0) return;
  Tensor<T> scores = Tensor<T>::uninitialized(d_s.shape());
  blas::gemm(static_cast<T>(problem.plan.scale / cap), q, k.transpose(), T{0}, scores.view());
  for (Index i = 0; i < scores.count(); ++i) {
    const double t = std::tanh(static_cast<double>(scores.data()[i]));
    d_s.data()[i] = static_cast<T>(static_cast<double>(d_s.data()[i]) * (1 - t * t));
  }
}

template <class T>
void add_block(Problem<T>& problem, const Block& b) {
  const detail::AttentionPlan<T>& plan = problem.plan;
  const Index matrix = b.batch * plan.n_heads + b.head;
  const Index stored = b.batch * plan.n_kv_heads + b.head / plan.heads_per_key();
  const Problem<T>& given = problem;
  const TensorView<const T> q = given.q.rows(matrix, b.query, b.query_end);
  const TensorView<const T> k = given.k.rows(stored, b.key, b.key_end);
  const TensorView<const T> v = given.v.rows(stored, b.key, b.key_end);
  const TensorView<const T> d_y = given.d_y.rows(matrix, b.query, b.query_end);
  const Tensor<T> w = weights_of(problem, b, q, k);
  blas::gemm(T{1}, w.view().transpose(), d_y, T{1}, problem.d_v.rows(stored, b.key, b.key_end));
  Tensor<T> d_s = Tensor<T>::uninitialized({b.n_queries(), b.n_keys()});
  blas::gemm(T{1}, d_y, v.transpose(), T{0}, d_s.view());
  to_products(problem, w, d_s);
  through_softcap(problem, q, k, d_s);
  const TensorView<const T> d(d_s.data(), d_s.shape());
  blas::gemm(T{1}, d, k, T{0}, problem.d_q.rows(matrix, b.query, b.query_end));
  blas::gemm(T{1}, d.transpose(), q, T{1}, problem.d_k.rows(stored, b.key, b.key_end));
}

}  // namespace

template <class T>
AttentionGradients<T> attention_backward(TensorView<const T> d_y, TensorView<const T> q,
                                         TensorView<const T> k, TensorView<const T> v,
                                         const AttentionOptions<T>& options) {
  detail::AttentionPlan<T> plan = detail::plan_attention(operation, q, k, options);
  detail::plan_values(operation, k, v, plan);
  const Shape mixed = detail::mixed_shape(q.shape(), v.shape());
  if (!same_sizes(d_y.shape(), mixed)) {
    throw_shape_error(std::string(operation) + ": d_y is " + to_string(d_y.shape()) +
                      ", but it must be " + to_string(mixed) + " as attention's result");
  }
  Problem<T> problem{.options = options,
                     .plan = plan,
                     .q = Matrices<T>(Tensor<T>(q)),
                     .k = Matrices<T>(Tensor<T>(k)),
                     .v = Matrices<T>(Tensor<T>(v)),
                     .d_y = Matrices<T>(Tensor<T>(d_y)),
                     .d_q = Matrices<T>(Tensor<T>(q.shape())),
                     .d_k = Matrices<T>(Tensor<T>(k.shape())),
                     .d_v = Matrices<T>(Tensor<T>(v.shape()))};
  for (Index matrix = 0; matrix < plan.n_batches * plan.n_heads; ++matrix) {
    for (Index query = 0; query < plan.n_queries; query += block) {
      const Block b = block_of(plan, matrix, query);
      if (b.n_keys() > 0) add_block(problem, b);
    }
  }
  return {problem.d_q.take(), problem.d_k.take(), problem.d_v.take()};
}

template AttentionGradients<float> attention_backward(TensorView<const float>,
                                                      TensorView<const float>,
                                                      TensorView<const float>,
                                                      TensorView<const float>,
                                                      const AttentionOptions<float>&);
template AttentionGradients<double> attention_backward(TensorView<const double>,
                                                       TensorView<const double>,
                                                       TensorView<const double>,
                                                       TensorView<const double>,
                                                       const AttentionOptions<double>&);

}  // namespace eckart

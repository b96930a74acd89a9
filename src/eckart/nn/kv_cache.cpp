#include "eckart/nn/kv_cache.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/nn/attention_blocks.h"
#include "eckart/nn/attention_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

void check_size(std::string_view name, Index size, Index least) {
  if (size >= least) return;
  throw_argument_error("kv_cache: " + std::string(name) + " is " + std::to_string(size) +
                       ", but it must be at least " + std::to_string(least));
}

KvCacheOptions checked(KvCacheOptions options) {
  check_size("n_kv_heads", options.n_kv_heads, 1);
  check_size("d_head", options.d_head, 1);
  check_size("d_head_v", options.d_head_v, 0);
  check_size("window", options.window, 0);
  if (options.d_head_v == 0) options.d_head_v = options.d_head;
  return options;
}

LatentKvCacheOptions checked(const LatentKvCacheOptions& options) {
  check_size("kv_rank", options.kv_rank, 1);
  check_size("d_rope", options.d_rope, 0);
  check_size("window", options.window, 0);
  return options;
}

template <class T>
void check_rows(std::string_view name, TensorView<const T> rows, const Shape& wanted) {
  bool fits = rows.rank() == wanted.rank();
  for (Index axis = 0; fits && axis < wanted.rank(); ++axis) {
    fits = axis == wanted.rank() - 2 || rows.size(axis) == wanted.size(axis);
  }
  if (fits) return;
  std::string text;
  for (Index axis = 0; axis < wanted.rank(); ++axis) {
    if (axis > 0) text += " x ";
    text += axis == wanted.rank() - 2 ? "token" : std::to_string(wanted.size(axis));
  }
  throw_shape_error("append: " + std::string(name) + " is " + to_string(rows.shape()) +
                    ", but this cache takes " + text);
}

void check_counts(std::string_view left, const Shape& a, std::string_view right, const Shape& b) {
  if (a.size(-2) == b.size(-2)) return;
  throw_shape_error("append: " + std::string(left) + " is " + to_string(a) + " and " +
                    std::string(right) + " is " + to_string(b) +
                    ", but both must have the same number of tokens");
}

// The options that a cache sets itself, and the first of them that was given.
template <class T>
void check_options(const AttentionOptions<T>& options) {
  const char* set = options.mask          ? "a mask"
                    : options.bias        ? "a bias"
                    : options.offset      ? "an offset"
                    : options.window != 0 ? "a window"
                                          : nullptr;
  if (set == nullptr) return;
  throw_argument_error(
      std::string("attend: the options have ") + set +
          ", but a cache's queries are its last tokens, causal and with the cache's window",
      "scale, temperature, softcap, sinks and alibi_slopes apply");
}

struct Tokens {
  Index length, kept, window, last_append;
};

void check_queries(const Shape& q, const Tokens& tokens) {
  const Index n = q.size(1);
  if (n > tokens.length) {
    throw_argument_error(
        "attend: q is " + to_string(q) + ", but the cache has " + counted(tokens.length, "token"),
        "append the tokens' keys and values before their queries attend");
  }
  if (tokens.window > 0 && n > tokens.last_append && n > 1) {
    throw_argument_error("attend: q is " + to_string(q) + ", but the last append brought " +
                         counted(tokens.last_append, "token") +
                         ", and what earlier ones saw of the window is gone");
  }
}

Index checked_length(Index length, const Tokens& tokens) {
  if (tokens.window > 0) {
    throw_argument_error("truncate: the cache has a window of " + std::to_string(tokens.window) +
                         ", but only a full cache still has the tokens before the ones it forgets");
  }
  if (length < 0 || length > tokens.length) {
    throw_argument_error("truncate: the length is " + std::to_string(length) +
                         ", but the cache has " + counted(tokens.length, "token"));
  }
  return length;
}

// How many rows stay when more come: those that the first of them still sees.
Index kept_before(Index window) {
  return window == 0 ? std::numeric_limits<Index>::max() : window - 1;
}

// The plan of a cache's queries, apart from keys and values.
template <class T>
void plan_attend(TensorView<const T> q, const Tokens& tokens, AttentionOptions<T> options,
                 detail::AttentionPlan<T>& plan) {
  check_options(options);
  plan.n_keys = tokens.kept;
  detail::plan_queries("attend", q, plan);
  check_queries(q.shape(), tokens);
  options.causal = true;
  options.window = tokens.window;
  detail::plan_options("attend", Shape{}, options, plan);
  plan.k_batches = {0};
  plan.v_batches = {0};
}

}  // namespace

template <class T>
KvCache<T>::KvCache(const KvCacheOptions& options)
    : options_(checked(options)),
      keys_(options_.n_kv_heads, options_.d_head, options_.precision),
      values_(options_.n_kv_heads, options_.d_head_v, options_.precision) {}

template <class T>
void KvCache<T>::append(TensorView<const T> k, TensorView<const T> v) {
  check_rows("k", k, {options_.n_kv_heads, 0, options_.d_head});
  check_rows("v", v, {options_.n_kv_heads, 0, options_.d_head_v});
  check_counts("k", k.shape(), "v", v.shape());
  const Index n = k.size(1);
  if (n == 0) return;
  keys_.extend(n, kept_before(options_.window));
  values_.extend(n, kept_before(options_.window));
  keys_.write(k, keys_.count() - n, 0);
  values_.write(v, values_.count() - n, 0);
  length_ += n;
  last_append_ = n;
}

template <class T>
Tensor<T> KvCache<T>::attend(TensorView<const T> q, const AttentionOptions<T>& options) const {
  detail::AttentionPlan<T> plan;
  plan.n_kv_heads = options_.n_kv_heads;
  plan.d_head = options_.d_head;
  plan.d_v = options_.d_head_v;
  plan_attend(q, {length_, kept(), options_.window, last_append_}, options, plan);
  plan.k = keys_.stored();
  plan.v = values_.stored();
  Tensor<T> out = Tensor<T>::uninitialized(detail::mixed_shape(q.shape(), Shape({1, plan.d_v})));
  detail::attend_in_blocks(plan, out.data());
  return out;
}

template <class T>
Tensor<T> KvCache<T>::keys() const {
  return keys_.read(0, options_.d_head);
}

template <class T>
Tensor<T> KvCache<T>::values() const {
  return values_.read(0, options_.d_head_v);
}

template <class T>
void KvCache<T>::truncate(Index length) {
  length_ = checked_length(length, {length_, kept(), options_.window, last_append_});
  keys_.truncate(length_);
  values_.truncate(length_);
  last_append_ = std::min(last_append_, length_);
}

template <class T>
LatentKvCache<T>::LatentKvCache(const LatentKvCacheOptions& options)
    : options_(checked(options)), rows_(1, options.kv_rank + options.d_rope, options.precision) {}

template <class T>
void LatentKvCache<T>::append(TensorView<const T> latents, TensorView<const T> rope_keys) {
  check_rows("latents", latents, {0, options_.kv_rank});
  check_rows("rope_keys", rope_keys, {0, options_.d_rope});
  check_counts("latents", latents.shape(), "rope_keys", rope_keys.shape());
  const Index n = latents.size(0);
  if (n == 0) return;
  rows_.extend(n, kept_before(options_.window));
  const auto one_head = [](const TensorView<const T>& rows) {
    return TensorView<const T>(rows.data(), {1, rows.size(0), rows.size(1)},
                               {0, rows.strides()[0], rows.strides()[1]});
  };
  rows_.write(one_head(latents), rows_.count() - n, 0);
  rows_.write(one_head(rope_keys), rows_.count() - n, options_.kv_rank);
  length_ += n;
  last_append_ = n;
}

template <class T>
Tensor<T> LatentKvCache<T>::attend(TensorView<const T> q, const LatentProjections<T>& projections,
                                   const AttentionOptions<T>& options) const {
  const Shape& w_uk = projections.w_uk.shape();
  const Shape& w_uv = projections.w_uv.shape();
  const Index rank = options_.kv_rank, d_rope = options_.d_rope;
  for (const auto& [name, shape] : {std::pair<const char*, const Shape&>{"w_uk", w_uk},
                                    std::pair<const char*, const Shape&>{"w_uv", w_uv}}) {
    if (shape.rank() == 3 && shape.size(1) == rank) continue;
    throw_shape_error(std::string("attend: ") + name + " is " + to_string(shape) +
                      ", but it must be head x " + std::to_string(rank) + " x " +
                      (name[3] == 'k' ? "d_nope" : "d_v"));
  }
  if (q.rank() != 3 || q.size(0) != w_uk.size(0) || q.size(0) != w_uv.size(0) ||
      q.size(2) != w_uk.size(2) + d_rope) {
    throw_shape_error("attend: q is " + to_string(q.shape()) + ", w_uk is " + to_string(w_uk) +
                      " and w_uv is " + to_string(w_uv) + ", but q must be head x query x " +
                      std::to_string(w_uk.size(2) + d_rope) + ", d_nope and the " +
                      std::to_string(d_rope) + " of the rotary key, with the heads of both");
  }
  const Index n_heads = q.size(0), n = q.size(1), d_nope = w_uk.size(2);
  // q w_uk^T beside q's rotary part: a query for what is stored.
  Tensor<T> absorbed = Tensor<T>::uninitialized({n_heads, n, rank + d_rope});
  const TensorView<T> parts = absorbed.view();
  for_each_element([](T& to, const T& from) { to = from; },
                   parts.slice(2, {rank, rank + d_rope, 1}),
                   q.slice(2, {d_nope, d_nope + d_rope, 1}));
  for (Index head = 0; head < n_heads; ++head) {
    blas::gemm<T>(T{1}, q.select(0, head).slice(1, {0, d_nope, 1}),
                  projections.w_uk.select(0, head).transpose(), T{0},
                  parts.select(0, head).slice(1, {0, rank, 1}));
  }
  detail::AttentionPlan<T> plan;
  plan.n_kv_heads = 1;
  plan.d_head = rank + d_rope;
  plan.d_v = rank;
  AttentionOptions<T> scaled = options;
  scaled.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(2))));
  plan_attend<T>(absorbed, {length_, kept(), options_.window, last_append_}, scaled, plan);
  plan.k = rows_.stored();
  plan.v = plan.k;  // a row begins with the latent, which is the value too
  Tensor<T> mixed = Tensor<T>::uninitialized({n_heads, n, rank});
  detail::attend_in_blocks(plan, mixed.data());
  Tensor<T> out = Tensor<T>::uninitialized(detail::mixed_shape(q.shape(), w_uv));
  for (Index head = 0; head < n_heads; ++head) {
    blas::gemm<T>(T{1}, TensorView<const T>(mixed.view()).select(0, head),
                  projections.w_uv.select(0, head), T{0}, out.view().select(0, head));
  }
  return out;
}

template <class T>
Tensor<T> LatentKvCache<T>::latents() const {
  return rows_.read(0, options_.kv_rank).reshaped({kept(), options_.kv_rank});
}

template <class T>
Tensor<T> LatentKvCache<T>::rope_keys() const {
  return rows_.read(options_.kv_rank, options_.kv_rank + options_.d_rope)
      .reshaped({kept(), options_.d_rope});
}

template <class T>
void LatentKvCache<T>::truncate(Index length) {
  length_ = checked_length(length, {length_, kept(), options_.window, last_append_});
  rows_.truncate(length_);
  last_append_ = std::min(last_append_, length_);
}

template class KvCache<float>;
template class KvCache<double>;
template class LatentKvCache<float>;
template class LatentKvCache<double>;

}  // namespace eckart

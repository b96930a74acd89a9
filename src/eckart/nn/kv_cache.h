// Keys and values of the tokens so far, so that the next token costs one row and not a table.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/nn/attention.h"

#include <cstdint>

namespace eckart {

namespace detail {
struct StoredRows;
}

/// How keys and values are kept: as T, or rounded once to bf16 (nearest even), in two bytes.
enum class KvPrecision { full, bf16 };

struct KvCacheOptions {
  Index n_kv_heads = 0;
  Index d_head = 0;
  Index d_head_v = 0;  // 0: d_head
  /// A token sees the last `window` tokens, itself included, and older ones are dropped; 0: all.
  Index window = 0;
  KvPrecision precision = KvPrecision::full;
};

namespace detail {

/// Rows of numbers for each of some heads, appended at the end and dropped at the front, kept so
/// that the rows of a head stand one after the other.
template <class T>
class TokenRows {
 public:
  TokenRows(Index n_heads, Index width, KvPrecision precision);

  Index count() const { return count_; }
  /// Takes token rows head x token x width, at `column` of theirs; the rows must be there.
  void write(TensorView<const T> rows, Index first, Index column);
  /// Adds `n` rows of undefined numbers; before that drops all but the last `keep`.
  void extend(Index n, Index keep);
  void truncate(Index count) { count_ = count; }
  /// head x token x width, columns [begin, end), as T.
  Tensor<T> read(Index begin, Index end) const;
  StoredRows stored() const;
  std::uint64_t bytes() const;

 private:
  bool is_rounded() const { return precision_ == KvPrecision::bf16; }
  void reserve(Index rows);

  Index n_heads_;
  Index width_;
  KvPrecision precision_;
  Index capacity_ = 0;
  Index first_ = 0;  // row where the kept ones begin
  Index count_ = 0;
  Tensor<T> full_;
  Tensor<std::uint16_t> rounded_;
};

}  // namespace detail

/// The cache of one layer.
template <class T>
class KvCache {
 public:
  /// Throws ArgumentError when there is no head or a size is negative.
  explicit KvCache(const KvCacheOptions& options);
  /// k: kv_head x token x d_head, v: kv_head x token x d_v. Cost: a copy of the tokens; now and then
  /// one of all that is kept. Throws ShapeError when they are not that.
  void append(TensorView<const T> k, TensorView<const T> v);
  /// q: head x query x d_head, head a multiple of kv_head; the queries are the last tokens appended.
  /// Causal, with the cache's window; of the options scale, temperature, softcap, sinks and
  /// alibi_slopes apply. Returns head x query x d_v: what `attention` gives for all tokens, row by
  /// row, to its accuracy. Cost: as `attention`; for a few queries one read of what is kept, each
  /// key once for all heads that share it.
  /// Throws ShapeError as `attention`; ArgumentError also when another option is set, when there are
  /// more queries than tokens, or, with a window, more than the last `append` brought.
  Tensor<T> attend(TensorView<const T> q, const AttentionOptions<T>& options = {}) const;
  template <class K, class V>
  requires detail::Arrays<K, V>
  void append(const K& k, const V& v) { append(detail::read_only(k), detail::read_only(v)); }
  template <class Q>
  requires detail::Arrays<Q> Tensor<T> attend(const Q& q, const AttentionOptions<T>& options = {})
  const { return attend(detail::read_only(q), options); }

  /// Tokens appended, less those that `truncate` took back.
  Index length() const { return length_; }
  /// Tokens still there: all of them, or the last `window`; after appending n at once the window of
  /// the first of these, window + n - 1.
  Index kept() const { return keys_.count(); }
  /// Of the kept keys and values.
  std::uint64_t bytes() const { return keys_.bytes() + values_.bytes(); }
  /// The kept ones as they are stored, oldest first: kv_head x key x d_head and kv_head x key x d_v.
  Tensor<T> keys() const;
  Tensor<T> values() const;
  /// Forgets the tokens from `length` on. Throws ArgumentError when there are fewer, or when the
  /// cache has a window, whose older tokens are gone.
  void truncate(Index length);

 private:
  KvCacheOptions options_;
  Index length_ = 0;
  Index last_append_ = 0;
  detail::TokenRows<T> keys_;
  detail::TokenRows<T> values_;
};

struct LatentKvCacheOptions {
  Index kv_rank = 0;  // numbers of a latent
  Index d_rope = 0;   // numbers of the key that carries the position
  Index window = 0;   // as in KvCacheOptions
  KvPrecision precision = KvPrecision::full;
};

/// How the heads of multi-head latent attention read the latents.
template <class T>
struct LatentProjections {
  TensorView<const T> w_uk;  // head x kv_rank x d_nope: a latent to a head's key
  TensorView<const T> w_uv;  // head x kv_rank x d_v: a latent to a head's value
};

/// The cache of one layer of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section
/// 2.1): of a token one latent and one rotary key for all heads. The heads' keys and values are
/// never formed: q w_uk^T meets the latents themselves, and w_uv the mixed latent.
template <class T>
class LatentKvCache {
 public:
  /// Throws ArgumentError when the rank is not positive or a size is negative.
  explicit LatentKvCache(const LatentKvCacheOptions& options);
  /// latents: token x kv_rank, rope_keys: token x d_rope. Throws ShapeError when they are not that.
  void append(TensorView<const T> latents, TensorView<const T> rope_keys);
  /// q: head x query x (d_nope + d_rope), the part with the position last; the queries are the last
  /// tokens appended. The scale is 1 / sqrt(d_nope + d_rope) unless it is given; options as in
  /// `KvCache::attend`. Returns head x query x d_v.
  /// Cost: 2 (2 kv_rank + d_rope) FLOPs a head and pair that is seen, and 2 kv_rank (d_nope + d_v) a
  /// head and query. Accuracy: as `attention` with the absorbed query for q, and two products of
  /// matrices. Throws as `KvCache::attend`.
  Tensor<T> attend(TensorView<const T> q, const LatentProjections<T>& projections,
                   const AttentionOptions<T>& options = {}) const;
  template <class L, class R>
  requires detail::Arrays<L, R>
  void append(const L& latents, const R& rope_keys) {
    append(detail::read_only(latents), detail::read_only(rope_keys));
  }
  template <class Q>
  requires detail::Arrays<Q> Tensor<T> attend(const Q& q, const LatentProjections<T>& projections,
                                              const AttentionOptions<T>& options = {})
  const { return attend(detail::read_only(q), projections, options); }

  Index length() const { return length_; }
  Index kept() const { return rows_.count(); }
  std::uint64_t bytes() const { return rows_.bytes(); }
  Tensor<T> latents() const;    // key x kv_rank, oldest first
  Tensor<T> rope_keys() const;  // key x d_rope
  /// As `KvCache::truncate`.
  void truncate(Index length);

 private:
  LatentKvCacheOptions options_;
  Index length_ = 0;
  Index last_append_ = 0;
  detail::TokenRows<T> rows_;  // one head: latent, then rotary key
};

}  // namespace eckart

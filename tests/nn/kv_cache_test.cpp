#include "eckart/nn/kv_cache.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/matchers.h"
#include "tests/nn/attention_reference.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::attention_reference;
using testing::has_elements;
using testing::is_near;
using testing::is_within;
using testing::random_tensor;
using testing::thrown_by;

// An array of heads as a batch of one.
template <class T>
Tensor<T> batched(const Tensor<T>& x) {
  return x.reshaped({1, x.size(0), x.size(1), x.size(2)});
}

template <class T>
TensorView<const T> tokens(const Tensor<T>& x, Index begin, Index end) {
  return x.view().slice(1, {begin, end, 1});
}

// What each token's attention must be: the formula for all tokens at once.
template <class T>
testing::AttentionReference<T> recomputed(const Tensor<T>& q, const Tensor<T>& k,
                                          const Tensor<T>& v, AttentionOptions<T> options) {
  options.causal = true;
  return attention_reference<T>(batched(q), batched(k), batched(v), options);
}

// The rows of one query of every head.
Tensor<double> rows_of(const Tensor<double>& all, Index begin, Index end) {
  return Tensor<double>(all.view().slice(2, {begin, end, 1}));
}

// Appends and attends token by token, and compares each with recomputing.
template <class T>
void expect_equal_to_recomputing(const KvCacheOptions& cache_options, Index n_heads, Index n,
                                 const AttentionOptions<T>& options) {
  const Index d_v = cache_options.d_head_v == 0 ? cache_options.d_head : cache_options.d_head_v;
  const Tensor<T> q = random_tensor<T>({n_heads, n, cache_options.d_head}, 1);
  Tensor<T> k = random_tensor<T>({cache_options.n_kv_heads, n, cache_options.d_head}, 2);
  Tensor<T> v = random_tensor<T>({cache_options.n_kv_heads, n, d_v}, 3);
  KvCache<T> cache(cache_options);
  if (cache_options.precision == KvPrecision::bf16) {
    // What is stored is what is attended to.
    KvCache<T> rounding({.n_kv_heads = cache_options.n_kv_heads,
                         .d_head = cache_options.d_head,
                         .d_head_v = d_v,
                         .precision = KvPrecision::bf16});
    rounding.append(k, v);
    k = rounding.keys();
    v = rounding.values();
  }
  AttentionOptions<T> with_window = options;
  with_window.window = cache_options.window;
  const auto expected = recomputed(q, k, v, with_window);
  for (Index i = 0; i < n; ++i) {
    cache.append(tokens(k, i, i + 1), tokens(v, i, i + 1));
    EXPECT_TRUE(is_within(cache.attend(tokens(q, i, i + 1), options),
                          rows_of(expected.mixed, i, i + 1),
                          rows_of(expected.mixed_bound, i, i + 1)))
        << "token " << i;
  }
  EXPECT_EQ(cache.length(), n);
}

TEST(KvCache, TokenByTokenEqualsRecomputing) {
  expect_equal_to_recomputing<float>({.n_kv_heads = 2, .d_head = 8}, 4, 150, {});
  expect_equal_to_recomputing<double>({.n_kv_heads = 1, .d_head = 5, .d_head_v = 11}, 3, 70, {});
  expect_equal_to_recomputing<float>({.n_kv_heads = 1, .d_head = 16}, 18, 130, {});
}

TEST(KvCache, WithAWindowEqualsRecomputing) {
  for (const Index window : {1, 2, 30, 100}) {
    expect_equal_to_recomputing<float>({.n_kv_heads = 2, .d_head = 8, .window = window}, 4, 250,
                                       {});
  }
  expect_equal_to_recomputing<double>(
      {.n_kv_heads = 2, .d_head = 8, .window = 9, .precision = KvPrecision::bf16}, 2, 80, {});
}

TEST(KvCache, InBf16EqualsRecomputingWithTheRounded) {
  for (const Index d : {8, 19, 40}) {
    expect_equal_to_recomputing<float>(
        {.n_kv_heads = 2, .d_head = d, .precision = KvPrecision::bf16}, 6, 90, {});
    expect_equal_to_recomputing<double>(
        {.n_kv_heads = 1, .d_head = d, .precision = KvPrecision::bf16}, 2, 40, {});
  }
  // Packed blocks.
  expect_equal_to_recomputing<float>(
      {.n_kv_heads = 1, .d_head = 12, .precision = KvPrecision::bf16}, 20, 140, {});
}

TEST(KvCache, TakesTheOptionsThatApply) {
  const Tensor<float> slopes = random_tensor<float>({4}, 7), sinks = random_tensor<float>({4}, 8);
  AttentionOptions<float> options{.scale = 0.7, .temperature = 0.6, .softcap = 3};
  options.alibi_slopes = slopes.view();
  options.sinks = sinks.view();
  expect_equal_to_recomputing<float>({.n_kv_heads = 2, .d_head = 8}, 4, 80, options);
  expect_equal_to_recomputing<float>({.n_kv_heads = 2, .d_head = 8, .window = 20}, 4, 80, options);
}

TEST(KvCache, ABlockAtOnceEqualsRecomputing) {
  for (const Index window : {0, 7}) {
    const Tensor<float> q = random_tensor<float>({4, 60, 8}, 1);
    const Tensor<float> k = random_tensor<float>({2, 60, 8}, 2);
    const Tensor<float> v = random_tensor<float>({2, 60, 8}, 3);
    const auto expected = recomputed(q, k, v, {.window = window});
    KvCache<float> cache({.n_kv_heads = 2, .d_head = 8, .window = window});
    Index begin = 0;
    for (const Index n : {1, 40, 3, 16}) {
      cache.append(tokens(k, begin, begin + n), tokens(v, begin, begin + n));
      EXPECT_TRUE(is_within(cache.attend(tokens(q, begin, begin + n)),
                            rows_of(expected.mixed, begin, begin + n),
                            rows_of(expected.mixed_bound, begin, begin + n)))
          << n << " tokens, window " << window;
      begin += n;
    }
  }
}

TEST(KvCache, KeepsWhatItSays) {
  KvCache<float> cache({.n_kv_heads = 1, .d_head = 2, .d_head_v = 1, .window = 2});
  for (Index i = 0; i < 500; ++i) {
    const auto x = static_cast<float>(i);
    cache.append(Tensor<float>({1, 1, 2}, {x, -x}), Tensor<float>({1, 1, 1}, 2 * x));
  }
  EXPECT_EQ(cache.length(), 500);
  EXPECT_EQ(cache.kept(), 2);
  EXPECT_EQ(cache.bytes(), 2U * 3U * 4U);
  EXPECT_TRUE(has_elements(cache.keys().view(), {498, -498, 499, -499}));
  EXPECT_TRUE(has_elements(cache.values().view(), {996, 998}));
  // Three at once: the window of the first of them is kept with them.
  cache.append(Tensor<float>({1, 3, 2}), Tensor<float>({1, 3, 1}));
  EXPECT_EQ(cache.kept(), 4);
  cache.append(Tensor<float>({1, 0, 2}), Tensor<float>({1, 0, 1}));
  EXPECT_EQ(cache.length(), 503);
}

TEST(KvCache, RoundsToTheNearestEvenOnce) {
  KvCache<float> floats({.n_kv_heads = 1, .d_head = 1, .precision = KvPrecision::bf16});
  KvCache<double> doubles({.n_kv_heads = 1, .d_head = 1, .precision = KvPrecision::bf16});
  // bf16 has 8 digits: between 1 and 1 + 2^-7 lies 1 + 2^-8, a tie.
  const double tie = 1 + std::ldexp(1, -8), odd_tie = 1 + 3 * std::ldexp(1, -8);
  // A hair above the tie, too little for a float to see: rounded twice it would go to 1.
  const double above = tie + std::ldexp(1, -40), below = odd_tie - std::ldexp(1, -40);
  for (const double x : {tie, odd_tie, above, below, 1e39, -0.0}) {
    const auto narrow = static_cast<float>(x);
    floats.append(Tensor<float>({1, 1, 1}, narrow), Tensor<float>({1, 1, 1}, narrow));
    doubles.append(Tensor<double>({1, 1, 1}, x), Tensor<double>({1, 1, 1}, x));
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double step = std::ldexp(1, -7);
  EXPECT_TRUE(
      has_elements(doubles.keys().view(), {1, 1 + 2 * step, 1 + step, 1 + step, infinity, -0.0}));
  EXPECT_EQ(floats.keys()(0, 0, 0), 1);
  EXPECT_EQ(floats.keys()(0, 1, 0), static_cast<float>(1 + 2 * step));
  EXPECT_EQ(doubles.bytes(), 6U * 2U * 2U);
}

TEST(KvCache, TruncatesAndGoesOn) {
  const Tensor<float> q = random_tensor<float>({2, 30, 4}, 1);
  const Tensor<float> k = random_tensor<float>({2, 30, 4}, 2);
  KvCache<float> cache({.n_kv_heads = 2, .d_head = 4});
  cache.append(k, k);
  const Tensor<float> last = cache.attend(tokens(q, 29, 30));
  cache.truncate(12);
  EXPECT_EQ(cache.length(), 12);
  EXPECT_TRUE(is_near(cache.keys(), Tensor<float>(tokens(k, 0, 12))));
  cache.append(tokens(k, 12, 30), tokens(k, 12, 30));
  EXPECT_TRUE(is_near(cache.attend(tokens(q, 29, 30)), last));
}

TEST(KvCache, OfNothingGivesNothing) {
  const KvCache<float> cache({.n_kv_heads = 2, .d_head = 4});
  EXPECT_EQ(cache.bytes(), 0U);
  EXPECT_EQ(cache.keys().shape(), Shape({2, 0, 4}));
  EXPECT_EQ(cache.attend(Tensor<float>({2, 0, 4})).shape(), Shape({2, 0, 4}));
}

TEST(KvCache, SaysWhatItCanNotTake) {
  EXPECT_EQ(thrown_by<ArgumentError>([] { KvCache<float>({.n_kv_heads = 0, .d_head = 4}); }),
            "kv_cache: n_kv_heads is 0, but it must be at least 1");
  KvCache<float> cache({.n_kv_heads = 2, .d_head = 4, .window = 8});
  const Tensor<float> k({2, 3, 4}), wide({2, 3, 5});
  EXPECT_EQ(thrown_by<ShapeError>([&] { cache.append(wide, k); }),
            "append: k is 2x3x5, but this cache takes 2 x token x 4");
  EXPECT_EQ(thrown_by<ShapeError>([&] { cache.append(k, tokens(k, 0, 2)); }),
            "append: k is 2x3x4 and v is 2x2x4, but both must have the same number of tokens");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { cache.attend(k); }),
            "attend: q is 2x3x4, but the cache has 0 tokens\n"
            "  hint: append the tokens' keys and values before their queries attend");
  cache.append(k, k);
  cache.append(k, k);
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] {
        cache.attend(Tensor<float>({2, 4, 4}));
      }),
      "attend: q is 2x4x4, but the last append brought 3 tokens, and what earlier ones saw of "
      "the window is gone");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              cache.attend(Tensor<float>({3, 1, 4}));
            }),
            "attend: q is 3x1x4 and the cache is 2x6x4, but q's 3 heads must be a multiple of the "
            "cache's 2 heads");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              cache.attend(Tensor<float>({2, 4}));
            }),
            "attend: q is 2x4, but it must be head x query x d_head");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { cache.attend(tokens(k, 0, 1), {.offset = 3}); }),
            "attend: the options have an offset, but a cache's queries are its last tokens, causal "
            "and with the cache's window\n"
            "  hint: scale, temperature, softcap, sinks and alibi_slopes apply");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { cache.truncate(2); }),
            "truncate: the cache has a window of 8, but only a full cache still has the tokens "
            "before the ones it forgets");
  KvCache<float> full({.n_kv_heads = 2, .d_head = 4});
  EXPECT_EQ(thrown_by<ArgumentError>([&] { full.truncate(2); }),
            "truncate: the length is 2, but the cache has 0 tokens");
}

// Multi-head latent attention with the heads' keys and values formed.
template <class T>
struct Latent {
  Index n_heads = 3, rank = 12, d_rope = 4, d_nope = 6, d_v = 5;
  Tensor<T> q, latents, rope_keys, w_uk, w_uv;

  explicit Latent(Index n)
      : q(random_tensor<T>({n_heads, n, d_nope + d_rope}, 1)),
        latents(random_tensor<T>({n, rank}, 2)),
        rope_keys(random_tensor<T>({n, d_rope}, 3)),
        w_uk(random_tensor<T>({n_heads, rank, d_nope}, 4)),
        w_uv(random_tensor<T>({n_heads, rank, d_v}, 5)) {}

  Tensor<T> expanded(Index window) const {
    const Index n = latents.size(0);
    const Tensor<T> of_latents = matmul(latents.view().reshape({1, n, rank}), w_uk, {});
    Tensor<T> k({n_heads, n, d_nope + d_rope});
    for (Index h = 0; h < n_heads; ++h) {
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < d_nope; ++j) k(h, i, j) = of_latents(h, i, j);
        for (Index j = 0; j < d_rope; ++j) k(h, i, d_nope + j) = rope_keys(i, j);
      }
    }
    const Tensor<T> v = matmul(latents.view().reshape({1, n, rank}), w_uv, {});
    return attention(q, k, v, {.causal = true, .window = window});
  }
};

TEST(LatentKvCache, EqualsAttentionWithKeysAndValuesFormed) {
  for (const Index window : {0, 10}) {
    const Latent<double> c(60);
    const Tensor<double> expected = c.expanded(window);
    LatentKvCache<double> cache({.kv_rank = c.rank, .d_rope = c.d_rope, .window = window});
    const LatentProjections<double> projections{c.w_uk, c.w_uv};
    for (Index i = 0; i < 60; ++i) {
      cache.append(c.latents.view().slice(0, {i, i + 1, 1}),
                   c.rope_keys.view().slice(0, {i, i + 1, 1}));
      // Scores below 60 to some 30 eps each, values below 20: 60 30 20 2.2e-16.
      EXPECT_TRUE(is_near(cache.attend(tokens(c.q, i, i + 1), projections).view(),
                          tokens(expected, i, i + 1), {.absolute = 8e-12}))
          << "token " << i;
    }
    EXPECT_EQ(cache.kept(), window == 0 ? 60 : 10);
    EXPECT_EQ(cache.bytes(), static_cast<std::uint64_t>(cache.kept() * 16 * 8));
  }
}

TEST(LatentKvCache, KeepsLatentsAndRotaryKeys) {
  const Latent<float> c(20);
  LatentKvCache<float> cache({.kv_rank = c.rank, .d_rope = c.d_rope});
  cache.append(c.latents, c.rope_keys);
  EXPECT_TRUE(is_near(cache.latents(), c.latents));
  EXPECT_TRUE(is_near(cache.rope_keys(), c.rope_keys));
  cache.truncate(7);
  EXPECT_EQ(cache.length(), 7);
  EXPECT_TRUE(is_near(cache.latents(), Tensor<float>(c.latents.view().slice(0, {0, 7, 1}))));
}

TEST(LatentKvCache, SaysWhatItCanNotTake) {
  const Latent<float> c(2);
  LatentKvCache<float> cache({.kv_rank = c.rank, .d_rope = c.d_rope});
  EXPECT_EQ(thrown_by<ShapeError>([&] { cache.append(c.rope_keys, c.rope_keys); }),
            "append: latents is 2x4, but this cache takes token x 12");
  cache.append(c.latents, c.rope_keys);
  const Tensor<float> narrow({3, 2, 5});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              cache.attend(narrow, {c.w_uk, c.w_uv});
            }),
            "attend: q is 3x2x5, w_uk is 3x12x6 and w_uv is 3x12x5, but q must be head x query x "
            "10, d_nope and the 4 of the rotary key, with the heads of both");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              cache.attend(c.q, {narrow, c.w_uv});
            }),
            "attend: w_uk is 3x2x5, but it must be head x 12 x d_nope");
}

}  // namespace
}  // namespace eckart

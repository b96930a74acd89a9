#include "eckart/nn/attention_backward.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"
#include "eckart/nn/softmax.h"
#include "eckart/nn/softmax_backward.h"

#include <cmath>
#include <limits>

#include "tests/matchers.h"
#include "tests/nn/central_differences.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_gradient;
using testing::is_near;
using testing::random_tensor;
using testing::thrown_by;

// Queries, keys, values and what the loss changes by the result.
struct Case {
  Tensor<double> q, k, v, d_y;

  Case(const Shape& queries, const Shape& keys, Index d_v)
      : q(random_tensor<double>(queries, 1)),
        k(random_tensor<double>(keys, 2)),
        v(random_tensor<double>(with_last(keys, d_v), 3)),
        d_y(random_tensor<double>(with_last(queries, d_v), 4)) {}

  static Shape with_last(const Shape& shape, Index size) {
    std::vector<Index> sizes = shape.sizes();
    sizes.back() = size;
    return Shape(sizes);
  }
};

void check(const Case& c, const AttentionOptions<double>& options, const char* what) {
  const AttentionGradients<double> gradients = attention_backward(c.d_y, c.q, c.k, c.v, options);
  EXPECT_TRUE(is_gradient(
      gradients.q, [&](const Tensor<double>& at) { return attention(at, c.k, c.v, options); },
      c.d_y, c.q))
      << what;
  EXPECT_TRUE(is_gradient(
      gradients.k, [&](const Tensor<double>& at) { return attention(c.q, at, c.v, options); },
      c.d_y, c.k))
      << what;
  EXPECT_TRUE(is_gradient(
      gradients.v, [&](const Tensor<double>& at) { return attention(c.q, c.k, at, options); },
      c.d_y, c.v))
      << what;
}

TEST(AttentionBackward, IsThatOfDifferences) {
  const Case c({3, 4}, {5, 4}, 2);
  check(c, {}, "one head");
  check(c, {.scale = 0.3}, "scale");
  check(c, {.temperature = 2}, "temperature");
  check(c, {.softcap = 1.5}, "soft cap");
  check(c, {.temperature = 0.7, .softcap = 2}, "soft cap and temperature");
}

TEST(AttentionBackward, OfCausalAttentionIsThatOfDifferences) {
  const Case c({2, 5, 3}, {2, 5, 3}, 3);
  check(c, {.causal = true}, "causal");
  check(c, {.causal = true, .window = 2}, "window");
  // Queries at positions -1, 0, 1, …: the first sees no key, and changes nothing.
  check(c, {.causal = true, .offset = -1}, "offset");
  const AttentionGradients<double> gradients =
      attention_backward(c.d_y, c.q, c.k, c.v, {.causal = true, .offset = -1});
  EXPECT_TRUE(has_elements(gradients.q.view().select(0, 0).select(0, 0), {0, 0, 0}));
}

TEST(AttentionBackward, OfGroupedHeadsIsThatOfDifferences) {
  const Case grouped({2, 4, 3, 3}, {2, 2, 4, 3}, 2);
  check(grouped, {}, "two heads a key head");
  check(grouped, {.causal = true}, "causal");
  const Case multi_query({3, 2, 3}, {1, 4, 3}, 3);
  check(multi_query, {}, "one key head");
}

TEST(AttentionBackward, WithMasksAndBiasesIsThatOfDifferences) {
  const Case c({2, 3, 3}, {2, 4, 3}, 2);
  Tensor<bool> mask({3, 4}, true);
  mask(0, 1) = false;
  mask(2, 0) = false;
  for (Index key = 0; key < 4; ++key) mask(1, key) = false;  // a query that sees nothing
  const Tensor<double> bias = random_tensor<double>({2, 1, 4}, 7);
  const Tensor<double> slopes = Tensor<double>::vector({0.5, 0.25});
  const Tensor<double> sinks = Tensor<double>::vector({0.3, -1});
  check(c, {.mask = mask}, "mask");
  check(c, {.bias = bias}, "bias");
  check(c, {.alibi_slopes = slopes}, "slopes");
  check(c, {.sinks = sinks}, "sinks");
  check(c,
        {.causal = true,
         .window = 3,
         .softcap = 3,
         .mask = mask,
         .bias = bias,
         .alibi_slopes = slopes,
         .sinks = sinks},
        "all of them");
}

TEST(AttentionBackward, IsTheChainOfItsSteps) {
  const Case c({6, 4}, {7, 4}, 5);
  const AttentionGradients<double> gradients = attention_backward(c.d_y, c.q, c.k, c.v);
  const Tensor<double> w = attention_weights(c.q, c.k);
  const Tensor<double> d_w = matmul(c.d_y.view(), c.v.view().transpose());
  const Tensor<double> d_s = softmax_backward(d_w, w, {.temperature = 2});  // 1 / sqrt(4)
  const double bound = 7 * 5 * 64 * 0x1p-52;  // sums of 5 and 7 products below 64
  EXPECT_TRUE(is_near(gradients.q, matmul(d_s, c.k), {.absolute = bound}));
  EXPECT_TRUE(
      is_near(gradients.k, matmul(d_s.view().transpose(), c.q.view()), {.absolute = bound}));
  EXPECT_TRUE(
      is_near(gradients.v, matmul(w.view().transpose(), c.d_y.view()), {.absolute = bound}));
}

TEST(AttentionBackward, OfSeveralBlocksOfQueriesIsTheSum) {
  // 300 queries are three blocks: their gradients by k and v add up.
  const Case c({300, 8}, {280, 8}, 8);
  for (const AttentionOptions<double>& options :
       {AttentionOptions<double>{.causal = true, .offset = 0},
        AttentionOptions<double>{.causal = true, .offset = -30, .window = 40},
        AttentionOptions<double>{}}) {
    const AttentionGradients<double> whole = attention_backward(c.d_y, c.q, c.k, c.v, options);
    Tensor<double> d_k(c.k.shape());
    Tensor<double> d_v(c.v.shape());
    for (Index begin = 0; begin < 300; begin += 50) {
      const Slice part{.begin = begin, .end = begin + 50};
      AttentionOptions<double> here = options;
      if (options.causal) here.offset = *options.offset + begin;
      const AttentionGradients<double> some = attention_backward(
          c.d_y.view().slice(0, part), c.q.view().slice(0, part), c.k.view(), c.v.view(), here);
      // Rows of the weights are the same; only the products' order of sums may differ.
      EXPECT_TRUE(is_near(some.q.view(), whole.q.view().slice(0, part), {.absolute = 1e-12}));
      for (Index i = 0; i < d_k.count(); ++i) d_k.data()[i] += some.k.data()[i];
      for (Index i = 0; i < d_v.count(); ++i) d_v.data()[i] += some.v.data()[i];
    }
    // 300 terms below 16 in another order.
    EXPECT_TRUE(is_near(whole.k, d_k, {.absolute = 300 * 16 * 0x1p-52}));
    EXPECT_TRUE(is_near(whole.v, d_v, {.absolute = 300 * 16 * 0x1p-52}));
  }
}

TEST(AttentionBackward, WithoutATemperatureBetweenIsZeroByTheScores) {
  const Case c({3, 4}, {5, 4}, 2);
  for (const double temperature : {0.0, std::numeric_limits<double>::infinity()}) {
    const AttentionGradients<double> gradients =
        attention_backward(c.d_y, c.q, c.k, c.v, {.temperature = temperature});
    EXPECT_TRUE(is_near(gradients.q, Tensor<double>(c.q.shape())));
    EXPECT_TRUE(is_near(gradients.k, Tensor<double>(c.k.shape())));
    double sum = 0;
    double wanted = 0;
    for (Index i = 0; i < gradients.v.count(); ++i) sum += gradients.v.data()[i];
    for (Index i = 0; i < c.d_y.count(); ++i) wanted += c.d_y.data()[i];
    EXPECT_NEAR(sum, wanted, 10 * 4 * 0x1p-52);  // weights sum to 1; ten terms below 4
  }
}

TEST(AttentionBackward, KeepsNamesAndTakesStridedViewsAndNothing) {
  const Tensor<double> q = random_tensor<double>({5, 2, 4}, 1).named({"token", "head", "d_head"});
  const Tensor<double> k = random_tensor<double>({6, 2, 4}, 2).named({"key", "head", "d_head"});
  const Tensor<double> d_y = random_tensor<double>({5, 2, 4}, 3);
  const auto by_head = [](const Tensor<double>& a) { return a.view().permute({1, 0, 2}); };
  const AttentionGradients<double> gradients =
      attention_backward(by_head(d_y), by_head(q), by_head(k), by_head(k));
  EXPECT_EQ(gradients.q.shape(), Shape({2, 5, 4}, {"head", "token", "d_head"}));
  EXPECT_EQ(gradients.k.shape(), Shape({2, 6, 4}, {"head", "key", "d_head"}));
  const AttentionGradients<double> copied =
      attention_backward(Tensor<double>(by_head(d_y)), Tensor<double>(by_head(q)),
                         Tensor<double>(by_head(k)), Tensor<double>(by_head(k)));
  EXPECT_TRUE(is_near(gradients.q, copied.q));
  const AttentionGradients<double> none =
      attention_backward(Tensor<double>({0, 3}), Tensor<double>({0, 4}), Tensor<double>({2, 4}),
                         Tensor<double>({2, 3}));
  EXPECT_TRUE(has_elements(none.v.view(), {0, 0, 0, 0, 0, 0}));
}

TEST(AttentionBackward, SaysWhatDoesNotFit) {
  const Tensor<float> q({2, 4});
  const Tensor<float> v({2, 3});
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention_backward(q, q, q, v); }),
            "attention_backward: d_y is 2x4, but it must be 2x3 as attention's result");
}

}  // namespace
}  // namespace eckart

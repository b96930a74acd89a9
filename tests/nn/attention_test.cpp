#include "eckart/nn/attention.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/linalg/worked_examples.h"
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
using testing::tensor_of;
using testing::thrown_by;
using testing::worked_examples;

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

template <class T>
struct Case {
  Tensor<T> q, k, v;
};

struct Sizes {
  Index batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, d_head = 1, d_v = 1;
};

template <class T>
Case<T> random_case(const Sizes& s) {
  return {random_tensor<T>({s.batch, s.heads, s.queries, s.d_head}, 1),
          random_tensor<T>({s.batch, s.kv_heads, s.keys, s.d_head}, 2),
          random_tensor<T>({s.batch, s.kv_heads, s.keys, s.d_v}, 3)};
}

// Both functions against the formula.
template <class T>
void expect_right(const Case<T>& c, const AttentionOptions<T>& options, const std::string& what) {
  const auto expected = attention_reference<T>(c.q, c.k, c.v, options);
  EXPECT_TRUE(is_within(attention(c.q, c.k, c.v, options), expected.mixed, expected.mixed_bound))
      << what;
  EXPECT_TRUE(
      is_within(attention_weights(c.q, c.k, options), expected.weights, expected.weight_bound))
      << what;
}

template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.count() == b.count() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.count()) * sizeof(T)) == 0;
}

TEST(Attention, WeighsTheWorkedExamples) {
  for (const auto& example : worked_examples("attention_weights")) {
    AttentionOptions<double> options;
    options.causal = example.inputs.value("causal", false);
    EXPECT_TRUE(is_near(
        attention_weights(tensor_of(example.inputs["q"]), tensor_of(example.inputs["k"]), options),
        tensor_of(example.expect), {.absolute = example.tolerance}))
        << example.id;
  }
}

TEST(Attention, MixesTheValuesByTheWeights) {
  // Scores ln 1, ln 3 with scale 1: weights 1/4 and 3/4.
  const auto q = Tensor<double>::matrix({{1}});
  const auto k = Tensor<double>::matrix({{0}, {std::log(3)}});
  const auto v = Tensor<double>::matrix({{4, 0}, {0, 8}});
  EXPECT_TRUE(is_near(attention(q, k, v, {.scale = 1}), Tensor<double>::matrix({{1, 6}}),
                      {.absolute = 4e-15}));
  EXPECT_TRUE(is_near(attention(q, k, v, {.scale = 1, .temperature = 0}),
                      Tensor<double>::matrix({{0, 8}})));
  EXPECT_TRUE(is_near(attention(q, k, v, {.scale = 1, .temperature = infinity<double>}),
                      Tensor<double>::matrix({{2, 4}}), {.absolute = 4e-15}));
}

// Every subset of the options that a number or a table turns on.
template <class T>
void sweep_options(const Sizes& sizes) {
  const Case<T> c = random_case<T>(sizes);
  const Tensor<T> slopes = random_tensor<T>({sizes.heads}, 4);
  const Tensor<T> sinks = random_tensor<T>({sizes.heads}, 5);
  Tensor<T> bias = random_tensor<T>({sizes.heads, sizes.queries, sizes.keys}, 6);
  Tensor<bool> mask({sizes.batch, 1, 1, sizes.keys});
  for (Index i = 0; i < mask.count(); ++i) mask.data()[i] = i % 5 != 2;
  for (Index i = 0; i < bias.count(); i += 7) bias.data()[i] = -infinity<T>;
  for (int set = 0; set < 128; ++set) {
    const auto has = [&](int bit) { return (set >> bit & 1) != 0; };
    AttentionOptions<T> options;
    options.causal = has(0);
    if (has(0) && has(1)) options.window = 13;
    if (has(1)) options.temperature = 0.5;
    if (has(2)) options.softcap = 2;
    if (has(3)) options.mask = mask.view();
    if (has(4)) options.bias = bias.view();
    if (has(5)) options.alibi_slopes = slopes.view();
    if (has(6)) options.sinks = sinks.view();
    expect_right(c, options, "options " + std::to_string(set));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Attention, WithAnyOptionsIsTheFormula) {
  sweep_options<float>({2, 4, 2, 19, 45, 10, 7});
  sweep_options<double>({1, 3, 3, 21, 37, 9, 8});
}

TEST(Attention, OfFewQueriesWithAnyOptionsIsTheFormula) {
  sweep_options<float>({1, 6, 2, 1, 70, 19, 13});
  sweep_options<double>({1, 2, 2, 3, 67, 8, 9});
}

TEST(Attention, AtAnyTemperatureIsTheFormula) {
  for (const double temperature : {0.0, 0.01, 3.0, infinity<double>}) {
    for (const Index queries : {1, 30}) {
      const Case<float> c = random_case<float>({1, 2, 1, queries, 140, 12, 5});
      AttentionOptions<float> options{.causal = true, .temperature = temperature};
      expect_right(c, options, std::to_string(temperature));
      const Tensor<float> sinks({2}, 0.5F);
      options.sinks = sinks.view();
      options.softcap = 4;
      expect_right(c, options, std::to_string(temperature) + ", sinks and cap");
    }
  }
}

TEST(Attention, OfManyBlocksIsTheFormula) {
  for (const Index d : {64, 72, 80, 96}) {
    const Case<float> c = random_case<float>({1, 2, 1, 71, 290, d, d});
    expect_right(c, AttentionOptions<float>{}, "full");
    expect_right(c, AttentionOptions<float>{.causal = true}, "causal");
    expect_right(c, AttentionOptions<float>{.causal = true, .window = 100}, "window");
  }
  const Case<double> c = random_case<double>({1, 1, 1, 130, 270, 33, 50});
  expect_right(c, AttentionOptions<double>{.causal = true}, "double");
}

TEST(Attention, OfOneQueryAndManyKeysIsTheFormula) {
  // More keys than one part has, both for keys in place and for packed ones.
  expect_right(random_case<float>({1, 4, 1, 1, 1300, 24, 24}), AttentionOptions<float>{}, "few");
  expect_right(random_case<float>({1, 20, 1, 1, 2100, 24, 16}), AttentionOptions<float>{},
               "packed");
  for (const bool causal : {false, true}) {
    expect_right(random_case<float>({1, 6, 2, 1, 1300, 24, 24}),
                 AttentionOptions<float>{.causal = causal, .softcap = 3}, "grouped, few");
    expect_right(random_case<float>({2, 20, 2, 1, 2300, 24, 16}),
                 AttentionOptions<float>{.causal = causal, .temperature = 0.5}, "grouped, packed");
  }
}

TEST(Attention, OfEveryShapeIsTheFormula) {
  for (const Index queries : {1, 2, 6, 7}) {
    for (const Index keys : {1, 2, 16, 17, 129}) {
      for (const Index d : {1, 3, 16}) {
        const Case<float> c = random_case<float>({1, 3, 1, queries, keys, d, d + 1});
        expect_right(c, AttentionOptions<float>{}, "full");
        expect_right(c, AttentionOptions<float>{.causal = true, .offset = 0}, "from 0");
        expect_right(c, AttentionOptions<float>{.causal = true}, "to the end");
      }
    }
  }
}

TEST(Attention, OfNothingIsZerosOrNothing) {
  const Case<float> no_keys = random_case<float>({2, 2, 1, 3, 0, 4, 5});
  const Tensor<float> zeros = attention(no_keys.q, no_keys.k, no_keys.v);
  EXPECT_TRUE(is_near(zeros, Tensor<float>({2, 2, 3, 5})));
  EXPECT_EQ(attention_weights(no_keys.q, no_keys.k).shape(), Shape({2, 2, 3, 0}));
  const Case<float> no_queries = random_case<float>({2, 2, 1, 0, 3, 4, 5});
  EXPECT_EQ(attention(no_queries.q, no_queries.k, no_queries.v).shape(), Shape({2, 2, 0, 5}));
  const Case<float> no_heads = random_case<float>({1, 0, 0, 3, 3, 4, 5});
  EXPECT_EQ(attention(no_heads.q, no_heads.k, no_heads.v).shape(), Shape({1, 0, 3, 5}));
  const Case<float> no_width = random_case<float>({1, 1, 1, 2, 4, 0, 1});
  const float mean =
      (no_width.v.data()[0] + no_width.v.data()[1] + no_width.v.data()[2] + no_width.v.data()[3]) /
      4;
  EXPECT_NEAR(attention(no_width.q, no_width.k, no_width.v).data()[0], mean, 1e-6);
}

TEST(Attention, OfAQueryThatSeesNoKeyIsZeros) {
  for (const Index queries : {2, 40}) {
    const Case<double> c = random_case<double>({1, 2, 2, queries, 30, 6, 6});
    Tensor<bool> mask({queries, 30}, true);
    for (Index j = 0; j < 30; ++j) mask(1, j) = false;
    const Tensor<double> mixed = attention(c.q, c.k, c.v, {.mask = mask.view()});
    const Tensor<double> weights = attention_weights(c.q, c.k, {.mask = mask.view()});
    for (Index i = 0; i < 6; ++i) EXPECT_EQ(mixed(0, 1, 1, i), 0);
    for (Index j = 0; j < 30; ++j) EXPECT_EQ(weights(0, 0, 1, j), 0);
    EXPECT_NE(mixed(0, 1, 0, 0), 0);
    // Before the first key, when the last query stands at the last key.
    const Case<double> longer = random_case<double>({1, 1, 1, queries, 1, 6, 6});
    EXPECT_EQ(attention(longer.q, longer.k, longer.v, {.causal = true})(0, 0, 0, 0), 0);
  }
}

TEST(Attention, OfEnormousScoresStaysFinite) {
  for (const Index queries : {1, 30}) {
    Case<float> c = random_case<float>({1, 1, 1, queries, 40, 16, 16});
    for (Index i = 0; i < c.q.count(); ++i) c.q.data()[i] *= 1e4F;
    expect_right(c, AttentionOptions<float>{}, "scores of 1e4");
    // All in one direction: sums that overflow without the largest subtracted.
    const Tensor<float> q({1, 1, queries, 16}, 1e4F);
    const Tensor<float> k({1, 1, 40, 16}, 1.0F);
    expect_right<float>({q, k, c.v}, AttentionOptions<float>{}, "all the same");
  }
}

TEST(Attention, KeepsANanInItsRow) {
  for (const Index queries : {3, 50}) {
    Case<float> c = random_case<float>({1, 2, 1, queries, 60, 8, 9});
    const Tensor<float> clean = attention(c.q, c.k, c.v, {.causal = true});
    c.q(0, 1, 2, 5) = nan<float>;
    const Tensor<float> mixed = attention(c.q, c.k, c.v, {.causal = true});
    for (Index h = 0; h < 2; ++h) {
      for (Index i = 0; i < queries; ++i) {
        for (Index j = 0; j < 9; ++j) {
          if (h == 1 && i == 2) {
            EXPECT_TRUE(std::isnan(mixed(0, h, i, j)));
          } else {
            EXPECT_EQ(mixed(0, h, i, j), clean(0, h, i, j));
          }
        }
      }
    }
  }
}

TEST(Attention, KeepsANanWhereKeysAreTakenInParts) {
  for (const Index queries : {1, 40}) {
    for (const Index keys : {513, 1300, 2300}) {
      Case<float> c = random_case<float>({1, 1, 1, queries, keys, 8, 9});
      c.q(0, 0, queries - 1, 5) = nan<float>;
      const Tensor<float> mixed = attention(c.q, c.k, c.v);
      for (Index j = 0; j < 9; ++j) EXPECT_TRUE(std::isnan(mixed(0, 0, queries - 1, j))) << keys;
    }
  }
}

TEST(Attention, ABiasThatIsANumberHidesNothing) {
  const Case<float> c = random_case<float>({1, 1, 1, 1, 2, 4, 4});
  const Tensor<float> plain = attention(c.q, c.k, c.v, {.scale = 0.0});
  const Tensor<float> bias({1, 1, 1, 2}, std::numeric_limits<float>::lowest());
  AttentionOptions<float> options{.scale = 0.0};
  options.bias = bias.view();
  EXPECT_TRUE(is_near(attention(c.q, c.k, c.v, options).view(), plain.view(), {.relative = 1e-6}));
}

TEST(Attention, AtTemperature0TakesTheFirstOfEqualKeys) {
  const Tensor<float> q = Tensor<float>::vector({1, 1, 1, 1, 1}).reshaped({1, 1, 5});
  const Tensor<float> k({1, 2, 5}, std::vector<float>{4, 4, 0, 1, -2, 2, 2, 3, 2, -2});
  const Tensor<float> v({1, 2, 1}, std::vector<float>{10, 20});
  const AttentionOptions<float> options{.scale = 1.0, .temperature = 0};
  EXPECT_EQ(attention(q, k, v, options)(0, 0, 0), 10);
  EXPECT_EQ(attention_weights(q, k, options)(0, 0, 0), 1);
}

TEST(Attention, TakesAnyOffsetAndWindow) {
  const Case<float> c = random_case<float>({1, 1, 1, 3, 5, 4, 4});
  constexpr Index most = std::numeric_limits<Index>::max();
  const Tensor<float> all = attention(c.q, c.k, c.v);
  const AttentionOptions<float> late{.causal = true, .offset = most};
  EXPECT_TRUE(is_near(attention(c.q, c.k, c.v, late).view(), all.view(), {.relative = 1e-6}));
  const AttentionOptions<float> wide{.causal = true, .window = most};
  EXPECT_TRUE(is_near(attention(c.q, c.k, c.v, wide).view(),
                      attention(c.q, c.k, c.v, {.causal = true}).view(), {.relative = 1e-6}));
}

TEST(Attention, ReadsNothingThatIsHidden) {
  for (const Index queries : {2, 50}) {
    Case<double> c = random_case<double>({1, 2, 1, queries, 70, 8, 9});
    Tensor<bool> mask({70}, true);
    mask(3) = false;
    const Tensor<double> clean = attention(c.q, c.k, c.v, {.causal = true, .mask = mask.view()});
    for (Index i = 0; i < 8; ++i) c.k(0, 0, 3, i) = nan<double>;
    c.v(0, 0, 3, 1) = infinity<double>;
    c.v(0, 0, 3, 4) = nan<double>;
    // The last key is seen by the last query alone.
    c.v(0, 0, 69, 0) = nan<double>;
    const Tensor<double> mixed = attention(c.q, c.k, c.v, {.causal = true, .mask = mask.view()});
    const Tensor<double> weights =
        attention_weights(c.q, c.k, {.causal = true, .mask = mask.view()});
    for (Index i = 0; i < queries; ++i) {
      EXPECT_EQ(weights(0, 1, i, 3), 0);
      for (Index j = 1; j < 9; ++j) {
        EXPECT_NEAR(mixed(0, 1, i, j), clean(0, 1, i, j), 1e-13);  // 70 values of at most 4
      }
      EXPECT_EQ(std::isnan(mixed(0, 1, i, 0)), i == queries - 1);
    }
  }
}

TEST(Attention, TakesViewsOfAnyStrides) {
  const Tensor<float> q = random_tensor<float>({30, 4, 12}, 1);  // token, head, d_head
  const Tensor<float> k = random_tensor<float>({12, 2, 80}, 2);  // d_head, head, token
  const Tensor<float> v = random_tensor<float>({2, 80, 22}, 3);
  const TensorView<const float> turned_q = q.view().permute({1, 0, 2});
  const TensorView<const float> turned_k = k.view().permute({1, 2, 0}).slice(1, {0, 80, 2});
  const TensorView<const float> cut_v = v.view().slice(2, {1, 22, 3}).slice(1, {0, 80, 2});
  for (const Index queries : {2, 30}) {
    const TensorView<const float> some = turned_q.slice(1, {0, queries, 1});
    EXPECT_TRUE(
        is_near(attention(some, turned_k, cut_v),
                attention(Tensor<float>(some), Tensor<float>(turned_k), Tensor<float>(cut_v)),
                {.absolute = 1e-6}));
  }
}

TEST(Attention, IsTheSameForEveryNumberOfThreads) {
  for (const Index queries : {1, 150}) {
    const Case<float> c = random_case<float>({1, 4, 2, queries, 1500, 40, 40});
    set_thread_count(1);
    const Tensor<float> one = attention(c.q, c.k, c.v, {.causal = true});
    set_thread_count(3);
    const Tensor<float> three = attention(c.q, c.k, c.v, {.causal = true});
    set_thread_count(0);
    EXPECT_TRUE(same_bits(one, three));
  }
}

TEST(Attention, CarriesNames) {
  const auto q = Tensor<float>({2, 3, 4}).named({"head", "token", "d_head"});
  const auto k = Tensor<float>({1, 5, 4}).named({"head", "key", "d_head"});
  const auto v = Tensor<float>({1, 5, 6}).named({"head", "key", "d_v"});
  EXPECT_EQ(attention(q, k, v).shape(), Shape({2, 3, 6}, {"head", "token", "d_v"}));
  EXPECT_EQ(attention_weights(q, k).shape(), Shape({2, 3, 5}, {"head", "token", "key"}));
  EXPECT_EQ(attention_weights(q, q).shape(), Shape({2, 3, 3}, {"head", "token", ""}));
}

TEST(Attention, SaysWhichShapesDoNotFit) {
  const Tensor<float> q({6, 3, 4}), k({4, 5, 4}), v({4, 5, 7});
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(q, k, v); }),
            "attention: q is 6x3x4 and k is 4x5x4, but q's 6 heads must be a multiple of k's 4 "
            "heads");
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention_weights(q, k.view().transpose()); }),
            "attention_weights: q is 6x3x4 and k is 4x4x5, but q's 4 columns must equal k's 5 "
            "columns\n  hint: with k transposed they fit");
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(k, k, v.view().transpose()); }),
            "attention: k is 4x5x4 and v is 4x7x5, but k's 5 rows must equal v's 7 rows\n"
            "  hint: with v transposed they fit");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              attention(k, k, v.view().slice(0, {0, 2, 1}));
            }),
            "attention: k is 4x5x4 and v is 2x5x7, but both must have the same number of heads");
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(Tensor<float>({4}), k, v); }),
            "attention: q is 4, but it must have at least two axes\n"
            "  hint: a single row of d elements is the matrix 1xd");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              attention(Tensor<float>({3, 4}), k, v);
            }),
            "attention: q is 3x4 and k is 4x5x4, but both must have the same number of axes\n"
            "  hint: an axis of one head is written as 1");
  const Tensor<float> q2({2, 1, 3, 4}), k2({3, 1, 5, 4}), v2({3, 1, 5, 4});
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(q2, k2, v2); }),
            "attention: q is 2x1x3x4 and k is 3x1x5x4, but 2 meets 3 in axis 0, and batches must "
            "be the same\n  hint: broadcast_to repeats a batch without a copy");
  const auto q3 = Tensor<float>({3, 4}).named({"token", "d_head"});
  const auto k3 = Tensor<float>({5, 4}).named({"key", "d_model"});
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(q3, k3, k3); }),
            "attention: q is 3x4 (token, d_head) and k is 5x4 (key, d_model), but axis d_head of q "
            "would meet axis d_model of k");
}

TEST(Attention, SaysWhichOptionsAreOutOfRange) {
  const Tensor<float> q({2, 3, 4}), k({2, 5, 4});
  const auto error = [&](const AttentionOptions<float>& options) {
    return thrown_by<ArgumentError>([&] { attention(q, k, k, options); });
  };
  EXPECT_EQ(error({.window = 4}),
            "attention: the window is 4, but a window counts back from a causal query's position\n"
            "  hint: set causal = true, or hide keys on both sides with a mask");
  EXPECT_EQ(error({.causal = true, .window = -1}),
            "attention: the window is -1, but it must be at least 1, or 0 for no window");
  EXPECT_EQ(error({.temperature = -1}),
            "attention: the temperature is -1, but it must be at least 0\n"
            "  hint: 0 takes the value of the best key, infinity the mean of all");
  EXPECT_EQ(error({.softcap = -2}),
            "attention: the softcap is -2, but it must be a number above 0, or 0 for none");
  EXPECT_EQ(error({.scale = infinity<double>}),
            "attention: the scale is inf, but it must be finite");
  const Tensor<bool> mask({3, 6});
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(q, k, k, {.mask = mask.view()}); }),
            "attention: the table of scores is 2x3x5 and mask is 3x6, but 5 meets 6 in the last "
            "axis and neither is 1");
  const Tensor<float> bias({4, 2, 3, 5});
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(q, k, k, {.bias = bias.view()}); }),
            "attention: the table of scores is 2x3x5 and bias is 4x2x3x5, but bias must broadcast "
            "to the scores, and not they to it");
  const Tensor<float> slopes({3});
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(q, k, k, {.alibi_slopes = slopes.view()}); }),
            "attention: there are 2 heads and alibi_slopes is 3, but it must have one element a "
            "head");
  EXPECT_EQ(thrown_by<ShapeError>([&] { attention(q, k, k, {.sinks = bias.view()}); }),
            "attention: there are 2 heads and sinks is 4x2x3x5, but it must have one element a "
            "head");
}

}  // namespace
}  // namespace eckart

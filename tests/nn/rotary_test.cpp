#include "eckart/nn/rotary.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace eckart {
namespace {

using testing::is_near;
using testing::random_matrix;
using testing::random_tensor;
using testing::thrown_by;

constexpr double eps_double = 0x1p-52;

nlohmann::json golden() {
  std::ifstream file(ECKART_SOURCE_DIR "/tests/golden/nn/rotary.json");
  return nlohmann::json::parse(file);
}

RotaryScaling scaling_of(const std::string& name) {
  const std::pair<const char*, RotaryScaling> scalings[] = {
      {"linear", RotaryScaling::linear},
      {"dynamic_ntk", RotaryScaling::dynamic_ntk},
      {"yarn", RotaryScaling::yarn},
      {"llama3", RotaryScaling::llama3},
      {"longrope", RotaryScaling::longrope}};
  for (const auto& [known, scaling] : scalings) {
    if (name == known) return scaling;
  }
  throw std::invalid_argument(name);
}

RotaryOptions options_of(const nlohmann::json& from) {
  RotaryOptions options;
  if (from.contains("scaling")) options.scaling = scaling_of(from.at("scaling"));
  options.base = from.value("base", options.base);
  options.d_rotary = from.value("d_rotary", options.d_rotary);
  options.factor = from.value("factor", options.factor);
  options.original_context = from.value("original_context", options.original_context);
  options.context = from.value("context", options.context);
  options.beta_fast = from.value("beta_fast", options.beta_fast);
  options.beta_slow = from.value("beta_slow", options.beta_slow);
  options.truncates = from.value("truncates", options.truncates);
  options.attention_factor = from.value("attention_factor", options.attention_factor);
  options.mscale = from.value("mscale", options.mscale);
  options.mscale_all_dim = from.value("mscale_all_dim", options.mscale_all_dim);
  options.short_factors = from.value("short_factors", options.short_factors);
  options.long_factors = from.value("long_factors", options.long_factors);
  return options;
}

TEST(Rotary, FrequenciesAreThoseOfTransformers) {
  const nlohmann::json all = golden();
  for (const nlohmann::json& one : all.at("frequencies")) {
    const RotaryOptions options = options_of(one.at("options"));
    const RotaryFrequencies ours = rotary_frequencies(one.at("d_head").get<Index>(), options);
    const auto theirs = one.at("angles").get<std::vector<double>>();
    ASSERT_EQ(ours.angles_per_token.size(), theirs.size()) << one.at("name");
    // Theirs are in float: the exponent of the base is rounded (ln(base) 2^-24 at most), the power
    // and the quotients after it some 8 times, and llama3 and yarn mix two of them by a difference
    // that is off by 2^-24 of up to high / (high - low) < 32.
    const double allowed = (std::log(options.base) + 8 + 32) * 0x1p-24;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      EXPECT_NEAR(ours.angles_per_token[i] / theirs[i], 1, allowed) << one.at("name") << " " << i;
    }
    EXPECT_NEAR(ours.factor, one.at("factor").get<double>(), 4 * eps_double) << one.at("name");
  }
}

TEST(Rotary, TurnsAHeadAsTransformersDoes) {
  const nlohmann::json head = golden().at("head");
  const auto positions = head.at("positions").get<std::vector<Index>>();
  Tensor<float> x({4, 8});
  Tensor<float> turned({4, 8});
  for (Index token = 0; token < 4; ++token) {
    for (Index i = 0; i < 8; ++i) {
      x(token, i) =
          head.at("x").at(static_cast<std::size_t>(token)).at(static_cast<std::size_t>(i));
      turned(token, i) =
          head.at("turned").at(static_cast<std::size_t>(token)).at(static_cast<std::size_t>(i));
    }
  }
  // At position 1000 their angles are off by 1000 (ln(10000) + 3) 2^-24, and pairs are shorter
  // than 4.
  EXPECT_TRUE(is_near(rotary(x, positions), turned, {.absolute = 4 * 1000 * 13 * 0x1p-24}));
  for (Index token = 0; token < 3; ++token) {
    EXPECT_TRUE(is_near(rotary(x, positions).view().select(0, token),
                        turned.view().select(0, token), {.absolute = 4 * 5 * 13 * 0x1p-24}));
  }
}

TEST(Rotary, TurnsAPairByItsAngle) {
  const Tensor<double> x = Tensor<double>::matrix({{1, 0}, {1, 0}, {0, 2}});
  // One pair turns by 1 radian a position.
  EXPECT_TRUE(is_near(
      rotary(x, {0, 3, 3}),
      Tensor<double>::matrix(
          {{1, 0}, {std::cos(3.0), std::sin(3.0)}, {-2 * std::sin(3.0), 2 * std::cos(3.0)}}),
      {.absolute = 2 * eps_double}));
  // Two pairs: the second by 1/100.
  const Tensor<double> y = rotary(Tensor<double>::matrix({{1, 0, 0, 0}, {0, 1, 0, 0}}), {2, 2});
  EXPECT_TRUE(is_near(y,
                      Tensor<double>::matrix({{std::cos(2.0), 0, std::sin(2.0), 0},
                                              {0, std::cos(0.02), 0, std::sin(0.02)}}),
                      {.absolute = 2 * eps_double}));
}

TEST(Rotary, PairsNeighboursAsThePaperDoes) {
  const Tensor<double> y = rotary(Tensor<double>::matrix({{1, 0, 0, 0}, {0, 0, 1, 0}}), {2, 2},
                                  {.pairing = RotaryPairing::neighbours});
  EXPECT_TRUE(is_near(y,
                      Tensor<double>::matrix({{std::cos(2.0), std::sin(2.0), 0, 0},
                                              {0, 0, std::cos(0.02), std::sin(0.02)}}),
                      {.absolute = 2 * eps_double}));
  // Both pairings are one another with the elements in another order.
  const Tensor<double> x = random_matrix<double>(5, 12);
  Tensor<double> reordered({5, 12});
  for (Index row = 0; row < 5; ++row) {
    for (Index i = 0; i < 6; ++i) {
      reordered(row, i) = x(row, 2 * i);
      reordered(row, i + 6) = x(row, 2 * i + 1);
    }
  }
  const std::vector<Index> positions = {0, 1, 2, 10, 99};
  const Tensor<double> neighbours = rotary(x, positions, {.pairing = RotaryPairing::neighbours});
  const Tensor<double> halves = rotary(reordered, positions);
  for (Index row = 0; row < 5; ++row) {
    for (Index i = 0; i < 6; ++i) {
      EXPECT_EQ(neighbours(row, 2 * i), halves(row, i));
      EXPECT_EQ(neighbours(row, 2 * i + 1), halves(row, i + 6));
    }
  }
}

TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  const Tensor<double> q = random_matrix<double>(1, 64, 1);
  const Tensor<double> k = random_matrix<double>(1, 64, 2);
  for (const RotaryPairing pairing : {RotaryPairing::halves, RotaryPairing::neighbours}) {
    const auto score = [&](Index query, Index key) {
      const Tensor<double> a = rotary(q, {query}, {.pairing = pairing});
      const Tensor<double> b = rotary(k, {key}, {.pairing = pairing});
      double sum = 0;
      for (Index i = 0; i < 64; ++i) sum += a(0, i) * b(0, i);
      return sum;
    };
    const double near = score(5, 2);
    for (const Index shift : {1, 10, 1000, 100'000}) {
      // Angles are off by 2^-52 of up to 1e5 radians; 64 products of numbers below 4.
      EXPECT_NEAR(score(5 + shift, 2 + shift), near,
                  64 * 16 * static_cast<double>(shift + 5) * eps_double)
          << shift;
    }
    EXPECT_GT(std::abs(score(6, 2) - near), 1e-3);
  }
}

TEST(Rotary, KeepsTheLengthOfPairsAndWhatIsBehindThem) {
  const Tensor<double> x = random_tensor<double>({2, 3, 4, 10});
  const Tensor<double> y = rotary(x, {0, 7, 100, 12345}, {.d_rotary = 6});
  for (Index row = 0; row < 24; ++row) {
    const double* const from = x.data() + row * 10;
    const double* const to = y.data() + row * 10;
    for (Index i = 0; i < 3; ++i) {
      EXPECT_NEAR(std::hypot(to[i], to[i + 3]), std::hypot(from[i], from[i + 3]),
                  4 * eps_double * std::hypot(from[i], from[i + 3]));
    }
    for (Index i = 6; i < 10; ++i) EXPECT_EQ(to[i], from[i]);
  }
}

TEST(Rotary, WithATableIsTheSame) {
  const Tensor<float> x = random_tensor<float>({3, 4, 8});
  const std::vector<Index> positions = {3, 4, 5, 6};
  const RotaryOptions options{.base = 500, .d_rotary = 4, .pairing = RotaryPairing::neighbours};
  const RotaryTable<float> table = rotary_table<float>(8, positions, options);
  EXPECT_EQ(table.cosines.shape(), Shape({4, 2}, {"token", "pair"}));
  EXPECT_TRUE(is_near(rotary(x, table), rotary(x, positions, options)));
}

TEST(Rotary, TakesStridedViewsAndKeepsNames) {
  // token x head x d_head, as a projection gives it, seen head by head.
  const Tensor<float> base = random_tensor<float>({5, 3, 8}).named({"token", "head", "d_head"});
  const TensorView<const float> x = base.view().permute({1, 0, 2});
  const std::vector<Index> positions = {0, 1, 2, 3, 4};
  const Tensor<float> y = rotary(x, positions);
  EXPECT_EQ(y.shape(), Shape({3, 5, 8}, {"head", "token", "d_head"}));
  EXPECT_TRUE(is_near(y, rotary(Tensor<float>(x), positions)));
  const TensorView<const float> backwards = base.view().permute({1, 2, 0});
  EXPECT_TRUE(
      is_near(rotary(backwards.slice(2, {.end = 4}), {0, 1, 2, 3, 4, 5, 6, 7}),
              rotary(Tensor<float>(backwards.slice(2, {.end = 4})), {0, 1, 2, 3, 4, 5, 6, 7})));
}

TEST(Rotary, OfNothingIsEmpty) {
  EXPECT_EQ(rotary(Tensor<float>({2, 0, 4}), std::vector<Index>{}).shape(), Shape({2, 0, 4}));
  EXPECT_EQ(rotary(Tensor<float>({1, 0}), {5}).shape(), Shape({1, 0}));
}

TEST(Rotary, KeepsANaNInItsPair) {
  Tensor<double> x({2, 4}, 1.0);
  x(0, 1) = std::nan("");
  const Tensor<double> y = rotary(x, {3, 4});
  for (Index i = 0; i < 4; ++i) {
    EXPECT_EQ(std::isnan(y(0, i)), i % 2 == 1);
    EXPECT_FALSE(std::isnan(y(1, i)));
  }
}

TEST(Rotary, ScalingLeavesTheFirstPairAndSlowsTheLast) {
  const RotaryOptions plain;
  const std::vector<double> before = rotary_frequencies(64, plain).angles_per_token;
  // NTK by 8: the base is chosen so that the last pair becomes 8 times as slow.
  const std::vector<double> ntk =
      rotary_frequencies(64, {.scaling = RotaryScaling::ntk, .factor = 8}).angles_per_token;
  EXPECT_EQ(ntk.front(), 1);
  EXPECT_NEAR(ntk.back() * 8 / before.back(), 1, 16 * eps_double);
  // Linear slows all.
  const std::vector<double> linear =
      rotary_frequencies(64, {.scaling = RotaryScaling::linear, .factor = 8}).angles_per_token;
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(linear[i], before[i] / 8);
  // Llama 3: waves below 8192 / 4 positions are kept, those above 8192 divided by 8.
  const std::vector<double> llama =
      rotary_frequencies(64,
                         {.scaling = RotaryScaling::llama3, .factor = 8, .original_context = 8192})
          .angles_per_token;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double wave = 6.283185307179586 / before[i];
    if (wave < 2048) {
      EXPECT_EQ(llama[i], before[i]);
    }
    if (wave > 8192) {
      EXPECT_NEAR(llama[i], before[i] / 8, 2 * eps_double * before[i]);
    }
    EXPECT_LE(llama[i], before[i]);
    EXPECT_GE(llama[i], before[i] / 8 * (1 - 2 * eps_double));
  }
}

TEST(Rotary, DynamicScalingBeginsBehindTheContext) {
  const RotaryOptions options{
      .scaling = RotaryScaling::dynamic_ntk, .factor = 4, .original_context = 1000};
  const std::vector<double> plain = rotary_frequencies(16, {}).angles_per_token;
  RotaryOptions within = options;
  within.context = 1000;
  RotaryOptions beyond = options;
  beyond.context = 2000;
  EXPECT_EQ(rotary_frequencies(16, options).angles_per_token, plain);
  EXPECT_EQ(rotary_frequencies(16, within).angles_per_token, plain);
  // (4 x 2000 / 1000) - 3 = 5 times as slow at the end.
  EXPECT_NEAR(rotary_frequencies(16, beyond).angles_per_token.back() * 5 / plain.back(), 1,
              16 * eps_double);
}

TEST(Rotary, SaysWhichOptionIsOutOfRange) {
  const auto text = [](const RotaryOptions& options, Index d_head = 8) {
    return thrown_by<ArgumentError>([&] { rotary_frequencies(d_head, options); });
  };
  EXPECT_EQ(text({.d_rotary = 10}),
            "rotary: d_rotary is 10 and d_head 8, but d_rotary must be 0 to d_head");
  EXPECT_EQ(text({}, 7), "rotary: d_rotary is 7, but pairs need an even number");
  EXPECT_EQ(text({.base = 0}), "rotary: base is 0, but it must be above 0 and finite");
  EXPECT_EQ(text({.scaling = RotaryScaling::linear, .factor = -2}),
            "rotary: factor is -2, but it must be above 0 and finite");
  EXPECT_EQ(text({.scaling = RotaryScaling::ntk, .factor = 2}, 2),
            "rotary: d_rotary is 2, but ntk scaling needs at least 2 pairs, 4 elements");
  EXPECT_EQ(text({.scaling = RotaryScaling::yarn, .factor = 2}),
            "rotary: original_context is 0, but yarn needs the tokens trained on, above 1");
  EXPECT_EQ(text({.base = 1, .scaling = RotaryScaling::yarn, .original_context = 64}),
            "rotary: base is 1, but yarn needs one above 1");
  EXPECT_EQ(text({.scaling = RotaryScaling::yarn, .original_context = 64, .beta_fast = 0}),
            "rotary: beta_fast is 0, but it must be above 0 and finite");
  EXPECT_EQ(
      text({.scaling = RotaryScaling::llama3,
            .original_context = 64,
            .low_frequency_factor = 4,
            .high_frequency_factor = 1}),
      "rotary: low_frequency_factor is 4 and high_frequency_factor 1, but the high one must be "
      "the larger");
  EXPECT_EQ(
      text({.scaling = RotaryScaling::longrope,
            .original_context = 64,
            .short_factors = {1, 1, 1},
            .long_factors = {1, 1, 1, 1}}),
      "rotary: short_factors has 3 elements and d_rotary is 8, but longrope needs one a pair, "
      "4");
  EXPECT_EQ(text({.scaling = RotaryScaling::linear, .attention_factor = 2}),
            "rotary: attention_factor is 2 and scaling is linear, but only yarn and longrope have "
            "one");
}

TEST(Rotary, SaysWhatDoesNotFit) {
  const Tensor<float> x = random_matrix<float>(3, 8).named({"token", "d_head"});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              rotary(x, {1, 2});
            }),
            "rotary: x is 3x8 (token, d_head) with 3 tokens, but there are 2 positions");
  EXPECT_EQ(thrown_by<ShapeError>([&] { rotary(Tensor<float>({8}), {1}); }),
            "rotary: x is 8, but its last two axes must be the tokens and a head's elements");
  const RotaryTable<float> table = rotary_table<float>(16, {1, 2, 3});
  EXPECT_EQ(thrown_by<ShapeError>([&] { rotary(x, table); }),
            "rotary: x is 3x8 (token, d_head), but the table's 8 pairs need at least 16 elements a "
            "head");
  const RotaryTable<float> shorter = rotary_table<float>(8, {1, 2});
  EXPECT_EQ(thrown_by<ShapeError>([&] { rotary(x, shorter); }),
            "rotary: x is 3x8 (token, d_head) with 3 tokens, but the table has 2 positions");
}

}  // namespace
}  // namespace eckart

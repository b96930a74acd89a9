#include "eckart/model/sampling.h"

#include "eckart/core/errors.h"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::is_near;
using testing::thrown_by;

constexpr float infinity = std::numeric_limits<float>::infinity();

Tensor<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return Tensor<float>(Shape{static_cast<Index>(logits.size())}, logits);
}

// Logits are rounded to float, which moves a probability by less than their size times 2^-24.
constexpr testing::Bound rounding = {.relative = 1e-6};

TEST(Sampling, AtTemperature1GivesTheSoftmax) {
  EXPECT_TRUE(is_near(token_probabilities(logs({0.5, 0.25, 0.125, 0.125})),
                      Tensor<double>::vector({0.5, 0.25, 0.125, 0.125}), rounding));
}

TEST(Sampling, ALowTemperatureSharpens) {
  // Square roots undone: at temperature 1/2 probabilities are squared, 4 : 1.
  EXPECT_TRUE(is_near(token_probabilities(logs({2, 1}), {.temperature = 0.5}),
                      Tensor<double>::vector({0.8, 0.2}), rounding));
}

TEST(Sampling, AtTemperature0TheFirstOfTheLikeliestIsSure) {
  const Tensor<float> logits = Tensor<float>::vector({1, 3, 3, 2});
  EXPECT_TRUE(is_near(token_probabilities(logits, {.temperature = 0}),
                      Tensor<double>::vector({0, 1, 0, 0})));
  EXPECT_EQ(sample_token(logits, {.temperature = 0}, 5).id, 1);
}

TEST(Sampling, TopKKeepsTheLikeliestAndOfEqualsTheFirst) {
  EXPECT_TRUE(is_near(token_probabilities(logs({0.1, 0.3, 0.3, 0.3}), {.top_k = 2}),
                      Tensor<double>::vector({0, 0.5, 0.5, 0}), rounding));
  EXPECT_TRUE(is_near(token_probabilities(logs({0.5, 0.5}), {.top_k = 9}),
                      Tensor<double>::vector({0.5, 0.5}), rounding));
}

TEST(Sampling, TopPKeepsTheFewestThatReachIt) {
  const Tensor<float> logits = logs({0.5, 0.3, 0.15, 0.05});
  EXPECT_TRUE(is_near(token_probabilities(logits, {.top_p = 0.6}),
                      Tensor<double>::vector({0.625, 0.375, 0, 0}), rounding));
  EXPECT_TRUE(
      is_near(token_probabilities(logits, {.top_p = 1e-9}), Tensor<double>::vector({1, 0, 0, 0})));
}

TEST(Sampling, TopPIsAShareOfWhatTopKLeft) {
  // Of 0.5 and 0.3 the first has 0.625: alone enough for 0.6.
  EXPECT_TRUE(is_near(token_probabilities(logs({0.5, 0.3, 0.2}), {.top_k = 2, .top_p = 0.6}),
                      Tensor<double>::vector({1, 0, 0})));
}

TEST(Sampling, AHiddenTokenIsNeverDrawn) {
  const Tensor<float> logits = Tensor<float>::vector({0, -infinity});
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(sample_token(logits, {}, i).id, 0);
}

TEST(Sampling, NoTemperatureWarmsAHiddenToken) {
  const SamplingOptions hot{.temperature = std::numeric_limits<double>::infinity()};
  EXPECT_TRUE(is_near(token_probabilities(Tensor<float>::vector({3, -infinity, 1}), hot),
                      Tensor<double>::vector({0.5, 0, 0.5})));
  EXPECT_TRUE(is_near(token_probabilities(Tensor<float>::vector({infinity, 2, infinity}), hot),
                      Tensor<double>::vector({0.5, 0, 0.5})));
}

TEST(Sampling, DrawsAsOftenAsTheProbabilitySays) {
  const Tensor<float> logits = logs({0.7, 0.2, 0.1});
  std::vector<int> counts(3, 0);
  constexpr int n = 4000;
  for (int i = 0; i < n; ++i) {
    ++counts[static_cast<std::size_t>(
        sample_token(logits, {.seed = 3}, static_cast<std::uint64_t>(i)).id)];
  }
  // Five standard deviations of a binomial count, at most 5 sqrt(n / 4).
  const double bound = 5 * std::sqrt(n / 4.0);
  EXPECT_NEAR(counts[0], 0.7 * n, bound);
  EXPECT_NEAR(counts[1], 0.2 * n, bound);
  EXPECT_NEAR(counts[2], 0.1 * n, bound);
}

TEST(Sampling, TheSeedDecides) {
  const Tensor<float> logits = logs({0.25, 0.25, 0.25, 0.25});
  std::vector<Index> first, again, other;
  for (std::uint64_t i = 0; i < 32; ++i) {
    first.push_back(sample_token(logits, {.seed = 1}, i).id);
    again.push_back(sample_token(logits, {.seed = 1}, i).id);
    other.push_back(sample_token(logits, {.seed = 2}, i).id);
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(Sampling, SaysTheModelsProbabilityWhateverTheOptions) {
  const SampledToken token = sample_token(logs({0.6, 0.4}), {.temperature = 0}, 0);
  EXPECT_EQ(token.id, 0);
  EXPECT_NEAR(token.probability, 0.6, 1e-6);
}

TEST(Sampling, RefusesOptionsOutOfRange) {
  const Tensor<float> logits = logs({1});
  const auto refusal = [&](const SamplingOptions& options) {
    return thrown_by<ArgumentError>([&] { token_probabilities(logits, options); });
  };
  EXPECT_EQ(refusal({.temperature = -0.5}),
            "sample: the temperature is -0.5, but must be at least 0\n"
            "  hint: 0 takes the likeliest token, 1 samples as the model says");
  EXPECT_EQ(refusal({.top_k = -1}),
            "sample: top_k is -1, but must be at least 1, or 0 for all tokens");
  EXPECT_EQ(refusal({.top_p = 0}), "sample: top_p is 0, but must be above 0 and at most 1");
  EXPECT_EQ(refusal({.top_p = 1.5}), "sample: top_p is 1.5, but must be above 0 and at most 1");
}

TEST(Sampling, ShowsAnOptionThatIsHardlyOutOfRange) {
  EXPECT_NE(thrown_by<ArgumentError>([] {
              check_sampling({.top_p = 1.0000001});
            }).find("top_p is 1.0000001, but"),
            std::string::npos);
}

TEST(Sampling, RefusesWhatAreNoLogits) {
  EXPECT_EQ(thrown_by<ArgumentError>([] { token_probabilities(Tensor<float>(Shape{0})); }),
            "sample: there are no logits to sample from");
  EXPECT_EQ(thrown_by<ArgumentError>([] {
              token_probabilities(Tensor<float>::vector({1, std::nanf(""), 2}));
            }),
            "sample: the logit of token 1 is NaN, but a probability needs a number");
  EXPECT_EQ(thrown_by<ShapeError>([] {
              token_probabilities(Tensor<float>(Shape{2, 3}));
            }),
            "sample: the logits are 2x3, but must be a vector, one for each token of the "
            "vocabulary");
}

}  // namespace
}  // namespace eckart

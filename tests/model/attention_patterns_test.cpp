#include "eckart/model/attention_patterns.h"

#include "eckart/core/errors.h"

#include <vector>

#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::thrown_by;

// One head whose every token has all its weight on the token `looks_at` says.
template <class LooksAt>
Tensor<float> one_hot(Index n, const LooksAt& looks_at) {
  Tensor<float> weights({1, n, n});
  for (Index query = 0; query < n; ++query) weights(0, query, looks_at(query)) = 1;
  return weights;
}

TEST(AttentionPatterns, FindsAHeadThatLooksBackOneToken) {
  const Tensor<float> weights = one_hot(5, [](Index q) { return q == 0 ? 0 : q - 1; });
  const HeadPattern pattern = attention_patterns(weights, {1, 2, 3, 4, 5}).front();
  EXPECT_EQ(pattern.previous, 1);
  EXPECT_EQ(pattern.first, 0);
  EXPECT_EQ(pattern.entropy, 0);
  EXPECT_EQ(pattern_name(pattern), "previous token");
}

TEST(AttentionPatterns, FindsAHeadThatLooksAtTheFirstToken) {
  const HeadPattern pattern =
      attention_patterns(one_hot(5, [](Index) { return 0; }), {1, 2, 3, 4, 5}).front();
  EXPECT_EQ(pattern.first, 1);
  EXPECT_EQ(pattern.previous, 0.25);  // the second token's
  EXPECT_EQ(pattern_name(pattern), "first token");
}

TEST(AttentionPatterns, FindsAHeadThatContinuesWhatItHasSeen) {
  // 7 8 9 7 8: the second 7 looks at the first 8, the second 8 at the first 9.
  const std::vector<Index> ids = {7, 8, 9, 7, 8};
  const Tensor<float> weights = one_hot(5, [](Index q) { return q < 3 ? 0 : q - 2; });
  const HeadPattern pattern = attention_patterns(weights, ids).front();
  EXPECT_EQ(pattern.induction, 1);
  EXPECT_EQ(pattern.same, 0);
  EXPECT_EQ(pattern_name(pattern), "induction");
}

TEST(AttentionPatterns, FindsAHeadThatLooksAtTheSameToken) {
  const std::vector<Index> ids = {7, 8, 9, 7, 8};
  const HeadPattern pattern =
      attention_patterns(one_hot(5, [](Index q) { return q < 3 ? 0 : q - 3; }), ids).front();
  EXPECT_EQ(pattern.same, 1);
  EXPECT_EQ(pattern_name(pattern), "same token");
}

TEST(AttentionPatterns, MeasuresEntropyInBitsOfTokensThatHaveAChoice) {
  const Tensor<float> weights({1, 3, 3}, {1, 0, 0, 0.5F, 0.5F, 0, 0.5F, 0.25F, 0.25F});
  const HeadPattern pattern = attention_patterns(weights, {1, 2, 3}).front();
  EXPECT_DOUBLE_EQ(pattern.entropy, 1.25);  // of 1 and 1.5
  EXPECT_DOUBLE_EQ(pattern.previous, 0.375);
  EXPECT_EQ(pattern_name(pattern), "first token");  // half of the third token's
}

TEST(AttentionPatterns, NamesTheStrongestLinkOfATokenThatHasAChoice) {
  const Tensor<float> weights({1, 3, 3}, {1, 0, 0, 0.25F, 0.75F, 0, 0.1F, 0.8F, 0.1F});
  const HeadPattern pattern = attention_patterns(weights, {1, 2, 3}).front();
  EXPECT_EQ(pattern.query, 2);
  EXPECT_EQ(pattern.key, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(pattern.strongest), 0.8F);
}

TEST(AttentionPatterns, OfOneTokenThereIsOneLink) {
  const HeadPattern pattern = attention_patterns(Tensor<float>({1, 1, 1}, 1.0F), {4}).front();
  EXPECT_EQ(pattern.strongest, 1);
  EXPECT_EQ(pattern.entropy, 0);
  EXPECT_EQ(pattern_name(pattern), "");
}

TEST(AttentionPatterns, RefusesAnotherTable) {
  EXPECT_EQ(thrown_by<ShapeError>([] {
              attention_patterns(Tensor<float>({1, 2, 2}), {1, 2, 3});
            }),
            "attention_patterns: the weights are 1x2x2, but must be head x 3 x 3, a row and a "
            "column for each token");
}

}  // namespace
}  // namespace eckart

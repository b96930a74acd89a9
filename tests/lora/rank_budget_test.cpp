#include "eckart/lora/rank_budget.h"

#include "eckart/core/errors.h"
#include "eckart/lora/rank_rule.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;
using Ranks = std::vector<Index>;

TEST(RankBudget, TakesWhatKeepsMostForAParameter) {
  // For a parameter: 9/10 4/10 1/10 and 8/4 2/4. The order is 2, 0.9, 0.5, 0.4, 0.1.
  const std::vector<RankCandidate> two = {{{9, 4, 1}, 10}, {{8, 2}, 4}};
  EXPECT_EQ(share_rank_budget(two, 4), (Ranks{0, 1}));
  EXPECT_EQ(share_rank_budget(two, 14), (Ranks{1, 1}));
  EXPECT_EQ(share_rank_budget(two, 18), (Ranks{1, 2}));
  EXPECT_EQ(share_rank_budget(two, 28), (Ranks{2, 2}));
  EXPECT_EQ(share_rank_budget(two, 1000), (Ranks{3, 2}));
}

TEST(RankBudget, FillsTheRestWithWhatStillFits) {
  const std::vector<RankCandidate> two = {{{9, 8}, 10}, {{1, 1}, 3}};
  EXPECT_EQ(share_rank_budget(two, 17), (Ranks{1, 2}));
  EXPECT_EQ(share_rank_budget(two, 2), (Ranks{0, 0}));
}

TEST(RankBudget, IsTheBestThatAnyRanksOfTheCostCanDo) {
  // Equal costs, so that greedy is exact: every other way of 6 ranks keeps no more.
  const std::vector<RankCandidate> three = {
      {{10, 5, 1, .5}, 7}, {{8, 7.5, 6, .1}, 7}, {{3, 2.5, 2, 1.5}, 7}};
  const auto kept = [&](const Ranks& ranks) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < static_cast<std::size_t>(ranks[i]); ++k) {
        sum += three[i].squares[k];
      }
    }
    return sum;
  };
  const double found = kept(share_rank_budget(three, 6 * 7));
  for (Index a = 0; a <= 4; ++a) {
    for (Index b = 0; b <= 4; ++b) {
      const Index c = 6 - a - b;
      if (c < 0 || c > 4) continue;
      EXPECT_LE(kept({a, b, c}), found);
    }
  }
}

TEST(RankBudget, NeverTakesAComponentOfZeroOrAboveTheLargestRank) {
  const std::vector<RankCandidate> two = {{{4, 0, 0}, 1}, {{9, 8, 7}, 1}};
  EXPECT_EQ(share_rank_budget(two, 100), (Ranks{1, 3}));
  EXPECT_EQ(share_rank_budget(two, 100, 2), (Ranks{1, 2}));
}

TEST(RankBudget, RefusesWhatCostsNothing) {
  EXPECT_EQ(thrown_by<ArgumentError>([] {
              share_rank_budget({{{1}, 0}}, 5);
            }),
            "share_rank_budget: a rank of matrix 0 costs 0 parameters, but it must be at least 1");
  EXPECT_EQ(thrown_by<ArgumentError>([] { share_rank_budget({}, -1); }),
            "share_rank_budget: the budget is -1, but it must be at least 0");
}

Ranks ranks_of(const std::vector<double>& squares, const RankRule& rule) {
  return choose_ranks("resize", {{squares, 1}}, rule);
}

TEST(RankRule, TakesTheLeastRankThatIsEnough) {
  const std::vector<double> squares = {81, 9, 9, 1};  // of 100
  EXPECT_EQ(ranks_of(squares, {.rank = 3}), Ranks{3});
  EXPECT_EQ(ranks_of(squares, {.rank = 9}), Ranks{4});
  EXPECT_EQ(ranks_of(squares, {.energy = 0.81}), Ranks{1});
  EXPECT_EQ(ranks_of(squares, {.energy = 0.82}), Ranks{2});
  EXPECT_EQ(ranks_of(squares, {.energy = 1}), Ranks{4});
  EXPECT_EQ(ranks_of(squares, {.error = 0.1}), Ranks{3});
  EXPECT_EQ(ranks_of(squares, {.error = 0.99}), Ranks{1});
  EXPECT_EQ(ranks_of(squares, {.error = 0.1, .max_rank = 2}), Ranks{2});
}

TEST(RankRule, OfARankOneSpectrumTakesOne) {
  // Where other tools count one too many.
  EXPECT_EQ(ranks_of({1, 0, 0}, {.energy = 0.9}), Ranks{1});
  EXPECT_EQ(ranks_of({1, 0, 0}, {.energy = 1}), Ranks{1});
  EXPECT_EQ(ranks_of({.9, .05, .05}, {.energy = 0.94}), Ranks{2});
}

TEST(RankRule, OfNothingTakesNothing) {
  for (const RankRule& rule :
       {RankRule{.rank = 4}, {.energy = 0.5}, {.error = 0.5}, {.budget = 9}}) {
    EXPECT_EQ(ranks_of({0, 0}, rule), Ranks{0});
    EXPECT_EQ(ranks_of({}, rule), Ranks{0});
  }
}

TEST(RankRule, TakesExactlyOneThing) {
  EXPECT_EQ(thrown_by<ArgumentError>([] { check_rank_rule("resize", {}); }),
            "resize: nothing says how much to keep, but exactly one of rank, energy, error and "
            "budget must");
  EXPECT_EQ(thrown_by<ArgumentError>([] { check_rank_rule("resize", {.rank = 1, .budget = 5}); }),
            "resize: more than one thing says how much to keep, but exactly one of rank, energy, "
            "error and budget must");
  EXPECT_EQ(thrown_by<ArgumentError>([] { check_rank_rule("resize", {.rank = -1}); }),
            "resize: rank is -1, but it must be at least 1");
  EXPECT_EQ(thrown_by<ArgumentError>([] { check_rank_rule("resize", {.energy = 1.5}); }),
            "resize: energy is 1.5, but it must be above 0 and at most 1");
  EXPECT_EQ(thrown_by<ArgumentError>([] { check_rank_rule("resize", {.error = std::nan("")}); }),
            "resize: error is nan, but it must be above 0 and below 1");
  EXPECT_EQ(thrown_by<ArgumentError>([] { check_rank_rule("resize", {.budget = 0}); }),
            "resize: the budget is 0 parameters, but it must be at least 1");
  EXPECT_EQ(
      thrown_by<ArgumentError>([] { check_rank_rule("resize", {.rank = 1, .max_rank = -2}); }),
      "resize: max_rank is -2, but it must be at least 1");
}

}  // namespace
}  // namespace eckart

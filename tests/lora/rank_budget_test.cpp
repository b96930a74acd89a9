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

// All that any ranks keep whose cost is within the budget.
double best_kept(const std::vector<RankCandidate>& all, std::size_t first, Index budget) {
  if (first == all.size()) return 0;
  double best = 0, kept = 0;
  for (std::size_t rank = 0; rank <= all[first].squares.size(); ++rank) {
    const Index cost = static_cast<Index>(rank) * all[first].parameters;
    if (cost > budget) break;
    if (rank > 0) kept += all[first].squares[rank - 1];
    best = std::max(best, kept + best_kept(all, first + 1, budget - cost));
  }
  return best;
}

// What the ranks keep, and how much more the stated bound lets others keep.
struct Kept {
  double kept = 0;
  double more = 0;
};
Kept kept_by(const std::vector<RankCandidate>& all, Index budget) {
  const Ranks ranks = share_rank_budget(all, budget);
  // Components in the order in which they are tried, up to the first that does not fit.
  Ranks at(all.size());
  Kept result;
  for (Index rest = budget;;) {
    std::size_t best = all.size();
    double gain = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto k = static_cast<std::size_t>(at[i]);
      if (k >= all[i].squares.size()) continue;
      const double of_i = all[i].squares[k] / static_cast<double>(all[i].parameters);
      if (of_i > gain) best = i, gain = of_i;
    }
    if (best == all.size()) break;
    if (all[best].parameters > rest) {
      result.more = gain * static_cast<double>(rest);
      break;
    }
    rest -= all[best].parameters;
    ++at[best];
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(ranks[i]); ++k) {
      result.kept += all[i].squares[k];
    }
  }
  return result;
}

TEST(RankBudget, OfUnequalCostsTheBestKeepNoMoreThanTheBoundSays) {
  // By what they keep for a parameter: 10, then 3 of the rest; 8.9 and 5 would fit as well.
  const std::vector<RankCandidate> known = {{{10}, 10}, {{8.9}, 9}, {{5}, 6}, {{3}, 5}};
  const Kept of_known = kept_by(known, 15);
  EXPECT_LT(of_known.kept, best_kept(known, 0, 15));  // so that the bound is needed
  EXPECT_LE(best_kept(known, 0, 15), of_known.kept + of_known.more);
  const Tensor<double> random = testing::random_tensor<double>({40, 4, 4}, 3);
  for (Index n = 0; n < 40; ++n) {
    std::vector<RankCandidate> all;
    for (Index i = 0; i < 4; ++i) {
      RankCandidate one{.squares = {}, .parameters = 3 + (7 * n + 5 * i) % 11};
      for (Index k = 0; k < 4; ++k) one.squares.push_back(random(n, i, k) * random(n, i, k));
      std::sort(one.squares.rbegin(), one.squares.rend());
      all.push_back(one);
    }
    for (const Index budget : {0, 5, 13, 29, 60, 200}) {
      const Kept found = kept_by(all, budget);
      // A sum of 16 doubles is off by some eps of itself.
      EXPECT_LE(best_kept(all, 0, budget), (found.kept + found.more) * (1 + 1e-14))
          << n << ' ' << budget;
    }
  }
}

TEST(RankBudget, LeastRanksComeFirst) {
  const std::vector<RankCandidate> two = {{{9, 8}, 10}, {{1}, 3, 2}};
  EXPECT_EQ(share_rank_budget(two, 6), (Ranks{0, 2}));
  EXPECT_EQ(share_rank_budget(two, 16), (Ranks{1, 2}));
  EXPECT_EQ(thrown_by<ArgumentError>([&] { share_rank_budget(two, 5); }),
            "share_rank_budget: the budget is 5 parameters, but the least ranks cost 6");
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

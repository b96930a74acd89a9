#include "eckart/lora/rank_rule.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace eckart {
namespace {

// The least rank behind which at most `lost` of the energy lies. Sums start at the smallest values,
// so that what is lost is exact where it is little.
Index rank_that_loses(const std::vector<double>& squares, double lost) {
  double total = 0;
  for (auto square = squares.rbegin(); square != squares.rend(); ++square) total += *square;
  double tail = 0;
  auto rank = static_cast<Index>(squares.size());
  while (rank > 0) {
    tail += squares[static_cast<std::size_t>(rank - 1)];
    if (tail > lost * total) break;
    --rank;
  }
  return rank;
}

// A share as it is written, 0.9, is no number of a double: the energy may be this much less.
constexpr double share_rounding = 4 * std::numeric_limits<double>::epsilon();

Index rank_of(const std::vector<double>& squares, const RankRule& rule) {
  if (squares.empty() || !(squares.front() > 0)) return 0;
  const auto all = static_cast<Index>(squares.size());
  Index rank = all;
  if (rule.rank > 0) rank = std::min(all, rule.rank);
  if (rule.energy > 0) rank = rank_that_loses(squares, 1 - rule.energy + share_rounding);
  if (rule.error > 0) rank = rank_that_loses(squares, rule.error * rule.error);
  if (rule.max_rank > 0) rank = std::min(rank, rule.max_rank);
  return std::max<Index>(rank, 1);
}

}  // namespace

void check_rank_rule(std::string_view operation, const RankRule& rule) {
  const std::string who = std::string(operation) + ": ";
  const std::array said = {rule.rank != 0, rule.energy != 0, rule.error != 0,
                           rule.budget.has_value()};
  const auto given = std::count(said.begin(), said.end(), true);
  if (given != 1) {
    throw_argument_error(who + (given == 0 ? "nothing says" : "more than one thing says") +
                         " how much to keep, but exactly one of rank, energy, error and budget "
                         "must");
  }
  const auto check = [&](bool holds, const std::string& what) {
    if (!holds) throw_argument_error(who + what);
  };
  check(rule.rank >= 0, fmt::format("rank is {}, but it must be at least 1", rule.rank));
  check(rule.energy >= 0 && rule.energy <= 1,
        fmt::format("energy is {}, but it must be above 0 and at most 1", rule.energy));
  check(rule.error >= 0 && rule.error < 1,
        fmt::format("error is {}, but it must be above 0 and below 1", rule.error));
  check(!rule.budget || *rule.budget >= 1,
        fmt::format("the budget is {} parameters, but it must be at least 1",
                    rule.budget.value_or(0)));
  check(rule.max_rank >= 0,
        fmt::format("max_rank is {}, but it must be at least 1", rule.max_rank));
}

std::vector<Index> choose_ranks(std::string_view operation,
                                const std::vector<RankCandidate>& candidates,
                                const RankRule& rule) {
  check_rank_rule(operation, rule);
  if (rule.budget) return share_rank_budget(candidates, *rule.budget, rule.max_rank);
  std::vector<Index> ranks;
  for (const RankCandidate& candidate : candidates) {
    ranks.push_back(rank_of(candidate.squares, rule));
  }
  return ranks;
}

}  // namespace eckart

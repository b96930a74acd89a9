#include "eckart/lora/rank_budget.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

namespace eckart {

std::vector<Index> share_rank_budget(const std::vector<RankCandidate>& candidates, Index budget,
                                     Index max_rank) {
  if (budget < 0) {
    throw_argument_error("share_rank_budget: the budget is " + std::to_string(budget) +
                         ", but it must be at least 0");
  }
  std::vector<Index> ranks(candidates.size(), 0);
  Index least = 0;
  // The best next component of each matrix: what it keeps for a parameter, then the first matrix.
  struct Next {
    double gain;
    std::size_t candidate;
    bool operator<(const Next& other) const {
      return std::tuple(gain, other.candidate) < std::tuple(other.gain, candidate);
    }
  };
  std::priority_queue<Next> queue;
  const auto offer = [&](std::size_t i) {
    const std::vector<double>& squares = candidates[i].squares;
    const auto rank = static_cast<std::size_t>(ranks[i]);
    if (rank >= squares.size() || (max_rank > 0 && ranks[i] >= max_rank)) return;
    if (squares[rank] > 0) {
      queue.push({squares[rank] / static_cast<double>(candidates[i].parameters), i});
    }
  };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].parameters < 1) {
      throw_argument_error("share_rank_budget: a rank of matrix " + std::to_string(i) + " costs " +
                           std::to_string(candidates[i].parameters) +
                           " parameters, but it must be at least 1");
    }
    ranks[i] = candidates[i].least_rank;
    least += ranks[i] * candidates[i].parameters;
    offer(i);
  }
  if (least > budget) {
    throw_argument_error("share_rank_budget: the budget is " + std::to_string(budget) +
                         " parameters, but the least ranks cost " + std::to_string(least));
  }
  budget -= least;
  while (!queue.empty()) {
    const std::size_t i = queue.top().candidate;
    queue.pop();
    // A matrix whose next component does not fit gets no further one; smaller ones still may.
    if (candidates[i].parameters > budget) continue;
    budget -= candidates[i].parameters;
    ++ranks[i];
    offer(i);
  }
  return ranks;
}

}  // namespace eckart

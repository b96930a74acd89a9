// How much of each matrix an adapter is to keep.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/lora/rank_budget.h"

#include <optional>
#include <string_view>
#include <vector>

namespace eckart {

/// Exactly one of `rank`, `energy`, `error` and `budget`.
struct RankRule {
  Index rank = 0;     // of every matrix, at most
  double energy = 0;  // the least share of each matrix's squared norm: above 0, at most 1
  double error = 0;   // the largest share of each matrix's norm that is lost: above 0, below 1
  std::optional<Index> budget = {};  // parameters of all factors together (see share_rank_budget)
  Index max_rank = 0;                // of every matrix, with the others; 0: no limit
};

/// Throws ArgumentError unless the rule is one. `operation` is how the message calls the operation.
void check_rank_rule(std::string_view operation, const RankRule& rule);

/// A rank for each candidate. `energy` and `error` take the least rank that is enough; components of
/// 0 are never taken, except that `rank` takes as many as it says where the matrix is not 0, so that
/// all matrices have one rank. A matrix of 0 has rank 0. Throws as `check_rank_rule`.
std::vector<Index> choose_ranks(std::string_view operation,
                                const std::vector<RankCandidate>& candidates, const RankRule& rule);

}  // namespace eckart

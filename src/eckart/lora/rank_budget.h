// Ranks for many matrices, so that together they cost no more than a number of parameters and lose
// as little as can be.
#pragma once

#include "eckart/core/shape.h"

#include <vector>

namespace eckart {

/// A matrix that is to be approximated.
struct RankCandidate {
  /// Its squared singular values, descending: what each further rank keeps of the energy. Of
  /// experts, which share one rank, the sums over all.
  std::vector<double> squares;
  /// What one rank costs: rows + columns; of experts all together.
  Index parameters = 0;
};

/// Takes components in the order of what they keep for each parameter until no further one fits the
/// budget; the error left, over all matrices together, is the least that any ranks of these costs
/// have, but for the last component that does not fit. Components of 0 are never taken. Among equal
/// ones the first matrix comes first.
/// `budget`: parameters in all, at least 0. `max_rank`: of each matrix; 0: no limit.
/// Result: a rank for each candidate, from 0. Cost: n log n in the number of components.
/// Throws ArgumentError for a budget below 0 or a candidate whose rank costs nothing.
std::vector<Index> share_rank_budget(const std::vector<RankCandidate>& candidates, Index budget,
                                     Index max_rank = 0);

}  // namespace eckart

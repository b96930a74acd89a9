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
  /// It has so many ranks in any case, of zeros where it has no more components.
  Index least_rank = 0;
};

/// Takes components in the order of what they keep for each parameter, while they fit the budget
/// (Dantzig 1957). Where all matrices cost the same, no ranks within the budget leave a smaller
/// error. Otherwise the best ones keep at most gain x rest more of the squared norm: gain is what the
/// first component that did not fit keeps for a parameter, rest the parameters that were left of
/// the budget then, fewer than one rank of its matrix costs. Components of 0 are never taken. Among
/// equal ones the first matrix comes first.
/// `budget`: parameters in all, at least 0. `max_rank`: of each matrix; 0: no limit.
/// Result: a rank for each candidate, from its least. Cost: n log n in the number of components.
/// Throws ArgumentError for a budget below 0 or below what the least ranks cost, and a candidate
/// whose rank costs nothing.
std::vector<Index> share_rank_budget(const std::vector<RankCandidate>& candidates, Index budget,
                                     Index max_rank = 0);

}  // namespace eckart

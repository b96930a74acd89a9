// Sharing a budget of parameters out over matrices, so that the total error is least.
#pragma once

#include "eckart/core/shape.h"

#include <vector>

namespace eckart {

/// A matrix that may have any rank. Rank k removes its k largest squared singular values from the
/// squared error and costs k times `cost`.
struct BudgetMatrix {
  std::vector<double> energies;  // squared singular values, descending: those that are known
  Index cost = 1;                // parameters of one rank: d_in + d_out
};

struct BudgetRanks {
  std::vector<Index> ranks;     // one a matrix, 0 where the budget gives it none
  Index parameters = 0;         // what they cost together
  std::vector<bool> is_at_end;  // it has taken all that is known of it, and would take more
};

/// Ranks for a budget of parameters: the singular values of all matrices are taken in the order of
/// their square per parameter, as long as they fit. In each matrix that order is descending, so that
/// this is the least total squared error for the parameters spent; what is left of the budget is
/// less than one more rank of any matrix that is not at its end. Ties go to the first.
/// Throws ArgumentError for energies that rise, and for a cost below 1.
BudgetRanks share_ranks(const std::vector<BudgetMatrix>& matrices, Index budget);

}  // namespace eckart

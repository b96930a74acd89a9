#include "eckart/lora/rank_budget.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <string>

namespace eckart {
namespace {

// The next rank of a matrix, by what it takes off the squared error for each parameter.
struct Offer {
  double gain = 0;
  std::size_t matrix = 0;

  bool operator<(const Offer& other) const {
    return gain != other.gain ? gain < other.gain : matrix > other.matrix;
  }
};

}  // namespace

BudgetRanks share_ranks(const std::vector<BudgetMatrix>& matrices, Index budget) {
  BudgetRanks result;
  result.ranks.assign(matrices.size(), 0);
  result.is_at_end.assign(matrices.size(), false);
  std::priority_queue<Offer> offers;
  const auto offer_next = [&](std::size_t i) {
    const BudgetMatrix& matrix = matrices[i];
    const auto next = static_cast<std::size_t>(result.ranks[i]);
    if (next < matrix.energies.size()) {
      offers.push({matrix.energies[next] / static_cast<double>(matrix.cost), i});
    }
  };
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const std::vector<double>& energies = matrices[i].energies;
    if (matrices[i].cost < 1 || !std::is_sorted(energies.rbegin(), energies.rend())) {
      throw_argument_error("share_ranks: matrix " + std::to_string(i) +
                           " has energies that rise or a cost below 1, but energies descend and a "
                           "rank costs a parameter at least");
    }
    offer_next(i);
  }
  double least_gain = 0;  // of those taken: they come in descending order
  while (!offers.empty()) {
    const Offer offer = offers.top();
    offers.pop();
    const Index cost = matrices[offer.matrix].cost;
    // Its later ranks cost as much and give less; those of others may still fit.
    if (offer.gain <= 0 || cost > budget - result.parameters) continue;
    result.parameters += cost;
    least_gain = offer.gain;
    ++result.ranks[offer.matrix];
    offer_next(offer.matrix);
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const BudgetMatrix& matrix = matrices[i];
    if (matrix.energies.empty() ||
        result.ranks[i] < static_cast<Index>(matrix.energies.size())) {
      continue;
    }
    // What is not known of it is at most its last energy: it may push out less, or fill what is left.
    const double bound = matrix.energies.back() / static_cast<double>(matrix.cost);
    result.is_at_end[i] = bound > least_gain || matrix.cost <= budget - result.parameters;
  }
  return result;
}

}  // namespace eckart

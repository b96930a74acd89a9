#include "eckart/lora/extract_ranks.h"

#include "eckart/core/errors.h"
#include "eckart/io/mapped_file.h"
#include "eckart/lora/rank_budget.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

void check_share(const char* name, double share) {
  if (share == 0 || (share > 0 && share < 1)) return;
  throw_argument_error("extract: " + std::string(name) + " is " + std::to_string(share) +
                       ", but it must be above 0 and below 1");
}

bool is_low_rank(const PlannedExtract& tensor) {
  return tensor.fate == ExtractFate::low_rank && tensor.norms.difference > 0;
}

// The matrices that have taken all that is known of them and might take more: what is not known of
// a matrix is at most its last square, which may push out less, or fill what is left.
std::vector<bool> at_their_end(const std::vector<RankCandidate>& matrices,
                               const std::vector<Index>& ranks, Index budget) {
  double least_gain = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    budget -= ranks[i] * matrices[i].parameters;
    if (ranks[i] == 0) continue;
    least_gain = std::min(least_gain, matrices[i].squares[static_cast<std::size_t>(ranks[i] - 1)] /
                                          static_cast<double>(matrices[i].parameters));
  }
  std::vector<bool> result(matrices.size());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const RankCandidate& matrix = matrices[i];
    if (ranks[i] == 0 || ranks[i] < static_cast<Index>(matrix.squares.size())) continue;
    const double bound = matrix.squares.back() / static_cast<double>(matrix.parameters);
    result[i] = bound > least_gain || matrix.parameters <= budget;
  }
  return result;
}

}  // namespace

void check_ranks(const ExtractRanks& ranks) {
  const int given = (ranks.rank != 0 ? 1 : 0) + (ranks.energy != 0 ? 1 : 0) +
                    (ranks.relative_error != 0 ? 1 : 0) + (ranks.budget_parameters ? 1 : 0) +
                    (ranks.budget_bytes ? 1 : 0);
  if (given != 1) {
    throw_argument_error("extract: " + std::string(given == 0 ? "nothing says" : "two things say") +
                         " how much to keep, but it takes one of rank, energy, relative error and "
                         "budget");
  }
  if (ranks.rank < 0 || ranks.max_rank < 0) {
    throw_argument_error("extract: rank is " +
                         std::to_string(std::min(ranks.rank, ranks.max_rank)) +
                         ", but it must be at least 1");
  }
  check_share("energy", ranks.energy);
  check_share("relative error", ranks.relative_error);
}

LowRankOptions low_rank_options(const ExtractRanks& ranks, Index limit, std::uint64_t seed) {
  LowRankOptions options{.seed = seed};
  const Index cap = ranks.max_rank > 0 ? std::min(ranks.max_rank, limit) : limit;
  if (ranks.rank > 0) {
    options.rank = std::min(ranks.rank, cap);
  } else if (cap < limit) {
    options.rank = cap;  // the least rank that is asked for is then one of its prefixes
  } else {
    options.energy = ranks.energy;
    options.relative_error = ranks.relative_error;
  }
  return options;
}

Index rank_kept(const ExtractRanks& ranks, const Decomposition& found) {
  if (ranks.energy > 0) return std::max<Index>(1, rank_for(found, 1 - ranks.energy));
  if (ranks.relative_error > 0) {
    return std::max<Index>(1, rank_for(found, ranks.relative_error * ranks.relative_error));
  }
  return found.rank();
}

FixedSize fixed_size(const ExtractPlan& plan, Dtype dtype) {
  FixedSize fixed;
  // With one bias that has changed, every layer with a LoRA and a bias has one.
  std::set<std::string> with_lora;
  for (const PlannedExtract& tensor : plan.tensors) {
    if (tensor.fate == ExtractFate::low_rank) with_lora.insert(tensor.module);
  }
  const bool has_biases =
      std::any_of(plan.tensors.begin(), plan.tensors.end(),
                  [](const PlannedExtract& tensor) { return tensor.fate == ExtractFate::bias; });
  for (const PlannedExtract& tensor : plan.tensors) {
    const Index copies = tensor.tied_module.empty() ? 1 : 2;
    if (tensor.fate == ExtractFate::full) {
      const Dtype stored = tensor.pair.tuned->is_quantized ? dtype : tensor.pair.tuned->dtype;
      fixed.parameters += copies * tensor.shape.count();
      fixed.bytes += static_cast<std::uint64_t>(copies) *
                     stored_bytes(stored, tensor.shape.count()).value_or(0);
    } else if (has_biases && tensor.parameter == "bias" && with_lora.count(tensor.module) != 0) {
      fixed.parameters += tensor.shape.count();
      fixed.bytes += stored_bytes(dtype, tensor.shape.count()).value_or(0);
    }
  }
  return fixed;
}

Index factor_budget(const ExtractRanks& ranks, const FixedSize& fixed, Dtype dtype) {
  const Index element = bits(dtype) / 8;
  const Index room = ranks.budget_parameters
                         ? *ranks.budget_parameters - fixed.parameters
                         : (*ranks.budget_bytes - static_cast<Index>(fixed.bytes)) / element;
  if (room > 0) return room;
  throw_argument_error(
      "extract: the budget is " +
          (ranks.budget_parameters
               ? std::to_string(*ranks.budget_parameters) +
                     " numbers, but what is saved whole takes " + std::to_string(fixed.parameters)
               : std::to_string(*ranks.budget_bytes) + " bytes, but what is saved whole takes " +
                     std::to_string(fixed.bytes)),
      "--embeddings lora or skip takes less, and so does --norms skip");
}

Index uniform_rank(const ExtractPlan& plan, Index budget) {
  Index cost = 0;
  for (const PlannedExtract& tensor : plan.tensors) {
    if (is_low_rank(tensor)) cost += TensorMatrices(tensor).cost();
  }
  if (cost > 0 && budget >= cost) return budget / cost;
  throw_argument_error("extract: the budget has room for " + std::to_string(budget) +
                       " numbers of factors, but rank 1 of every matrix takes " +
                       std::to_string(cost));
}

void FactorStore::add(const PlannedExtract& tensor, const LowRankOptions& options) {
  const std::string part = "factors " + std::to_string(options.rank) + " " + tensor.name;
  part_of_[tensor.name] = part;
  if (folder_.has_part(part)) {
    resumed_.insert(tensor.name);
    return;
  }
  TensorMatrices matrices(tensor);
  const Decomposition found = decompose(matrices, options);
  folder_.add_part(part, factor_bytes(found), describe(found));
}

Decomposition FactorStore::load(const PlannedExtract& tensor) const {
  const std::string& part = part_of_.at(tensor.name);
  const MappedFile file = open_mapped(folder_.part_path(part));
  return read_decomposition(folder_.part_note(part), file.bytes(), TensorMatrices(tensor));
}

std::vector<double> FactorStore::energies(const PlannedExtract& tensor) const {
  return nlohmann::json::parse(folder_.part_note(part_of_.at(tensor.name)))
      .at("energies")
      .get<std::vector<double>>();
}

std::map<std::string, Index> FactorStore::share(
    const ExtractRanks& ranks, Index budget, std::uint64_t seed,
    const std::function<void(const PlannedExtract&)>& on_done) {
  struct Candidate {
    const PlannedExtract* tensor = nullptr;
    Index limit = 0;
    Index wanted = 0;       // rank asked of low_rank; 0: as it is
    bool is_whole = false;  // it has no further singular values
  };
  std::vector<Candidate> candidates;
  std::vector<RankCandidate> matrices;
  Index cost = 0;
  for (const PlannedExtract& tensor : plan_.tensors) {
    if (!is_low_rank(tensor)) continue;
    const TensorMatrices sizes(tensor);
    const Index limit =
        ranks.max_rank > 0 ? std::min(ranks.max_rank, sizes.limit()) : sizes.limit();
    candidates.push_back({.tensor = &tensor, .limit = limit});
    matrices.push_back({{}, sizes.cost()});
    cost += sizes.cost();
  }
  if (candidates.empty()) return {};
  // Four times the rank that equal shares would have, so that few have to be done again.
  const Index first = std::max<Index>(8, 4 * (budget / cost));
  for (Candidate& one : candidates) one.wanted = std::min(first, one.limit);
  std::vector<Index> shared;
  for (bool is_done = false; !is_done;) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].wanted == 0) continue;
      add(*candidates[i].tensor, {.rank = candidates[i].wanted, .seed = seed});
      matrices[i].squares = energies(*candidates[i].tensor);
      candidates[i].is_whole =
          static_cast<Index>(matrices[i].squares.size()) < candidates[i].wanted;
      on_done(*candidates[i].tensor);
    }
    shared = share_rank_budget(matrices, budget);
    const std::vector<bool> wants_more = at_their_end(matrices, shared, budget);
    is_done = true;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Candidate& one = candidates[i];
      const auto known = static_cast<Index>(matrices[i].squares.size());
      const bool has_more = wants_more[i] && !one.is_whole && known < one.limit;
      one.wanted = has_more ? std::min(2 * known, one.limit) : 0;
      is_done = is_done && !has_more;
    }
  }
  std::map<std::string, Index> result;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    result[candidates[i].tensor->name] = shared[i];
  }
  if (std::any_of(shared.begin(), shared.end(), [](Index rank) { return rank > 0; })) {
    return result;
  }
  Index least = matrices.front().parameters;
  for (const RankCandidate& matrix : matrices) least = std::min(least, matrix.parameters);
  throw_argument_error("extract: the budget has room for " + std::to_string(budget) +
                       " numbers of factors, but rank 1 of the smallest matrix takes " +
                       std::to_string(least));
}

}  // namespace eckart

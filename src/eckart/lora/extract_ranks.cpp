#include "eckart/lora/extract_ranks.h"

#include "eckart/core/errors.h"
#include "eckart/io/mapped_file.h"
#include "eckart/lora/adapter_parts.h"
#include "eckart/lora/rank_budget.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

// ||A~ - A|| and the like of factors rounded to a dtype, as a share of the product's norm: measured
// on random factors, of which both are rounded, and a tenth more.
double rounding_share(Dtype dtype) {
  if (dtype == Dtype::bf16) return 2.6e-3;
  return dtype == Dtype::f16 ? 3.3e-4 : 0;
}

// The share of the norm that cutting ranks may lose, so that rounding, which is independent of it,
// makes it no more than was asked for. Where rounding alone makes more, it is as it was.
double error_before_rounding(const ExtractRanks& ranks, Dtype dtype) {
  const double asked = ranks.relative_error, lost = rounding_share(dtype);
  return asked > lost ? std::sqrt(asked * asked - lost * lost) : asked;
}

// Tensors of one rank, and what one more costs them.
struct Candidate {
  std::vector<const PlannedExtract*> tensors;
  Index limit = 0;
  Index wanted = 0;       // rank asked of low_rank; 0: as it is
  bool is_whole = false;  // it has no further singular values
};

void add_squares(const std::vector<double>& more, std::vector<double>& squares) {
  squares.resize(std::max(squares.size(), more.size()));
  for (std::size_t k = 0; k < more.size(); ++k) squares[k] += more[k];
}

// The matrices that have taken all that is known of them and might take more: what is not known of
// a matrix is at most its last square, which may push out less, or fill what is left.
std::vector<bool> at_their_end(const std::vector<RankCandidate>& matrices,
                               const std::vector<Index>& ranks, Index budget) {
  double least_gain = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    budget -= ranks[i] * matrices[i].parameters;
    if (ranks[i] <= matrices[i].least_rank) continue;
    least_gain = std::min(least_gain, matrices[i].squares[static_cast<std::size_t>(ranks[i] - 1)] /
                                          static_cast<double>(matrices[i].parameters));
  }
  std::vector<bool> result(matrices.size());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const RankCandidate& matrix = matrices[i];
    if (matrix.squares.empty() || ranks[i] < static_cast<Index>(matrix.squares.size())) continue;
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
  if (!(ranks.energy >= 0 && ranks.energy <= 1)) {
    throw_argument_error("extract: energy is " + std::to_string(ranks.energy) +
                         ", but it must be above 0 and at most 1");
  }
  if (!(ranks.relative_error >= 0 && ranks.relative_error < 1)) {
    throw_argument_error("extract: relative error is " + std::to_string(ranks.relative_error) +
                         ", but it must be above 0 and below 1");
  }
}

LowRankOptions low_rank_options(const ExtractOptions& options, Dtype dtype, Index limit) {
  const ExtractRanks& ranks = options.ranks;
  LowRankOptions asked{.seed = options.seed};
  const Index cap = ranks.max_rank > 0 ? std::min(ranks.max_rank, limit) : limit;
  if (ranks.rank > 0) {
    asked.rank = std::min(ranks.rank, cap);
  } else if (cap < limit || ranks.energy == 1) {
    asked.rank = cap;  // the least rank that is asked for is then one of its prefixes
  } else {
    asked.energy = ranks.energy;
    asked.relative_error = error_before_rounding(ranks, dtype);
  }
  return asked;
}

Index rank_kept(const ExtractOptions& options, Dtype dtype, const Decomposition& found) {
  const ExtractRanks& ranks = options.ranks;
  if (ranks.energy > 0) return std::max<Index>(1, rank_for(found, 1 - ranks.energy));
  if (ranks.relative_error > 0) {
    const double error = error_before_rounding(ranks, dtype);
    return std::max<Index>(1, rank_for(found, error * error));
  }
  return found.rank();
}

bool is_decomposed(const PlannedExtract& tensor) {
  return tensor.fate == ExtractFate::low_rank && tensor.norms.difference > 0 && !tensor.is_zero;
}

FixedSize fixed_size(const ExtractPlan& plan, Dtype dtype) {
  FixedSize fixed;
  std::vector<std::pair<std::string, Shape>> listed;
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
    if (tensor.fate == ExtractFate::low_rank || tensor.is_zero) {
      const TensorMatrices sizes(tensor);
      const Shape factor({sizes.rows() * sizes.count(), sizes.columns() * sizes.count()});
      const std::size_t levels = tensor.kind == AdapterKind::experts ? 1 : 0;
      for (Index copy = 0; copy < copies; ++copy) {
        const std::string& name = copy == 0 ? tensor.module : tensor.tied_module;
        for (int side = 0; side < 2; ++side) {
          listed.emplace_back(name + std::string(levels * 11, ' ') + ".lora_embedding_A", factor);
        }
      }
      if (!is_decomposed(tensor) && !tensor.is_stacked) {
        fixed.parameters += sizes.cost();
        fixed.bytes += stored_bytes(dtype, sizes.cost()).value_or(0);
      }
    }
    if (tensor.fate == ExtractFate::full) {
      const Dtype stored = tensor.pair.tuned->is_quantized ? dtype : tensor.pair.tuned->dtype;
      for (const SavedName& saved : saved_names(tensor)) {
        listed.emplace_back(saved.name, tensor.shape);
        fixed.parameters += tensor.shape.count();
        fixed.bytes += stored_bytes(stored, tensor.shape.count()).value_or(0);
      }
    } else if (has_biases && tensor.parameter == "bias" && with_lora.count(tensor.module) != 0) {
      fixed.parameters += tensor.shape.count();
      fixed.bytes += stored_bytes(dtype, tensor.shape.count()).value_or(0);
      listed.emplace_back(tensor.module + ".lora_B.bias", tensor.shape);
    }
  }
  fixed.header_bytes = detail::most_header_bytes(listed);
  return fixed;
}

Index factor_budget(const ExtractRanks& ranks, const FixedSize& fixed, Dtype dtype) {
  const Index element = bits(dtype) / 8;
  const Index room =
      ranks.budget_parameters
          ? *ranks.budget_parameters - fixed.parameters
          : (*ranks.budget_bytes - static_cast<Index>(fixed.bytes + fixed.header_bytes)) / element;
  if (room > 0) return room;
  throw_argument_error(
      "extract: the budget is " +
          (ranks.budget_parameters
               ? std::to_string(*ranks.budget_parameters) +
                     " numbers, but what is saved whole takes " + std::to_string(fixed.parameters)
               : std::to_string(*ranks.budget_bytes) + " bytes, but what is saved whole takes " +
                     std::to_string(fixed.bytes) + " and the file's header up to " +
                     std::to_string(fixed.header_bytes)),
      "--embeddings lora or skip takes less, and so does --norms skip");
}

Index uniform_rank(const ExtractPlan& plan, Index budget) {
  Index cost = 0;
  for (const PlannedExtract& tensor : plan.tensors) {
    if (is_decomposed(tensor)) cost += TensorMatrices(tensor).cost();
  }
  if (cost > 0 && budget >= cost) return budget / cost;
  throw_argument_error("extract: the budget has room for " + std::to_string(budget) +
                       " numbers of factors, but rank 1 of every matrix takes " +
                       std::to_string(cost));
}

namespace {

std::string part_name(const PlannedExtract& tensor, Index rank) {
  return "factors " + std::to_string(rank) + " " + tensor.name;
}

}  // namespace

void FactorStore::check_room(const std::map<const PlannedExtract*, Index>& ranks) const {
  std::uint64_t bytes = 0;
  for (const auto& [tensor, rank] : ranks) {
    if (folder_.has_part(part_name(*tensor, rank))) continue;
    const TensorMatrices sizes(*tensor);
    bytes += static_cast<std::uint64_t>(rank * sizes.count() * (sizes.rows() + sizes.columns())) *
             sizeof(float);
  }
  folder_.check_room(bytes);
}

void FactorStore::add(const PlannedExtract& tensor, const LowRankOptions& options) {
  const std::string part = part_name(tensor, options.rank);
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

namespace {

bool has_bias(const ExtractPlan& plan, const PlannedExtract& tensor) {
  return std::any_of(plan.tensors.begin(), plan.tensors.end(), [&](const PlannedExtract& other) {
    return other.fate == ExtractFate::bias && other.module == tensor.module;
  });
}

// Each matrix by itself, but what is stacked together.
std::vector<Candidate> candidates_of(const ExtractPlan& plan, const ExtractRanks& ranks,
                                     std::vector<RankCandidate>& matrices) {
  std::vector<Candidate> candidates;
  std::optional<std::size_t> stack;
  for (const PlannedExtract& tensor : plan.tensors) {
    const bool is_stacked = tensor.is_stacked;
    if (!is_decomposed(tensor) && !(is_stacked && tensor.fate != ExtractFate::full)) continue;
    const TensorMatrices sizes(tensor);
    if (!is_stacked || !stack) {
      if (is_stacked) stack = candidates.size();
      candidates.emplace_back();
      matrices.push_back(
          {.squares = {}, .least_rank = !is_stacked && has_bias(plan, tensor) ? 1 : 0});
    }
    const std::size_t at = is_stacked ? *stack : candidates.size() - 1;
    matrices[at].parameters += sizes.cost();
    if (!is_decomposed(tensor)) continue;
    const Index limit =
        ranks.max_rank > 0 ? std::min(ranks.max_rank, sizes.limit()) : sizes.limit();
    candidates[at].limit = std::max(candidates[at].limit, limit);
    candidates[at].tensors.push_back(&tensor);
  }
  return candidates;
}

void check_least(const std::vector<RankCandidate>& matrices, Index budget) {
  Index least = 0;
  for (const RankCandidate& matrix : matrices) least += matrix.least_rank * matrix.parameters;
  if (least <= budget) return;
  throw_argument_error("extract: the budget has room for " + std::to_string(budget) +
                           " numbers of factors, but the modules whose biases have changed take " +
                           std::to_string(least),
                       "--biases skip takes none");
}

void check_any(const std::vector<RankCandidate>& matrices, const std::vector<Index>& shared,
               Index budget) {
  if (std::any_of(shared.begin(), shared.end(), [](Index rank) { return rank > 0; })) return;
  Index least = matrices.front().parameters;
  for (const RankCandidate& matrix : matrices) least = std::min(least, matrix.parameters);
  throw_argument_error("extract: the budget has room for " + std::to_string(budget) +
                       " numbers of factors, but rank 1 of the smallest matrix takes " +
                       std::to_string(least));
}

}  // namespace

std::map<std::string, Index> FactorStore::share(
    const ExtractRanks& ranks, Index budget, std::uint64_t seed,
    const std::function<void(const PlannedExtract&)>& on_done) {
  std::vector<RankCandidate> matrices;
  std::vector<Candidate> candidates = candidates_of(plan_, ranks, matrices);
  if (candidates.empty()) return {};
  check_least(matrices, budget);
  Index cost = 0;
  for (const RankCandidate& matrix : matrices) cost += matrix.parameters;
  // Four times the rank that equal shares would have, so that few have to be done again.
  const Index first = std::max<Index>(8, 4 * (budget / cost));
  for (Candidate& one : candidates) one.wanted = std::min(first, one.limit);
  std::vector<Index> shared;
  for (bool is_done = false; !is_done;) {
    std::map<const PlannedExtract*, Index> wanted;
    for (const Candidate& one : candidates) {
      if (one.wanted == 0) continue;
      for (const PlannedExtract* tensor : one.tensors) {
        wanted[tensor] = std::min(one.wanted, TensorMatrices(*tensor).limit());
      }
    }
    check_room(wanted);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Candidate& one = candidates[i];
      if (one.wanted == 0) continue;
      matrices[i].squares.clear();
      for (const PlannedExtract* tensor : one.tensors) {
        add(*tensor, {.rank = std::min(one.wanted, TensorMatrices(*tensor).limit()), .seed = seed});
        add_squares(energies(*tensor), matrices[i].squares);
        on_done(*tensor);
      }
      one.is_whole = static_cast<Index>(matrices[i].squares.size()) < one.wanted;
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
  check_any(matrices, shared, budget);
  std::map<std::string, Index> result;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    for (const PlannedExtract* tensor : candidates[i].tensors) result[tensor->name] = shared[i];
  }
  return result;
}

}  // namespace eckart

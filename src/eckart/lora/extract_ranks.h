// Which rank each matrix of an extraction has. Included by the library alone.
#pragma once

#include "eckart/lora/decomposition.h"
#include "eckart/lora/extract.h"
#include "eckart/lora/output_folder.h"

#include <functional>
#include <map>
#include <set>
#include <string>

namespace eckart {

/// Throws ArgumentError unless exactly one of the ways to choose ranks is given, and in range.
void check_ranks(const ExtractRanks& ranks);

/// What is asked of low_rank for matrices whose largest rank is `limit`.
LowRankOptions low_rank_options(const ExtractRanks& ranks, Index limit, std::uint64_t seed);
/// What is kept of what low_rank found.
Index rank_kept(const ExtractRanks& ranks, const Decomposition& found);

/// Numbers that the adapter holds besides factors: what is saved whole, and biases.
struct FixedSize {
  Index parameters = 0;
  std::uint64_t bytes = 0;
};
FixedSize fixed_size(const ExtractPlan& plan, Dtype dtype);

/// Numbers of factors that a budget leaves room for. Throws ArgumentError when there is none.
Index factor_budget(const ExtractRanks& ranks, const FixedSize& fixed, Dtype dtype);
/// One rank for all that fits the budget. Throws ArgumentError when not even rank 1 does.
Index uniform_rank(const ExtractPlan& plan, Index budget);

/// Decomposes each low-rank tensor of a plan once and keeps the factors as parts of the folder, so
/// that ranks can be chosen when all spectra are known.
class FactorStore {
 public:
  FactorStore(const ExtractPlan& plan, OutputFolder& folder) : plan_(plan), folder_(folder) {}

  /// Decomposes with these options, unless a killed run has.
  void add(const PlannedExtract& tensor, const LowRankOptions& options);
  /// Tensors that a killed run had decomposed.
  Index n_resumed() const { return static_cast<Index>(resumed_.size()); }
  Decomposition load(const PlannedExtract& tensor) const;
  /// The energies that are known of a tensor.
  std::vector<double> energies(const PlannedExtract& tensor) const;

  /// Ranks of all low-rank tensors for a budget of numbers, by name. A matrix of which the budget
  /// would take more than was found is decomposed again, to twice the rank.
  std::map<std::string, Index> share(const ExtractRanks& ranks, Index budget, std::uint64_t seed,
                                     const std::function<void(const PlannedExtract&)>& on_done);

 private:
  const ExtractPlan& plan_;
  OutputFolder& folder_;
  std::map<std::string, std::string> part_of_;  // by the tensor's name
  std::set<std::string> resumed_;
};

}  // namespace eckart

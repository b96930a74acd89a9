// Which rank each matrix of an extraction has. Included by the library alone.
#pragma once

#include "eckart/lora/decomposition.h"
#include "eckart/lora/extract.h"
#include "eckart/lora/output_folder.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace eckart {

/// Throws ArgumentError unless exactly one of the ways to choose ranks is given, and in range.
void check_ranks(const ExtractRanks& ranks);

/// What is asked of low_rank for matrices whose largest rank is `limit`, when the factors are stored
/// as `dtype`: an error that is to hold after rounding leaves room for it.
LowRankOptions low_rank_options(const ExtractOptions& options, Dtype dtype, Index limit);
/// What is kept of what low_rank found, of the same options.
Index rank_kept(const ExtractOptions& options, Dtype dtype, const Decomposition& found);

/// Whether a tensor of a plan has factors that are not all zeros.
bool is_decomposed(const PlannedExtract& tensor);

/// What the adapter holds besides the factors whose ranks are chosen: what is saved whole, biases,
/// the zeros that carry biases, and what describes them all.
struct FixedSize {
  Index parameters = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;  // of the file, at most
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
  bool has(const PlannedExtract& tensor) const { return part_of_.count(tensor.name) != 0; }
  /// Tensors that a killed run had decomposed.
  Index n_resumed() const { return static_cast<Index>(resumed_.size()); }
  Decomposition load(const PlannedExtract& tensor) const;
  /// The energies that are known of a tensor.
  std::vector<double> energies(const PlannedExtract& tensor) const;

  /// Throws FileError when the disk has not room for factors of these ranks, as far as they are not
  /// kept yet.
  void check_room(const std::map<const PlannedExtract*, Index>& ranks) const;
  /// Ranks of all low-rank tensors for a budget of numbers, by name. A matrix of which the budget
  /// would take more than was found is decomposed again, to twice the rank. What PEFT stacks has one
  /// rank; a module with a bias has at least one. Throws FileError, before it decomposes any, when
  /// the disk has no room for what it keeps.
  std::map<std::string, Index> share(const ExtractRanks& ranks, Index budget, std::uint64_t seed,
                                     const std::function<void(const PlannedExtract&)>& on_done);

 private:
  const ExtractPlan& plan_;
  OutputFolder& folder_;
  std::map<std::string, std::string> part_of_;  // by the tensor's name
  std::set<std::string> resumed_;
};

}  // namespace eckart

// The adapter that explains the difference of two checkpoints.
#pragma once

#include "eckart/io/dtype.h"
#include "eckart/lora/extract_plan.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// How much is kept of each matrix: exactly one of the first four and the fifth.
struct ExtractRanks {
  Index rank = 0;     // of every matrix, at most min(m, n) of it
  double energy = 0;  // the least rank that keeps this share of the squared norm, before rounding
  /// The least rank whose error is at most this share of the norm, of the factors as they are stored;
  /// where rounding alone makes more, that of factors that are not rounded, which is noted.
  double relative_error = 0;
  /// Of the whole adapter, what is saved whole included: numbers, or bytes of the file. Ranks are
  /// shared out over all matrices for what they keep (see rank_budget.h).
  std::optional<Index> budget_parameters = {};
  std::optional<Index> budget_bytes = {};
  Index max_rank = 0;  // with any of them; 0: none
};

struct ExtractOptions {
  ExtractRules rules = {};
  ExtractRanks ranks = {};
  std::optional<Dtype> dtype = {};  // F32, F16 or BF16; none: the plan's
  std::uint64_t seed = 0;
  std::string base_name = {};  // base_model_name_or_path; empty: the base's path
  /// Called with elements that are read, and of all of the stage: `comparing`, `decomposing`,
  /// `writing`.
  std::function<void(std::string_view stage, Index done, Index all)> on_progress = {};
};

/// What became of one tensor. Norms are Frobenius norms.
struct ExtractedTensor {
  std::string name;
  ExtractFate fate = ExtractFate::unchanged;
  std::string reason;
  Shape shape;
  Index rank = 0;
  double base_norm = 0;
  double difference_norm = 0;
  /// Of the best approximation of that rank as it was found, certified (see low_rank.h): of experts,
  /// of all together.
  double certified_error = 0;
  /// Of the adapter's factors as they are stored, rounded to its dtype.
  double error = 0;
  std::string method = {};

  /// The share of the squared difference that the rank holds.
  double energy_kept() const;
};

struct ExtractReport {
  std::vector<ExtractedTensor> tensors;  // every one of the tuned model, in natural order
  Consumer consumer = Consumer::any;
  Dtype dtype = Dtype::f32;
  Index rank = 0;        // the config's, the largest
  Index parameters = 0;  // numbers in the adapter
  std::uint64_t bytes = 0;
  double base_norm = 0;        // of the whole model
  double difference_norm = 0;  // of all that has changed
  double error = 0;            // of the adapter: rounding, cut ranks and what is left out
  double left_out = 0;         // of it, what is left out
  std::vector<std::string> notes;
  Index n_resumed = 0;  // matrices that a run that was cut off had finished
};

/// The report as JSON: what `eckart lora extract --json` prints and the adapter's folder keeps.
std::string to_json(const ExtractReport& report);

/// What the adapter would hold, by name and fate, without ranks: reads both models once.
ExtractReport preview_extract(const ExtractSources& sources, const ExtractOptions& options);

/// Writes the adapter of tuned - base as a folder that PEFT loads: `adapter_config.json`,
/// `adapter_model.safetensors` and `eckart_report.json`. Matrices through low_rank (Eckart and
/// Young), the root of the singular values in each factor, alpha = rank, so that the scale is 1.
/// With a consumer other than PEFT all factors have one rank, filled with zeros. Where files have a
/// matrix an expert, PEFT stacks those of a layer: they and their routers have one rank, that of the
/// config, and experts that have not changed are zeros.
///
/// The folder appears whole (see OutputFolder), and a run that was killed goes on with the matrices
/// that it had not finished: the bytes are the same. Cost: both models are read once, then about 4
/// m n (rank + 100) FLOPs for each matrix; memory: one difference in float, or blocks of it where it
/// has more than 2^26 elements, and the factors of one tensor, of fused experts of all, in float
/// and as they are written. A budget keeps the factors that were found, in float, in the folder until
/// it is done: four times what it gives. Results do not depend on the number of threads.
///
/// Throws as plan_extract before anything is written; ArgumentError for ranks out of range, a
/// budget that what is saved whole goes beyond, and factors too large for the dtype; FileError as
/// OutputFolder.
ExtractReport extract_adapter(const ExtractSources& sources, const std::filesystem::path& target,
                              const ExtractOptions& options);

}  // namespace eckart

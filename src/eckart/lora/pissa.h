// PiSSA: an adapter that starts as the principal part of the weights, on a base that is what is left.
// Meng, Wang, Zhang, PiSSA: Principal Singular Values and Singular Vectors Adaptation, 2024.
#pragma once

#include "eckart/io/checkpoint.h"
#include "eckart/lora/adapter.h"
#include "eckart/lora/merge.h"
#include "eckart/lora/rewritten_adapter.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/logical_tensors.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// A model to be split; the first two pointers are not null.
struct PissaBase {
  const Checkpoint* checkpoint = nullptr;
  const std::vector<LogicalTensor>* tensors = nullptr;
  const Architecture* architecture = nullptr;
  const Config* config = nullptr;
};

struct PissaOptions {
  Index rank = 0;
  /// Names of matrices, with `.weight` or without (see name_pattern.h). Empty: every matrix of the
  /// layers' attention and MLP; where the family is unknown, every matrix in a numbered layer.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  /// Of the factors, F32, F16 or BF16; none: the base's, at least 16 bits.
  std::optional<Dtype> dtype = {};
  std::uint64_t seed = 0;  // of the random start (see low_rank.h)
  bool exact = false;      // all singular values, instead of the iteration
  /// Called with the elements of each matrix when it is split, and of all.
  std::function<void(Index done, Index all)> on_split = {};
  /// As MergeOptions::on_progress, while the base is written.
  std::function<void(std::uint64_t done, std::uint64_t all)> on_write = {};
};

struct PissaModule {
  std::string name;
  Index d_out = 0;
  Index d_in = 0;
  double norm = 0;              // ||w||_F
  double residual_norm = 0;     // ||w - b a||_F before rounding
  bool is_input_first = false;  // stored d_in x d_out (GPT-2's Conv1D)
};

struct PissaReport {
  std::vector<PissaModule> modules;  // in natural order
  Index rank = 0;
  Dtype dtype = Dtype::f32;  // of the factors
  Index n_resumed = 0;       // modules that a run that was cut off had split
  MergeReport base;          // the residual base: w - b a, and what its dtype swallowed of b a
};

/// Splits every chosen matrix w (out x in) into b a + residual, where b a is its best approximation
/// of the rank (see low_rank.h), and writes `target/adapter`, for PEFT, with alpha = rank and
/// init_lora_weights true, and `target/base`, a checkpoint with the residuals in place of the
/// matrices. The residuals are of the factors as they were rounded, so that both sum to the base but
/// for one rounding of the residual to the base's dtype (F8 with scales: BF16).
/// Cost: low_rank of every matrix, and writing the base. Memory: the largest matrix in float, a few
/// times. The folder appears whole, and a killed run goes on with the matrices that it had not split
/// and the tensors that it had not written (see OutputFolder).
/// Throws ArgumentError for a rank below 1 or above a matrix's smaller side, patterns that fit
/// nothing, a chosen tensor that is no linear map, NaN and infinities; FileError as OutputFolder.
PissaReport init_pissa(const PissaBase& base, const std::filesystem::path& target,
                       const PissaOptions& options);

/// A trained PiSSA adapter as a plain one for the original base: what it adds beside what it started
/// from, b a - b0 a0, as [b, -b0] [a; a0]: the ranks of both add up (PEFT's path_initial_model_for_
/// weight_conversion does the same). `initial` is the adapter as `init_pissa` wrote it.
/// `options.base_model`: the original base. Other options, result and errors as `combine_adapters`;
/// ArgumentError when the two do not have the same modules.
RewrittenAdapter plain_from_pissa(const Adapter& trained, const Adapter& initial,
                                  const std::filesystem::path& target,
                                  const RewriteOptions& options);

}  // namespace eckart

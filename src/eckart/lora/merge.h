// Folding adapters into a base: W + sum of weight * scale * B A, written as a checkpoint of its own.
#pragma once

#include "eckart/lora/delta_statistics.h"
#include "eckart/lora/merge_plan.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace eckart {

struct MergeOptions {
  MergeRules rules = {};
  /// Whether the files' bytes are on the disk before the folder takes its name. Without, a power
  /// failure soon after may leave incomplete ones, as after `cp`.
  bool is_synced = true;
  /// Called with the bytes of each piece of the result when it is written, and of the whole.
  std::function<void(std::uint64_t bytes, std::uint64_t all)> on_progress = {};
};

/// What became of one tensor that is not a copy.
struct MergedTensor {
  std::string name;
  TensorFate fate = TensorFate::merged;
  Dtype dtype = Dtype::f32;
  Shape shape;
  /// Of merged ones.
  DeltaStatistics statistics;
};

/// A copied tensor of which not every value is a number.
struct NotFinite {
  std::string name;
  Index n_nan = 0;
  Index n_infinite = 0;
};

struct MergeReport {
  std::vector<MergedTensor> tensors;  // in natural order
  Index n_copied = 0;                 // tensors
  /// Copied as they are: no adapter changes them, and a mask, for one, may have infinities.
  std::vector<NotFinite> not_finite;
  std::uint64_t bytes = 0;  // of the result's tensors
  DeltaStatistics total;
  /// What changed in config.json: `vocab_size 32000 -> 32001`.
  std::vector<std::string> config_changes;
  std::vector<std::string> carried;   // other files of the base's folder, and the tokenizer's
  std::vector<std::string> left_out;  // other weights of the base's folder
  Index n_resumed = 0;                // tensors that a run that was cut off had finished
};

/// Writes the merge as a folder: the base's shards, index and config and all its other files but
/// other weights. Every sum is made in float from the stored values, factors with their scales and
/// weights side by side, and rounded once, to nearest even, to the dtype of the base's tensor (or
/// `rules.dtype`). Tensors that nothing changes are copied. A base of F8 with scales is written as
/// BF16 (or `rules.dtype`) without them.
///
/// The folder appears whole (see OutputFolder), and a run that was killed goes on with the tensors
/// that it had not finished. Cost: 2 r m n FLOPs for a matrix, reading the base and writing as much
/// once; memory: the factors of 64 MiB of matrices and 2 MiB a thread.
///
/// Throws as plan_merge, before anything is written; ArgumentError when a value of a tensor that is
/// changed is NaN or infinite, or a sum is too large for its dtype, naming tensor and place (in the
/// pass over the base that writes: there is no other), and when no entry of any tensor has changed
/// because the dtype swallowed every delta; FileError as OutputFolder, and for a file of the base's
/// folder that can't be carried. NaN and infinities in a copied tensor are reported. Nothing
/// of the result stays then; what a FileError interrupts (a disk that fills up meanwhile) can
/// be gone on with.
MergeReport merge_adapters(const MergeSources& sources, const std::filesystem::path& target,
                           const MergeOptions& options = {});

}  // namespace eckart

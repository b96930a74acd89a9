// Whether a checkpoint is what a merge of these adapters into this base must give.
#pragma once

#include "eckart/lora/merge.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace eckart {

/// A tensor that adapters change, compared with base + delta in double.
struct VerifiedTensor {
  std::string name;
  /// ||merged - (base + delta)||_F / ||base + delta||_F.
  double relative_error = 0;
  /// The largest error of an entry as a share of what it may be; above 1 it is wrong.
  double share_of_bound = 0;
  std::vector<Index> worst;  // where that entry is
};

struct VerifyReport {
  std::vector<VerifiedTensor> tensors;  // those that were compared by value, in natural order
  Index n_copies = 0;                   // tensors that have to be those of the base, and are
  std::vector<NotFinite> not_finite;    // of them, those that hold more than numbers
  /// What is wrong, a sentence each.
  std::vector<std::string> problems;
};

struct VerifyOptions {
  MergeRules rules = {};
  /// Called with the bytes of each tensor when it was compared, and of all.
  std::function<void(std::uint64_t bytes, std::uint64_t all)> on_progress = {};
};

/// Compares values, not names alone. With base, factors, scales and sums in double, every entry of a
/// merged tensor must be within one rounding to its dtype, plus what sums in float of these lengths
/// may be off: 2^-24 ((r + 3) sum_k |b_ik| max_j |a_kj| + 2 |w|), for DoRA times its largest factor
/// and 8 roundings of the entry. Copies must be the base's to the byte. Cost: as the merge, in
/// double. Throws as plan_merge.
VerifyReport verify_merge(const MergeSources& sources, const Checkpoint& merged,
                          const VerifyOptions& options = {});

}  // namespace eckart

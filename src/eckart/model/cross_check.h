// Three sources that should agree: what config.json implies, what the index says, what the headers
// hold. Each difference is named and explained.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/shard_index.h"
#include "eckart/model/architecture.h"
#include "eckart/model/logical_tensors.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/quantization.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

enum class DifferenceLevel {
  error,    // the file can't be loaded as the model that config.json describes
  warning,  // it can, but something is likely not as it was meant
  note,     // explained, and no reason to act
};

/// One difference, or the same one of many tensors.
struct Difference {
  DifferenceLevel level = DifferenceLevel::error;
  /// A short stable name. Errors: `nothing_matches missing_tensor missing_bias missing_head
  /// missing_layers shape_differs vocabulary_differs index_tensor_missing
  /// index_wrong_shard`. Warnings: `extra_tensor extra_bias extra_layers stored_twice not_in_index
  /// total_size_differs total_parameters_differs`. Notes: `tied_stored
  /// stored_under_tied_name extra_predictor zero_biases buffer quantization_scales
  /// quantization_tensor old_names foreign_prefix dtype_differs total_size_explained`.
  std::string kind;
  std::string tensor;    // its name, `layers.{0..31}.…` for many; empty: the whole file
  std::string expected;  // a shape, a dtype, a number of bytes; empty where there is none
  std::string found;
  std::string message;  // a sentence with the values
  std::string hint;     // what would fit, where that is known
  Index count = 1;      // tensors it is about
};

/// What is compared. The pointers may be null where a source is missing.
struct CrossCheckInput {
  const Architecture* architecture = nullptr;
  const std::vector<LogicalTensor>* tensors = nullptr;
  const StoredList* stored = nullptr;
  const ShardIndex* index = nullptr;
  /// The shard that each tensor of `stored` stands in, into the index's shards; null: not compared.
  const std::vector<std::uint32_t>* shards = nullptr;
  /// `match_specs` of the architecture and the tensors, where the caller has it; null: made here.
  const SpecMatches* matches = nullptr;
};

/// All differences: errors first, then warnings, then notes. None means that the sources agree.
/// Time linear in the number of tensors and of lines of the table, expanded.
std::vector<Difference> cross_check(const CrossCheckInput& input);

std::string_view to_string(DifferenceLevel level);

}  // namespace eckart

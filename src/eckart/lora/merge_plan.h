// What a merge makes of each tensor of a base. All that can be wrong with base and adapters is found
// here, before anything is computed or written.
#pragma once

#include "eckart/io/checkpoint.h"
#include "eckart/io/dtype.h"
#include "eckart/lora/adapter.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/logical_tensors.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// A base and the adapters that go into it; they must outlive what is made of them.
struct MergeSources {
  const Checkpoint& base;
  const std::vector<LogicalTensor>& tensors;  // of the base
  const Architecture* architecture = nullptr;
  const Config* config = nullptr;
  const std::vector<Adapter>& adapters;
};

struct MergeRules {
  /// One an adapter, by which its B A and its bias are multiplied; empty: 1 each.
  std::vector<double> weights = {};
  /// Of every floating parameter in the result, F32, F16 or BF16; none: as the base stores it.
  std::optional<Dtype> dtype = {};
  /// What changes the embedding or the head of a tied model changes both. Otherwise the one that is
  /// not adapted keeps its values, and the result is no longer tied.
  bool fold_tied = false;
};

enum class TensorFate {
  copied,     // byte by byte
  converted,  // to another dtype
  merged,     // base + delta
  replaced,   // by a tensor that the adapter saved whole
  added,      // the base has it only tied to another
};
std::string_view to_string(TensorFate fate);

/// What one module adds to a stored matrix.
struct PlannedDelta {
  std::size_t adapter = 0;
  const AdapterModule* module = nullptr;
  double weight = 1;
  bool is_bias = false;        // the module's bias, instead of its B A
  bool is_transposed = false;  // the matrix is stored input x output
  /// Of fused experts that the base holds one by one: which of them, and the first of its B A's rows
  /// (after transposing) that are this matrix's.
  std::optional<Index> expert = {};
  Index first_row = 0;
};

/// One tensor of the result.
struct PlannedTensor {
  std::string name;
  TensorFate fate = TensorFate::copied;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::size_t shard = 0;  // of the base, and of the result
  /// Where its values come from, before deltas: a stored tensor of the base (copied), a logical one
  /// of the base, or a saved one of an adapter.
  const StoredTensor* stored = nullptr;
  const LogicalTensor* base = nullptr;
  const StoredTensor* saved = nullptr;
  std::size_t saved_by = 0;
  std::vector<PlannedDelta> deltas = {};

  /// As matrices: n_matrices (experts; else 1) of rows x columns each, as they are stored.
  Index n_matrices = 1;
  Index rows = 0;
  Index columns = 0;
};

struct MergePlan {
  std::vector<PlannedTensor> tensors;  // in natural order of their names
  std::vector<std::string> shards;     // file names
  /// What config.json has to say then; empty: what it says now.
  std::optional<Index> vocab_size;
  bool is_untied = false;
  bool is_dequantized = false;
  std::optional<Dtype> config_dtype;
  /// An adapter has changed the vocabulary: its folder's tokenizer goes with the result.
  std::optional<std::size_t> vocabulary_of;
};

/// Plans a merge. The adapters' modules are resolved (see Adapter::resolve_names). Throws
/// ArgumentError:
/// - a module or saved tensor that fits nothing of the base, with the closest names;
/// - shapes that do not go together; fused experts (target_parameters) go to a base that has a matrix
///   an expert by the family's table; of square ones nothing says how they lie: PEFT's version, the
///   family or other experts must; a square matrix of which nothing says how it lies is taken as
///   PyTorch's Linear (output x input) unless the adapter says `fan_in_fan_out` or its other
///   modules lie the other way;
/// - two adapters that save one tensor, or one that saves what another changes; a weight other than
///   1 on a saved tensor or on DoRA; DoRA together with another delta on one matrix (its norm is
///   that of base and delta: a sum of several is not defined by it);
/// - a bias other than 0 for a layer without one, as in PEFT; a base that is quantized otherwise than F8;
/// - a vocabulary that grows on one of two tied or separate sides;
/// - NaN or infinity in an adapter; adapters that change nothing.
MergePlan plan_merge(const MergeSources& sources, const MergeRules& rules = {});

/// Names of the base's tensors that adapters may mean, a tied head included: for
/// Adapter::resolve_names.
std::vector<std::string> mergeable_names(const Checkpoint& base,
                                         const std::vector<LogicalTensor>& tensors,
                                         const Architecture* architecture, const Config* config);

}  // namespace eckart

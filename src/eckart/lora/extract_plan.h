// What an extraction makes of each tensor of a tuned model, and why. All that can be wrong with the
// two checkpoints is found here, before anything is decomposed or written.
#pragma once

#include "eckart/io/checkpoint.h"
#include "eckart/io/dtype.h"
#include "eckart/lora/adapter.h"
#include "eckart/lora/weight_pair.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/logical_tensors.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// A base and what was made of it by training; they must outlive what is made of them. The
/// architecture is the base's: without it roles are told by names and shapes alone.
struct ExtractSources {
  const Checkpoint& base;
  const std::vector<LogicalTensor>& base_tensors;
  const Checkpoint& tuned;
  const std::vector<LogicalTensor>& tuned_tensors;
  const Architecture* architecture = nullptr;
  const Config* config = nullptr;
};

/// Of embeddings and the head: whole (modules_to_save), as a LoRA (lora_embedding_A and _B), or left
/// out.
enum class TableRule { save, lora, skip };

/// Who is to read the adapter. `any` is PEFT; the others take less: LoRA of linear layers alone, one
/// rank and one alpha for all.
enum class Consumer { any, vllm, llama_cpp };
std::string_view to_string(Consumer consumer);

struct ExtractRules {
  /// Patterns (see name_pattern.h) for names of tensors or modules: only these, and of them not
  /// those.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  TableRule tables = TableRule::save;
  bool norms = true;   // modules_to_save
  bool biases = true;  // lora_bias
  Consumer consumer = Consumer::any;
  /// Goes on although the difference is as large as that of unrelated models.
  bool allow_unrelated = false;
};

enum class ExtractFate {
  low_rank,
  full,  // saved whole
  bias,  // the change of a bias, beside its module's LoRA
  unchanged,
  skipped,
};
std::string_view to_string(ExtractFate fate);

/// One tensor of the tuned model.
struct PlannedExtract {
  std::string name;  // as transformers' class of the model has it
  std::string module;
  std::string parameter;
  Shape shape;
  WeightPair pair;
  const TensorSpec* spec = nullptr;
  ExtractFate fate = ExtractFate::skipped;
  std::string reason;
  AdapterKind kind = AdapterKind::linear;
  bool is_input_first = false;
  /// A matrix of one expert, or its layer's router: PEFT stacks them, so that all have one rank.
  bool is_stacked = false;
  /// Written as a LoRA of zeros, changed or not, because what PEFT stacks it with has one.
  bool is_zero = false;
  /// A module that shares this tensor (a tied head): its part of the adapter is written for both.
  std::string tied_module;
  /// Further parameters of the class that are this one, beside it or, of the bias of a tied head, in
  /// its place: all are written where it is saved whole.
  std::vector<std::string> shared_names;
  bool is_head_bias = false;
  /// The module that is saved whole for it, where it is not its own: a head of several layers.
  std::string saved_module;
  PairNorms norms;
};

/// A tensor that is saved whole as PEFT has it: the module that modules_to_save names, and its name.
struct SavedName {
  std::string module;
  std::string name;
};
std::vector<SavedName> saved_names(const PlannedExtract& tensor);

struct ExtractPlan {
  std::vector<PlannedExtract> tensors;  // in natural order
  std::string task_type;                // PEFT's
  Dtype dtype = Dtype::f32;             // that most of the tuned matrices are stored in
  double base_norm = 0;                 // of all parameters
  double difference_norm = 0;           // of all that has changed
  std::vector<std::string> notes;  // sentences on decisions that a reader of the adapter must know
};

/// Plans an extraction. One pass over both models, which checks every number and finds the norms.
/// Decisions: a module whose small parameters have changed (a norm) is saved whole, since PEFT loads
/// such modules whole; a module that only the tuned model has, too (a new head). A table with more
/// or fewer rows than the base's is saved whole. A tied head follows its embedding. Throws
/// ArgumentError for a pattern that fits nothing, tensors that only the base has, shapes that do not
/// go together, storage that is not read as numbers, NaN and infinity, models that are the same, and
/// models that are not related: the median of the matrices' relative differences, over the rows that
/// both have, is as large as that of independent ones. Integers and buffers that have changed are
/// skipped, each with its entry.
/// `on_progress` is called with the number of elements that were compared, and of all.
ExtractPlan plan_extract(const ExtractSources& sources, const ExtractRules& rules,
                         const std::function<void(Index done, Index all)>& on_progress = {});

}  // namespace eckart

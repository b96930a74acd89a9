#include "eckart/lora/merge_plan.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/scan.h"
#include "eckart/lora/merge_errors.h"
#include "eckart/lora/merge_experts.h"
#include "eckart/lora/merge_orientation.h"
#include "eckart/lora/merge_settle.h"
#include "eckart/lora/tied_embeddings.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

namespace eckart {
namespace {

namespace fs = std::filesystem;

class Planner {
 public:
  Planner(const MergeSources& sources, const MergeRules& rules)
      : sources_(sources),
        rules_(rules),
        tied_(
            tied_embeddings(sources.base, sources.tensors, sources.architecture, sources.config)) {}

  MergePlan plan() {
    check_rules();
    take_base();
    for (std::size_t i = 0; i < sources_.adapters.size(); ++i) take_saved(i);
    for (std::size_t i = 0; i < sources_.adapters.size(); ++i) take_modules(i);
    separate_tied();
    settle_dtypes(sources_, rules_, plan_);
    settle_vocabulary(sources_, tied_, plan_);
    check_something_changes(sources_, plan_);
    for (PlannedTensor& tensor : plan_.tensors) set_matrix_sizes(tensor);
    std::stable_sort(plan_.tensors.begin(), plan_.tensors.end(),
                     [](const PlannedTensor& a, const PlannedTensor& b) {
                       return natural_less(a.name, b.name);
                     });
    return std::move(plan_);
  }

 private:
  double weight_of(std::size_t adapter) const {
    return rules_.weights.empty() ? 1 : rules_.weights[adapter];
  }

  void check_rules() const {
    const std::size_t n = sources_.adapters.size();
    if (n == 0) throw_argument_error("merge: there is no adapter");
    if (!rules_.weights.empty() && rules_.weights.size() != n) {
      throw_argument_error("merge: " + std::to_string(n) + " adapters and " +
                           std::to_string(rules_.weights.size()) +
                           " weights, but each adapter has one weight");
    }
    for (const double weight : rules_.weights) {
      if (!std::isfinite(weight)) throw_argument_error("merge: a weight must be a finite number");
    }
    const Dtype dtype = rules_.dtype.value_or(Dtype::f32);
    if (dtype != Dtype::f32 && dtype != Dtype::f16 && dtype != Dtype::bf16) {
      throw_argument_error("merge: the dtype is " + std::string(to_string(dtype)) +
                           ", but a result is F32, F16 or BF16");
    }
    for (const Adapter& adapter : sources_.adapters) check_finite(adapter);
  }

  // Every tensor of the base as it is. A quantized one is one entry until it is clear whether its
  // parts are copied or its values written.
  void take_base() {
    for (const SafetensorsFile& shard : sources_.base.shards()) {
      plan_.shards.push_back(fs::path(shard.path()).filename().string());
    }
    SpecMatches matches;
    if (sources_.architecture != nullptr) {
      matches = match_specs(*sources_.architecture, sources_.tensors);
    }
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < sources_.tensors.size(); ++i) {
      const LogicalTensor& tensor = sources_.tensors[i];
      const CheckpointTensor& values = sources_.base.tensors()[tensor.values];
      PlannedTensor planned{.name = tensor.is_quantized ? tensor.name : values.stored->name,
                            .dtype = tensor.dtype,
                            .shape = tensor.shape,
                            .shard = values.shard,
                            .stored = values.stored,
                            .base = &tensor};
      by_name_.emplace(planned.name, plan_.tensors.size());
      shapes.push_back(planned.shape);
      plan_.tensors.push_back(std::move(planned));
      const bool is_known = sources_.architecture != nullptr && matches.of[i].spec >= 0;
      specs_.push_back(
          is_known ? &sources_.architecture->tensors[static_cast<std::size_t>(matches.of[i].spec)]
                   : nullptr);
    }
    std::vector<std::string> names;
    for (const auto& entry : by_name_) names.push_back(entry.first);
    aliases_ = class_aliases(names, tied_, sources_.config);
    if (sources_.architecture != nullptr) {
      experts_ = ExpertTable(*sources_.architecture, matches, shapes);
    }
  }

  const std::string& stored_name(const std::string& name) const {
    const auto alias = aliases_.find(name);
    return alias == aliases_.end() ? name : alias->second;
  }

  // The entries that a change of this tensor goes to; empty when the base has no such tensor.
  std::vector<std::size_t> entries_of(const std::string& given) {
    const std::string& name = stored_name(given);
    const bool is_side = tied_ && (name == tied_->embedding || name == tied_->head);
    if (is_side && rules_.fold_tied) {
      std::vector<std::size_t> both = {by_name_.at(tied_->embedding)};
      if (tied_->head_is_stored) both.push_back(by_name_.at(tied_->head));
      return both;
    }
    if (is_side) is_tied_changed_ = true;
    if (is_side && name == tied_->head) return {head_entry()};
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return {};
    return {found->second};
  }

  // Of a tied head, made where the base does not store one.
  std::size_t head_entry() {
    const auto found = by_name_.find(tied_->head);
    if (found != by_name_.end()) return found->second;
    const std::size_t embedding = by_name_.at(tied_->embedding);
    PlannedTensor head = plan_.tensors[embedding];
    head.name = tied_->head;
    head.fate = TensorFate::added;
    head.shape = head.base->shape;
    head.saved = nullptr;
    head.deltas.clear();
    by_name_.emplace(head.name, plan_.tensors.size());
    plan_.tensors.push_back(std::move(head));
    specs_.push_back(specs_[embedding]);
    return plan_.tensors.size() - 1;
  }

  void take_saved(std::size_t number) {
    const Adapter& adapter = sources_.adapters[number];
    for (const SavedTensor& saved : adapter.saved()) {
      const std::vector<std::size_t> entries = entries_of(saved.name);
      if (entries.empty()) fail_unmatched(adapter, saved.name);
      if (weight_of(number) != 1) {
        throw_argument_error("merge: " + printable(saved.name) + " is saved whole by " +
                                 shown(adapter) + ", so that its weight can only be 1",
                             "give that adapter the weight 1");
      }
      for (const std::size_t entry : entries) {
        PlannedTensor& tensor = plan_.tensors[entry];
        if (tensor.saved != nullptr) check_same_saved(tensor, number, *saved.stored);
        replace(tensor, *saved.stored, number);
      }
    }
  }

  // Embedding and head, folded into one, may both be saved when they are the same.
  void check_same_saved(const PlannedTensor& tensor, std::size_t number,
                        const StoredTensor& saved) const {
    const Adapter& adapter = sources_.adapters[number];
    const Adapter& other = sources_.adapters[tensor.saved_by];
    if (number != tensor.saved_by) {
      throw_argument_error("merge: " + printable(tensor.name) + " is saved whole by " +
                               shown(other) + " and by " + shown(adapter) +
                               ", but only one of them can replace it",
                           "merge one of the two");
    }
    if (tensor.saved->dtype == saved.dtype &&
        std::ranges::equal(other.file().bytes(*tensor.saved), adapter.file().bytes(saved))) {
      return;
    }
    throw_argument_error("merge: " + shown(adapter) +
                             " saves an embedding and a head that differ, " + "but folded into " +
                             printable(tensor.name) + " they are one",
                         "without `--fold-tied` they are written apart");
  }

  void replace(PlannedTensor& tensor, const StoredTensor& saved, std::size_t number) {
    if (!same_sizes(saved.shape, tensor.shape)) {
      const bool is_table = is_embedding_name(tensor.name) || is_head_name(tensor.name) ||
                            (tied_ && tensor.name == tied_->embedding);
      const bool grows = is_table && saved.shape.rank() == 2 && saved.shape.size(0) > 0 &&
                         tensor.shape.rank() == 2 && saved.shape.size(1) == tensor.shape.size(1);
      if (!grows) {
        fail_shape(sources_.adapters[number], tensor, sizes_to_string(saved.shape));
      }
    }
    tensor.saved = &saved;
    tensor.saved_by = number;
    tensor.shape = saved.shape;
    tensor.fate = tensor.fate == TensorFate::added ? tensor.fate : TensorFate::replaced;
  }

  void take_modules(std::size_t number) {
    const Adapter& adapter = sources_.adapters[number];
    std::vector<Product> products;
    std::vector<MatrixFit> fits;
    for (const AdapterModule& module : adapter.modules()) {
      add_products(adapter, module, products, fits);
      if (module.bias != nullptr) take_bias(number, module);
    }
    const Orientation orientation(adapter);
    for (std::size_t i = 0; i < products.size(); ++i) {
      if (orientation.fits(fits[i])) continue;
      PlannedTensor stored = plan_.tensors[products[i].entry];
      stored.shape = fits[i].shape;
      fail_shape(adapter, stored, sizes_of(*fits[i].module));
    }
    for (std::size_t i = 0; i < products.size(); ++i) {
      PlannedDelta delta{.adapter = number,
                         .module = fits[i].module,
                         .weight = weight_of(number),
                         .is_transposed = orientation.is_transposed(fits[i], fits),
                         .expert = products[i].expert,
                         .first_row = products[i].first_row};
      add_delta(plan_.tensors[products[i].entry], delta);
    }
  }

  // What a module's B A, or a part of it, is added to.
  struct Product {
    std::size_t entry = 0;
    std::optional<Index> expert = {};
    Index first_row = 0;
  };

  void add_products(const Adapter& adapter, const AdapterModule& module,
                    std::vector<Product>& products, std::vector<MatrixFit>& fits) {
    const bool is_parameter = module.kind == AdapterKind::experts;
    const std::vector<std::size_t> entries =
        entries_of(module.name + (is_parameter ? "" : ".weight"));
    for (const std::size_t entry : entries) {
      products.push_back({.entry = entry});
      fits.push_back({&module, plan_.tensors[entry].shape, specs_[entry]});
    }
    if (!entries.empty()) return;
    const FusedExperts fused = is_parameter ? experts_.find(module.name) : FusedExperts();
    if (fused.parts.empty()) fail_unmatched(adapter, module.name);
    for (const ExpertPart& part : fused.parts) {
      products.push_back({part.entry, part.expert, part.first_row});
      fits.push_back({&module, fused.shape, specs_[part.entry]});
    }
  }

  void take_bias(std::size_t number, const AdapterModule& module) {
    const Adapter& adapter = sources_.adapters[number];
    const auto found = by_name_.find(stored_name(module.name + ".bias"));
    if (found == by_name_.end()) {
      // lora_bias is one flag for all modules: those without a trained one have zeros.
      if (scan_values(module.bias->dtype, adapter.file().bytes(*module.bias)).all_zero) return;
      throw_argument_error("merge: " + shown(adapter) + " has a lora_bias for " +
                               printable(module.name) +
                               ", but the base's layer has no bias that it could be added to",
                           "PEFT can't merge it either; run it as an adapter");
    }
    PlannedTensor& bias = plan_.tensors[found->second];
    if (bias.shape.count() != module.d_out) {
      fail_shape(adapter, bias, std::to_string(module.d_out));
    }
    add_delta(bias,
              {.adapter = number, .module = &module, .weight = weight_of(number), .is_bias = true});
  }

  void add_delta(PlannedTensor& tensor, const PlannedDelta& delta) {
    const Adapter& adapter = sources_.adapters[delta.adapter];
    if (tensor.saved != nullptr && tensor.saved_by != delta.adapter) {
      throw_argument_error("merge: " + printable(tensor.name) + " is saved whole by " +
                               shown(sources_.adapters[tensor.saved_by]) + " and changed by " +
                               shown(adapter) + ", but what is saved replaces it",
                           "merge one of the two");
    }
    const auto has_magnitude = [](const PlannedDelta& one) {
      return !one.is_bias && one.module->magnitude != nullptr;
    };
    if (has_magnitude(delta) && delta.weight != 1) {
      throw_argument_error(
          "merge: " + shown(adapter) + " is DoRA, so that its weight can only be 1",
          "a DoRA rescales the rows of W + B A, which no weight of B A undoes");
    }
    const bool has_dora = has_magnitude(delta) ||
                          std::any_of(tensor.deltas.begin(), tensor.deltas.end(), has_magnitude);
    if (has_dora && !tensor.deltas.empty()) {
      throw_argument_error("merge: " + printable(tensor.name) +
                               " is changed by several adapters of which one is DoRA, but its "
                               "magnitudes belong to base and that adapter alone",
                           "merge the DoRA first, and the others into the result");
    }
    tensor.deltas.push_back(delta);
    if (tensor.fate == TensorFate::copied) tensor.fate = TensorFate::merged;
  }

  // The side of a tied pair that no adapter changes keeps its values.
  void separate_tied() {
    if (!is_tied_changed_) return;
    const std::size_t head = head_entry();
    const std::size_t embedding = by_name_.at(tied_->embedding);
    PlannedTensor& one = plan_.tensors[embedding];
    PlannedTensor& other = plan_.tensors[head];
    const auto bytes = [&](const PlannedTensor& tensor) {
      return sources_.adapters[tensor.saved_by].file().bytes(*tensor.saved);
    };
    const bool both_saved = one.saved != nullptr && other.saved != nullptr && one.deltas.empty() &&
                            other.deltas.empty();
    if (both_saved && one.saved->dtype == other.saved->dtype && !tied_->head_is_stored &&
        std::ranges::equal(bytes(one), bytes(other))) {
      plan_.tensors.erase(plan_.tensors.begin() + static_cast<std::ptrdiff_t>(head));
      return;
    }
    plan_.is_untied = true;
  }

  static void set_matrix_sizes(PlannedTensor& tensor);

  [[noreturn]] void fail_unmatched(const Adapter& adapter, const std::string& name) const {
    throw_unmatched(
        adapter, name,
        mergeable_names(sources_.base, sources_.tensors, sources_.architecture, sources_.config));
  }

  const MergeSources& sources_;
  const MergeRules& rules_;
  std::optional<TiedEmbeddings> tied_;
  bool is_tied_changed_ = false;
  MergePlan plan_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, std::string> aliases_;
  std::vector<const TensorSpec*> specs_;  // one an entry
  ExpertTable experts_;
};

void Planner::set_matrix_sizes(PlannedTensor& tensor) {
  const Shape& shape = tensor.shape;
  const bool has_experts =
      shape.rank() == 3 &&
      std::any_of(tensor.deltas.begin(), tensor.deltas.end(), [](const PlannedDelta& delta) {
        return delta.module->kind == AdapterKind::experts;
      });
  tensor.n_matrices = has_experts ? shape.size(0) : 1;
  tensor.rows = shape.rank() < 2 ? 1 : shape.size(has_experts ? 1 : 0);
  const Index parts = tensor.n_matrices * tensor.rows;
  tensor.columns = parts == 0 ? 0 : shape.count() / parts;
}

}  // namespace

std::string_view to_string(TensorFate fate) {
  switch (fate) {
    case TensorFate::copied:
      return "copied";
    case TensorFate::converted:
      return "converted";
    case TensorFate::merged:
      return "merged";
    case TensorFate::replaced:
      return "replaced";
    case TensorFate::added:
      return "added";
  }
  return "";
}

std::vector<std::string> mergeable_names(const Checkpoint& base,
                                         const std::vector<LogicalTensor>& tensors,
                                         const Architecture* architecture, const Config* config) {
  std::vector<std::string> names;
  for (const LogicalTensor& tensor : tensors) {
    names.push_back(tensor.is_quantized ? tensor.name : base.tensors()[tensor.values].stored->name);
  }
  const auto tied = tied_embeddings(base, tensors, architecture, config);
  const auto aliases = class_aliases(names, tied, config);
  if (tied && !tied->head_is_stored) names.push_back(tied->head);
  for (const auto& entry : aliases) names.push_back(entry.first);
  return names;
}

MergePlan plan_merge(const MergeSources& sources, const MergeRules& rules) {
  check_scales(sources.base, sources.tensors);
  return Planner(sources, rules).plan();
}

}  // namespace eckart

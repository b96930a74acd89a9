#include "eckart/lora/extract_decisions.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/lora/adapter_parts.h"
#include "eckart/lora/extract_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace eckart {
namespace {

using Modules = std::map<std::string, std::vector<PlannedExtract*>>;

// Decides the fate of tensors that have changed.
class Decisions {
 public:
  Decisions(ExtractPlan& plan, const ExtractRules& rules)
      : plan_(plan), tensors_(plan.tensors), rules_(rules) {
    for (PlannedExtract& tensor : tensors_) modules_[tensor.module].push_back(&tensor);
    for (const auto& entry : modules_) {
      if (const auto stack = detail::expert_stack(entry.first); !stack.empty()) {
        stacks_.emplace(stack);
      }
    }
    look_how_matrices_lie();
  }

  void run() {
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate == ExtractFate::low_rank && tensor.shape.rank() >= 2) decide_matrix(tensor);
    }
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate == ExtractFate::low_rank && tensor.shape.rank() < 2) decide_vector(tensor);
    }
    drop_what_is_taken_for_experts();
    complete_stacks();
    complete_saved_modules();
    drop_biases_beside_what_takes_none();
    keep_one_module();
  }

 private:
  static void skip(PlannedExtract& tensor, const std::string& reason) {
    tensor.fate = ExtractFate::skipped;
    tensor.reason = reason;
  }

  bool is_for_peft() const { return rules_.consumer == Consumer::any; }

  std::string takes_no(const std::string& what) const {
    return std::string(to_string(rules_.consumer)) + " takes no " + what;
  }

  // PEFT replaces modules whole; of one that holds others it would copy them all.
  bool has_children(const std::string& module) const {
    const std::string begin = module + ".";
    const auto next = modules_.lower_bound(begin);
    return module.empty() || (next != modules_.end() && next->first.starts_with(begin));
  }

  void save(PlannedExtract& tensor, const std::string& reason) {
    if (!is_for_peft()) return skip(tensor, takes_no("modules_to_save"));
    if (has_children(tensor.module)) {
      return skip(tensor, "a parameter beside other modules, which PEFT can't save by itself");
    }
    tensor.fate = ExtractFate::full;
    tensor.reason = reason;
  }

  // The number of elements of the bias beside a matrix that no family's table knows; 0: none.
  Index bias_beside(const PlannedExtract& tensor) const {
    if (tensor.spec != nullptr || tensor.parameter != "weight" || tensor.shape.rank() != 2)
      return 0;
    for (const PlannedExtract* other : modules_.at(tensor.module)) {
      if (other->parameter == "bias" && other->shape.rank() == 1) return other->shape.size(0);
    }
    return 0;
  }

  // A bias has an element for each output: beside a matrix that is not square it says which axis
  // they are.
  void look_how_matrices_lie() {
    for (const PlannedExtract& tensor : tensors_) {
      const Index n = bias_beside(tensor);
      if (n == 0 || tensor.shape.size(0) == tensor.shape.size(1)) continue;
      any_output_first_ = any_output_first_ || tensor.shape.size(0) == n;
      any_input_first_ = any_input_first_ || tensor.shape.size(1) == n;
    }
  }

  // Of a family without a table: as the bias says, of a square matrix as the others lie.
  bool is_input_first(const PlannedExtract& tensor) const {
    if (tensor.spec != nullptr) return tensor.spec->input_first;
    const Index n = bias_beside(tensor);
    if (tensor.shape.rank() != 2 || (n == 0 && !any_input_first_)) return false;
    const bool is_square = tensor.shape.size(0) == tensor.shape.size(1);
    if (!is_square) return n != 0 ? tensor.shape.size(0) != n && tensor.shape.size(1) == n : false;
    if (!any_input_first_ || n == 0) return false;
    if (!any_output_first_) return true;
    throw_argument_error(
        "extract: " + printable(tensor.name) +
            " is square, and of the model's other matrices some are stored input x output: nothing "
            "says how this one lies",
        "a config.json with the model_type of a known family beside the base does");
  }

  void decide_matrix(PlannedExtract& tensor) {
    const bool is_a_table = is_table(tensor);
    if (is_a_table || is_head(tensor)) return decide_table(tensor, is_a_table);
    if (tensor.pair.base == nullptr) return save(tensor, "not in the base");
    const Shape& shape = tensor.shape;
    const bool names_expert = tensor.spec != nullptr
                                  ? tensor.spec->shape.find_axis("expert") == Index{0}
                                  : tensor.name.find("expert") != std::string::npos;
    tensor.is_input_first = is_input_first(tensor);
    if (shape.rank() == 3 && names_expert) {
      tensor.kind = AdapterKind::experts;
      if (!is_for_peft()) skip(tensor, takes_no("fused experts"));
    } else if (tensor.parameter != "weight") {
      skip(tensor, "a matrix that is no module's weight, which PEFT has no LoRA for");
    } else if (shape.rank() > 2) {
      tensor.kind = AdapterKind::convolution;
      if (shape.rank() > 5) skip(tensor, "a convolution of more than three dimensions");
      if (!is_for_peft()) skip(tensor, takes_no("convolutions"));
    }
  }

  void decide_table(PlannedExtract& tensor, bool is_a_table) {
    if (is_a_table) tensor.kind = AdapterKind::embedding;
    const bool has_other_rows =
        tensor.pair.base == nullptr || !same_sizes(tensor.pair.base->shape, tensor.shape);
    if (!is_for_peft()) {
      skip(tensor, "left out for " + std::string(to_string(rules_.consumer)) +
                       ", which takes linear layers alone");
    } else if (rules_.tables == TableRule::skip) {
      skip(tensor, "embeddings and head are left out, as asked");
    } else if (has_other_rows || rules_.tables == TableRule::save || tensor.parameter != "weight") {
      save(tensor, has_other_rows ? "its rows are not the base's" : "embeddings are saved whole");
    }
  }

  void decide_vector(PlannedExtract& tensor) {
    PlannedExtract* weight = nullptr;
    for (PlannedExtract* other : modules_.at(tensor.module)) {
      if (other->parameter == "weight" && other->shape.rank() >= 2) weight = other;
    }
    const bool is_of_matrix = tensor.parameter == "bias" && weight != nullptr;
    if (!is_of_matrix) {
      if (rules_.norms) return save(tensor, "small, saved whole");
      return skip(tensor, "norms are left out, as asked");
    }
    if (weight->fate == ExtractFate::full) return save(tensor, "saved with its module");
    if (!rules_.biases) return skip(tensor, "biases are left out, as asked");
    if (!is_for_peft()) return skip(tensor, takes_no("lora_bias"));
    if (tensor.pair.base == nullptr) return skip(tensor, "a bias that the base's layer has not");
    if (weight->fate == ExtractFate::skipped) return skip(tensor, "its matrix is left out");
    tensor.fate = ExtractFate::bias;
    tensor.reason = "lora_bias";
    if (weight->fate != ExtractFate::unchanged) return;
    weight->fate = ExtractFate::low_rank;
    weight->reason = "unchanged, a zero LoRA that carries the bias";
    weight->is_input_first = is_input_first(*weight);
    if (weight->shape.rank() > 2) weight->kind = AdapterKind::convolution;
  }

  bool is_router(const std::string& module) const {
    constexpr std::string_view gate = ".gate";
    if (!module.ends_with(gate)) return false;
    return stacks_.count(module.substr(0, module.size() - gate.size()) + ".experts") != 0;
  }

  // Where files have a matrix an expert, PEFT takes every module called as one of theirs for one.
  void drop_what_is_taken_for_experts() {
    constexpr std::array<std::string_view, 3> taken = {".gate_proj", ".up_proj", ".down_proj"};
    if (!is_for_peft() || stacks_.empty()) return;
    bool any = false;
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate != ExtractFate::low_rank || tensor.kind != AdapterKind::linear ||
          !detail::expert_stack(tensor.module).empty()) {
        continue;
      }
      any = any || std::any_of(taken.begin(), taken.end(), [&](std::string_view name) {
              if (!tensor.module.ends_with(name)) return false;
              skip(tensor, "PEFT takes a module of this name for an expert's");
              return true;
            });
    }
    if (!any) return;
    plan_.notes.push_back(
        "beside experts PEFT loads no LoRA of other modules that are called gate_proj, up_proj or "
        "down_proj: they are left out");
  }

  // transformers holds the experts of a layer in one parameter: PEFT stacks their factors, and needs
  // all of them, of one rank, and of the router, too.
  void complete_stacks() {
    if (!is_for_peft()) return;
    std::set<std::string, std::less<>> changed;
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate != ExtractFate::low_rank || tensor.parameter != "weight") continue;
      const std::string_view stack = detail::expert_stack(tensor.module);
      if (!stack.empty()) changed.emplace(stack);
      tensor.is_stacked = !stack.empty() || is_router(tensor.module);
    }
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.is_stacked || tensor.parameter != "weight" ||
          changed.count(detail::expert_stack(tensor.module)) == 0) {
        continue;
      }
      tensor.is_stacked = true;
      tensor.is_zero = true;
      if (tensor.fate != ExtractFate::unchanged) continue;
      tensor.fate = ExtractFate::low_rank;
      tensor.reason = "unchanged, a zero LoRA, since PEFT stacks all experts of a layer";
    }
  }

  // PEFT takes each module whose name ends as the saved one's, be it only a part of a word, and
  // loads every parameter of it.
  void complete_saved_modules() {
    for (auto& [module, members] : modules_) {
      if (!is_saved(members)) continue;
      const std::string other = what_keeps_from_saving(module);
      if (other.empty()) continue;
      for (PlannedExtract* member : members) {
        if (member->norms.is_same || member->norms.is_rounded) {
          member->fate = ExtractFate::unchanged;
          member->reason.clear();
        } else {
          skip(*member, "PEFT, saving it, would save " + printable(other) + " too");
        }
      }
    }
    std::set<std::string> saved;
    for (const auto& [module, members] : modules_) {
      if (is_saved(members)) saved.insert(module);
    }
    for (auto& [module, members] : modules_) {
      for (const std::string& name : saved) {
        if (module == name || !module.ends_with(name)) continue;
        for (PlannedExtract* member : members) {
          if (member->fate == ExtractFate::full) continue;
          member->fate = ExtractFate::full;
          member->reason = "saved with " + name + ", since its name ends so";
        }
      }
    }
    complete_members();
  }

  static bool is_saved(const std::vector<PlannedExtract*>& members) {
    return std::any_of(members.begin(), members.end(),
                       [](const auto* member) { return member->fate == ExtractFate::full; });
  }

  // A module whose name ends as this one's and that can't be saved: it has a LoRA, or holds others.
  std::string what_keeps_from_saving(const std::string& module) const {
    for (const auto& [other, members] : modules_) {
      if (other == module || !other.ends_with(module)) continue;
      const bool has_matrix = std::any_of(members.begin(), members.end(), [](const auto* member) {
        return member->shape.rank() >= 2 && member->fate != ExtractFate::full;
      });
      if (has_matrix || has_children(other)) return other;
    }
    return {};
  }

  void complete_members() {
    for (auto& [module, members] : modules_) {
      if (!is_saved(members)) continue;
      for (PlannedExtract* member : members) {
        if (member->fate == ExtractFate::full) continue;
        member->fate = ExtractFate::full;
        member->reason = "saved with its module";
      }
    }
  }

  void drop_biases_beside_what_takes_none() {
    const char* what = nullptr;
    for (const PlannedExtract& tensor : tensors_) {
      if (tensor.fate != ExtractFate::low_rank) continue;
      if (tensor.kind == AdapterKind::experts) what = "target_parameters";
      if (tensor.kind == AdapterKind::embedding) what = "a LoRA of embeddings";
    }
    if (what == nullptr) return;
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate == ExtractFate::bias) {
        skip(tensor, std::string("PEFT has no lora_bias beside ") + what);
      } else if (tensor.fate == ExtractFate::low_rank && tensor.norms.difference == 0 &&
                 !tensor.is_zero) {
        tensor.fate = ExtractFate::unchanged;
        tensor.reason.clear();
      }
    }
  }

  // PEFT loads no adapter without a LoRA, be it of zeros.
  void keep_one_module() {
    const auto has = [&](ExtractFate fate) {
      return std::any_of(tensors_.begin(), tensors_.end(),
                         [&](const PlannedExtract& tensor) { return tensor.fate == fate; });
    };
    if (has(ExtractFate::low_rank)) return;
    if (!has(ExtractFate::full)) {
      throw_argument_error(
          "extract: everything that has changed is left out, so there is nothing to "
          "extract",
          "let more in: --include, --exclude, --embeddings, --norms, --biases, --for");
    }
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate != ExtractFate::unchanged || tensor.shape.rank() != 2 ||
          tensor.parameter != "weight" || is_table(tensor) || is_head(tensor)) {
        continue;
      }
      tensor.is_input_first = is_input_first(tensor);
      tensor.fate = ExtractFate::low_rank;
      tensor.reason = "unchanged, a zero LoRA, since PEFT loads no adapter without one";
      return;
    }
    throw_argument_error(
        "extract: no matrix of the model can have a LoRA, but PEFT loads no adapter "
        "without one");
  }

  ExtractPlan& plan_;
  std::vector<PlannedExtract>& tensors_;
  const ExtractRules& rules_;
  Modules modules_;
  std::set<std::string, std::less<>>
      stacks_;  // `….mlp.experts`, where each has matrices of its own
  bool any_output_first_ = false;
  bool any_input_first_ = false;
};

}  // namespace

void decide_fates(ExtractPlan& plan, const ExtractRules& rules) { Decisions(plan, rules).run(); }

}  // namespace eckart

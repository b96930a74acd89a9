#include "eckart/lora/extract_decisions.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/lora/adapter_parts.h"
#include "eckart/lora/extract_names.h"
#include "eckart/model/class_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
    for (const PlannedExtract& tensor : tensors_) {
      const bool is_fused = tensor.shape.rank() == 3 && names_expert(tensor);
      if (is_fused) fused_.insert(parent_of(tensor.module));
    }
    look_how_matrices_lie();
  }

  void run() {
    save_heads_of_task();
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate == ExtractFate::low_rank && tensor.shape.rank() >= 2) decide_matrix(tensor);
    }
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate == ExtractFate::low_rank && tensor.shape.rank() < 2) decide_vector(tensor);
    }
    drop_what_is_taken_for_experts();
    complete_stacks();
    complete_tied_head();
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

  static std::string parent_of(const std::string& module) {
    const std::size_t dot = module.rfind('.');
    return dot == std::string::npos ? std::string() : module.substr(0, dot);
  }

  static std::string last_part(const std::string& module) {
    return module.substr(module.rfind('.') + 1);  // of one part alone: npos + 1 is 0
  }

  static bool names_expert(const PlannedExtract& tensor) {
    return tensor.spec != nullptr ? tensor.spec->shape.find_axis("expert") == Index{0}
                                  : tensor.name.find("expert") != std::string::npos;
  }

  // The outermost module of the name that PEFT saves whole because of the task; empty: none.
  std::string head_of_task(const std::string& module) const {
    for (std::size_t end = module.find('.');; end = module.find('.', end + 1)) {
      const std::string_view begin = std::string_view(module).substr(0, end);
      for (const std::string_view head : heads_of_task(plan_.task_type)) {
        if (begin.ends_with(head)) return std::string(begin);
      }
      if (end == std::string::npos) return {};
    }
  }

  // Whatever has changed of it. Without all of it PEFT would miss some: then the task is not named.
  void save_heads_of_task() {
    if (!is_for_peft()) return;
    std::vector<std::pair<PlannedExtract*, std::string>> heads;
    for (PlannedExtract& tensor : tensors_) {
      std::string head = head_of_task(tensor.module);
      if (!head.empty()) heads.emplace_back(&tensor, std::move(head));
    }
    const bool is_part_left_out = std::any_of(heads.begin(), heads.end(), [](const auto& head) {
      return head.first->fate == ExtractFate::skipped;
    });
    if (is_part_left_out) {
      plan_.notes.push_back("with task_type " + plan_.task_type +
                            " PEFT would load the head, of which parts are left out: no task_type "
                            "is written");
      plan_.task_type.clear();
      return;
    }
    for (auto& [tensor, head] : heads) {
      tensor->fate = ExtractFate::full;
      tensor->reason = "PEFT saves it whole with task_type " + plan_.task_type;
      tensor->saved_module = head;
    }
  }

  // Modules whose classes are no plain layers, or whose matrices are used without their module, so
  // that a LoRA on them would not be loaded, or not be run.
  std::string why_no_lora(const PlannedExtract& tensor) const {
    const std::string last = last_part(tensor.module), parent = parent_of(tensor.module);
    const bool is_router_name = last == "router" || last == "gate";
    if (last == "router" || (is_router_name && fused_.count(parent) != 0)) {
      if (!is_router(tensor.module)) return "a router, whose class PEFT has no LoRA for";
    }
    if (has_parameter(parent, "A_log")) {
      const bool is_mamba = has_parameter(parent, "D");
      if (last == "conv1d" || last == "x_proj" || last == "dt_proj" ||
          (is_mamba && last == "out_proj")) {
        return "a state-space layer uses it without its module, so that a LoRA would not be run";
      }
    }
    const bool is_convolution = tensor.shape.rank() > 2 && !names_expert(tensor);
    if (is_convolution && tensor.shape.size(1) == 1 && tensor.shape.size(0) > 1) {
      return "a convolution of groups, whose ranks PEFT does not let be chosen";
    }
    // Whisper and its kin count the frames that are left by `self.conv1.stride`.
    const bool is_frontend = (last == "conv1" || last == "conv2") && last_part(parent) == "encoder";
    if (is_convolution && is_frontend) {
      return "a convolution whose stride its model asks for, which a LoRA does not have";
    }
    return {};
  }

  bool has_parameter(const std::string& module, std::string_view parameter) const {
    const auto found = modules_.find(module);
    return found != modules_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](const auto* member) { return member->parameter == parameter; });
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
    tensor.is_input_first = is_input_first(tensor);
    if (shape.rank() == 3 && names_expert(tensor)) {
      tensor.kind = AdapterKind::experts;
      if (!is_for_peft()) skip(tensor, takes_no("fused experts"));
    } else if (tensor.parameter != "weight") {
      skip(tensor, "a matrix that is no module's weight, which PEFT has no LoRA for");
    } else if (tensor.module.empty()) {
      skip(tensor,
           "a matrix of the model itself and of none of its modules, which PEFT has no LoRA "
           "for");
    } else if (shape.rank() > 2) {
      tensor.kind = AdapterKind::convolution;
      if (shape.rank() > 5) skip(tensor, "a convolution of more than three dimensions");
      if (!is_for_peft()) skip(tensor, takes_no("convolutions"));
    }
    if (tensor.fate != ExtractFate::low_rank || tensor.kind == AdapterKind::experts) return;
    if (const std::string why = why_no_lora(tensor); !why.empty()) save(tensor, why);
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
    } else if (is_a_table && !is_plain_table(tensor)) {
      save(tensor, "a table whose class may be none that a LoRA fits, saved whole");
    }
  }

  // The bias of a tied head is a parameter of the head: PEFT saves both or none.
  void complete_tied_head() {
    PlannedExtract* table = nullptr;
    PlannedExtract* bias = nullptr;
    for (PlannedExtract& tensor : tensors_) {
      if (!tensor.tied_module.empty()) table = &tensor;
      if (tensor.is_head_bias) bias = &tensor;
    }
    if (bias == nullptr || table == nullptr) return;
    const bool is_head_saved = table->fate == ExtractFate::full;
    const bool is_bias_wanted = bias->fate == ExtractFate::full;
    if (is_bias_wanted && table->fate == ExtractFate::unchanged) {
      table->fate = ExtractFate::full;
      table->reason = "saved with the head's bias";
    } else if (is_bias_wanted && !is_head_saved) {
      skip(*bias, "the bias of a head that is not saved whole");
    } else if (is_head_saved) {
      bias->fate = ExtractFate::full;
      bias->reason = "saved with the head";
    }
  }

  void decide_vector(PlannedExtract& tensor) {
    PlannedExtract* weight = nullptr;
    for (PlannedExtract* other : modules_.at(tensor.module)) {
      if (other->parameter == "weight" && other->shape.rank() >= 2) weight = other;
    }
    if (tensor.is_head_bias) return decide_head_bias(tensor);
    const bool is_of_matrix = tensor.parameter == "bias" && weight != nullptr;
    if (!is_of_matrix) {
      if (rules_.norms) return save(tensor, "small, saved whole");
      return skip(tensor, "norms are left out, as asked");
    }
    if (weight->fate == ExtractFate::full) return save(tensor, "saved with its module");
    if (weight->fate == ExtractFate::unchanged && !why_no_lora(*weight).empty()) {
      return save(tensor, "small, saved whole with its module");
    }
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

  void decide_head_bias(PlannedExtract& tensor) {
    if (!is_for_peft()) return skip(tensor, takes_no("modules_to_save"));
    if (!rules_.biases) return skip(tensor, "biases are left out, as asked");
    tensor.fate = ExtractFate::full;
    tensor.reason = "the head's bias, saved with it";
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
    return std::any_of(members.begin(), members.end(), [](const auto* member) {
      return member->fate == ExtractFate::full && !member->is_head_bias;
    });
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
          tensor.parameter != "weight" || tensor.module.empty() || is_table(tensor) ||
          is_head(tensor) || !why_no_lora(tensor).empty() || is_in_saved(tensor.module)) {
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

  // Whether PEFT would save the module, too, as one whose name ends as a saved one's.
  bool is_in_saved(const std::string& module) const {
    return std::any_of(tensors_.begin(), tensors_.end(), [&](const PlannedExtract& tensor) {
      const std::vector<SavedName> names = saved_names(tensor);
      return tensor.fate == ExtractFate::full &&
             std::any_of(names.begin(), names.end(),
                         [&](const SavedName& one) { return module.ends_with(one.module); });
    });
  }

  ExtractPlan& plan_;
  std::vector<PlannedExtract>& tensors_;
  const ExtractRules& rules_;
  Modules modules_;
  std::set<std::string, std::less<>>
      stacks_;                   // `….mlp.experts`, where each has matrices of its own
  std::set<std::string> fused_;  // `….mlp`, whose experts are one tensor
  bool any_output_first_ = false;
  bool any_input_first_ = false;
};

}  // namespace

void decide_fates(ExtractPlan& plan, const ExtractRules& rules) { Decisions(plan, rules).run(); }

}  // namespace eckart

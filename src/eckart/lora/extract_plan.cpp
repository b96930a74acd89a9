#include "eckart/lora/extract_plan.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/lora/extract_names.h"
#include "eckart/model/name_pattern.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

namespace eckart {
namespace {

// Two unrelated models of one size differ by the root of 2 of their norm; training moves weights by
// some percent of it. Halfway, as angles go.
constexpr double unrelated_share = 0.70710678;

using Modules = std::map<std::string, std::vector<PlannedExtract*>>;

// Decides the fate of tensors that have changed.
class Decisions {
 public:
  Decisions(std::vector<PlannedExtract>& tensors, const ExtractRules& rules)
      : tensors_(tensors), rules_(rules) {
    for (PlannedExtract& tensor : tensors) modules_[tensor.module].push_back(&tensor);
  }

  void run() {
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate == ExtractFate::low_rank && tensor.shape.rank() >= 2) decide_matrix(tensor);
    }
    for (PlannedExtract& tensor : tensors_) {
      if (tensor.fate == ExtractFate::low_rank && tensor.shape.rank() < 2) decide_vector(tensor);
    }
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

  void decide_matrix(PlannedExtract& tensor) {
    const bool is_a_table = is_table(tensor);
    if (is_a_table || is_head(tensor)) return decide_table(tensor, is_a_table);
    if (tensor.pair.base == nullptr) return save(tensor, "not in the base");
    const Shape& shape = tensor.shape;
    const bool names_expert = tensor.spec != nullptr
                                  ? tensor.spec->shape.find_axis("expert") == Index{0}
                                  : tensor.name.find("expert") != std::string::npos;
    tensor.is_input_first = tensor.spec != nullptr && tensor.spec->input_first;
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
  }

  // PEFT loads every parameter of a module that it saves.
  void complete_saved_modules() {
    for (auto& [module, members] : modules_) {
      const bool is_saved = std::any_of(members.begin(), members.end(), [](const auto* member) {
        return member->fate == ExtractFate::full;
      });
      for (PlannedExtract* member : members) {
        if (!is_saved || member->fate == ExtractFate::full) continue;
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
      } else if (tensor.fate == ExtractFate::low_rank && tensor.norms.difference == 0) {
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
      tensor.is_input_first = tensor.spec != nullptr && tensor.spec->input_first;
      tensor.fate = ExtractFate::low_rank;
      tensor.reason = "unchanged, a zero LoRA, since PEFT loads no adapter without one";
      return;
    }
    throw_argument_error(
        "extract: no matrix of the model can have a LoRA, but PEFT loads no adapter "
        "without one");
  }

  std::vector<PlannedExtract>& tensors_;
  const ExtractRules& rules_;
  Modules modules_;
};

bool fits_any(const PlannedExtract& tensor, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return matches_pattern(tensor.name, pattern) || matches_pattern(tensor.module, pattern) ||
           matches_pattern(tensor.pair.tuned->name, pattern);
  });
}

void check_patterns(const std::vector<PlannedExtract>& tensors, const ExtractRules& rules) {
  for (const std::vector<std::string>* patterns : {&rules.include, &rules.exclude}) {
    for (const std::string& pattern : *patterns) {
      const bool fits = std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
        return fits_any(tensor, {pattern});
      });
      if (fits) continue;
      throw_argument_error("extract: '" + printable(pattern) + "' fits no tensor of the model",
                           "* stands for any letters: '*" + printable(pattern) +
                               "*'; the first tensor is " + printable(tensors.front().name));
    }
  }
}

// Norms of all; what is not asked for or has not changed is decided at once.
void compare_all(ExtractPlan& plan, const ExtractRules& rules,
                 const std::function<void(Index, Index)>& on_progress) {
  Index elements = 0;
  for (const PlannedExtract& tensor : plan.tensors) elements += tensor.shape.count();
  for (PlannedExtract& tensor : plan.tensors) {
    tensor.norms = compare(tensor.pair);
    plan.base_norm = std::hypot(plan.base_norm, tensor.norms.base);
    plan.difference_norm = std::hypot(plan.difference_norm, tensor.norms.difference);
    tensor.fate = ExtractFate::low_rank;
    if (tensor.norms.is_same || tensor.norms.is_rounded) {
      tensor.fate = ExtractFate::unchanged;
      if (tensor.norms.is_rounded) {
        tensor.reason = "but for rounding to " + std::string(to_string(tensor.pair.tuned->dtype));
      }
    } else if ((!rules.include.empty() && !fits_any(tensor, rules.include)) ||
               fits_any(tensor, rules.exclude)) {
      tensor.fate = ExtractFate::skipped;
      tensor.reason = fits_any(tensor, rules.exclude) ? "excluded" : "not included";
    }
    if (on_progress) on_progress(tensor.shape.count(), elements);
  }
}

void check_relation(const ExtractPlan& plan, const ExtractRules& rules) {
  const bool has_changed = std::any_of(
      plan.tensors.begin(), plan.tensors.end(),
      [](const PlannedExtract& tensor) { return tensor.fate != ExtractFate::unchanged; });
  if (!has_changed) {
    throw_argument_error(
        "extract: base and tuned model are the same, so there is nothing to extract",
        "check that both paths are the ones that were meant");
  }
  // What only the tuned model has says nothing of how far the rest has moved.
  double base = 0, difference = 0;
  for (const PlannedExtract& tensor : plan.tensors) {
    if (tensor.pair.base == nullptr) continue;
    base = std::hypot(base, tensor.norms.base);
    difference = std::hypot(difference, tensor.norms.difference);
  }
  if (rules.allow_unrelated || difference < unrelated_share * base) return;
  char share[32];
  std::snprintf(share, sizeof share, "%.3g", difference / base);
  throw_argument_error(
      "extract: the difference is " + std::string(share) +
          " times as large as the base's weights, as between models that are not related, but a "
          "tuned model is near its base",
      "check that this is the base it was made from; --allow-unrelated goes on all the same");
}

Dtype output_dtype(Dtype stored) {
  switch (stored) {
    case Dtype::f16:
      return Dtype::f16;
    case Dtype::f32:
    case Dtype::f64:
      return Dtype::f32;
    default:
      return Dtype::bf16;  // F8 too, whose numbers are scaled
  }
}

Dtype common_dtype(const std::vector<PlannedExtract>& tensors) {
  std::array<Index, n_dtypes> counts{};
  for (const PlannedExtract& tensor : tensors) {
    if (tensor.shape.rank() < 2) continue;
    counts[static_cast<std::size_t>(output_dtype(tensor.pair.tuned->dtype))] +=
        tensor.shape.count();
  }
  return static_cast<Dtype>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

}  // namespace

std::string_view to_string(Consumer consumer) {
  switch (consumer) {
    case Consumer::any:
      return "PEFT";
    case Consumer::vllm:
      return "vLLM";
    case Consumer::llama_cpp:
      return "llama.cpp";
  }
  return {};
}

std::string_view to_string(ExtractFate fate) {
  switch (fate) {
    case ExtractFate::low_rank:
      return "low-rank";
    case ExtractFate::full:
      return "full";
    case ExtractFate::bias:
      return "bias";
    case ExtractFate::unchanged:
      return "unchanged";
    case ExtractFate::skipped:
      return "skipped";
  }
  return {};
}

ExtractPlan plan_extract(const ExtractSources& sources, const ExtractRules& rules,
                         const std::function<void(Index, Index)>& on_progress) {
  check_scales(sources.base, sources.base_tensors);
  check_scales(sources.tuned, sources.tuned_tensors);
  ExtractPlan plan;
  plan.tensors = pair_tensors(sources, plan);
  if (plan.tensors.empty()) {
    throw_argument_error("extract: " + printable_path(sources.tuned.path()) +
                         " holds no parameters");
  }
  check_patterns(plan.tensors, rules);
  compare_all(plan, rules, on_progress);
  check_relation(plan, rules);
  Decisions(plan.tensors, rules).run();
  plan.dtype = common_dtype(plan.tensors);
  return plan;
}

}  // namespace eckart

#include "eckart/lora/extract_plan.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/lora/extract_buffers.h"
#include "eckart/lora/extract_decisions.h"
#include "eckart/lora/extract_names.h"
#include "eckart/model/class_names.h"
#include "eckart/model/name_pattern.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace eckart {
namespace {

// Unrelated matrices of one size differ by the root of 2 of their norm; training moves weights by
// some percent of it. Halfway, as angles go.
constexpr double unrelated_share = 0.70710678;

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
    // Rounding alone is no change: what an adapter leaves of it is no error of the adapter.
    if (tensor.fate != ExtractFate::unchanged) {
      plan.difference_norm = std::hypot(plan.difference_norm, tensor.norms.difference);
    }
    if (on_progress) on_progress(tensor.shape.count(), elements);
  }
}

// What most matrices have moved by, of their own norm: one that is large in both models, or new in
// one, says nothing of the others. Rows that only one has do not count.
double median_difference(const ExtractPlan& plan) {
  std::vector<double> shares, of_vectors;
  for (const PlannedExtract& tensor : plan.tensors) {
    if (tensor.pair.base == nullptr || tensor.norms.base == 0) continue;
    (tensor.shape.rank() >= 2 ? shares : of_vectors)
        .push_back(tensor.norms.shared_difference / tensor.norms.base);
  }
  if (shares.empty()) shares = std::move(of_vectors);
  if (shares.empty()) return 0;
  const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
  std::nth_element(shares.begin(), middle, shares.end());
  return *middle;
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
  const double share = median_difference(plan);
  if (rules.allow_unrelated || share < unrelated_share) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", share);
  throw_argument_error(
      "extract: half of the matrices have moved by " + std::string(text) +
          " times their norm or more, as between models that are not related, but a tuned model is "
          "near its base",
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

std::vector<SavedName> saved_names(const PlannedExtract& tensor) {
  std::vector<SavedName> found;
  if (!tensor.is_head_bias) {
    found.push_back(
        {tensor.saved_module.empty() ? tensor.module : tensor.saved_module, tensor.name});
  }
  if (!tensor.tied_module.empty()) {
    found.push_back({tensor.tied_module, tensor.tied_module + "." + tensor.parameter});
  }
  for (const std::string& name : tensor.shared_names) {
    found.push_back({name.substr(0, name.rfind('.')), name});
  }
  return found;
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
  plan.task_type = peft_task(sources.config);
  decide_fates(plan, rules);
  plan.dtype = common_dtype(plan.tensors);
  add_changed_buffers(sources, plan.tensors);
  return plan;
}

}  // namespace eckart

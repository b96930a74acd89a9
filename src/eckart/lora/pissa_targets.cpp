#include "eckart/lora/pissa_targets.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/count.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/name_pattern.h"
#include "eckart/model/tensor_names.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace eckart::detail {
namespace {

constexpr std::string_view ending = ".weight";

bool fits(const std::string& tensor, const std::string& module, const std::string& pattern) {
  return matches_pattern(tensor, pattern) || matches_pattern(module, pattern);
}

class Chooser {
 public:
  Chooser(const PissaBase& base, const PissaOptions& options) : base_(base), options_(options) {
    if (base.architecture != nullptr) matches_ = match_specs(*base.architecture, *base.tensors);
  }

  std::vector<PissaTarget> run() {
    std::vector<PissaTarget> targets;
    for (std::size_t i = 0; i < base_.tensors->size(); ++i) {
      const LogicalTensor& tensor = (*base_.tensors)[i];
      if (!std::string_view(tensor.name).ends_with(ending)) continue;
      const std::string module = tensor.name.substr(0, tensor.name.size() - ending.size());
      const TensorSpec* const spec = spec_of(i);
      if (!is_chosen(tensor, module, spec)) continue;
      targets.push_back(target(tensor, module, spec));
    }
    check_patterns();
    if (targets.empty()) {
      throw_argument_error("pissa: the model has no matrix to split",
                           "--include PATTERN chooses matrices by their names");
    }
    std::stable_sort(targets.begin(), targets.end(),
                     [](const auto& a, const auto& b) { return natural_less(a.module, b.module); });
    return targets;
  }

 private:
  const TensorSpec* spec_of(std::size_t tensor) const {
    if (base_.architecture == nullptr || matches_.of[tensor].spec < 0) return nullptr;
    return &base_.architecture->tensors[static_cast<std::size_t>(matches_.of[tensor].spec)];
  }

  bool is_chosen(const LogicalTensor& tensor, const std::string& module, const TensorSpec* spec) {
    const auto any = [&](const std::vector<std::string>& patterns) {
      return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        return fits(tensor.name, module, pattern);
      });
    };
    if (any(options_.exclude)) return false;
    if (!options_.include.empty()) return any(options_.include);
    if (tensor.kind != TensorKind::parameter || tensor.shape.rank() != 2) return false;
    if (!why_unreadable(tensor).empty()) return false;
    return spec != nullptr
               ? is_layer_matrix(*spec)
               : base_.architecture == nullptr && !name_template(module).numbers.empty();
  }

  PissaTarget target(const LogicalTensor& tensor, const std::string& module,
                     const TensorSpec* spec) const {
    const auto refuse = [&](const std::string& why) {
      throw_argument_error("pissa: " + printable(tensor.name) + " " + why +
                               ", but PiSSA splits matrices that tokens are multiplied by",
                           "--exclude leaves it as it is");
    };
    if (tensor.shape.rank() != 2) refuse("is " + to_string(tensor.shape));
    if (spec != nullptr && spec->use != Use::per_token && spec->use != Use::per_sequence) {
      refuse("is a table whose rows are looked up");
    }
    if (const std::string why = why_unreadable(tensor); !why.empty()) refuse("is " + why);
    PissaTarget result{.tensor = &tensor, .module = module};
    result.is_input_first = spec != nullptr && spec->input_first;
    result.d_out = tensor.shape.size(result.is_input_first ? 1 : 0);
    result.d_in = tensor.shape.size(result.is_input_first ? 0 : 1);
    const Index smaller = std::min(result.d_out, result.d_in);
    if (options_.rank > smaller) {
      throw_argument_error(
          fmt::format("pissa: rank is {} and {} is {}, but a rank is at most the smaller side",
                      options_.rank, printable(tensor.name), to_string(tensor.shape)),
          fmt::format("a rank up to {} fits it; --exclude leaves it as it is", smaller));
    }
    return result;
  }

  // A pattern that fits nothing is a mistake that would go unseen.
  void check_patterns() const {
    for (const std::vector<std::string>* patterns : {&options_.include, &options_.exclude}) {
      for (const std::string& pattern : *patterns) {
        const bool any = std::any_of(
            base_.tensors->begin(), base_.tensors->end(), [&](const LogicalTensor& tensor) {
              const std::string_view name = tensor.name;
              return name.ends_with(ending) &&
                     fits(tensor.name, std::string(name.substr(0, name.size() - ending.size())),
                          pattern);
            });
        if (any) continue;
        throw_argument_error("pissa: '" + printable(pattern) + "' fits no matrix of the model",
                             "* stands for any letters: '*" + printable(pattern) + "*'");
      }
    }
  }

  const PissaBase& base_;
  const PissaOptions& options_;
  SpecMatches matches_;
};

}  // namespace

std::vector<PissaTarget> pissa_targets(const PissaBase& base, const PissaOptions& options) {
  check_scales(*base.checkpoint, *base.tensors);
  return Chooser(base, options).run();
}

}  // namespace eckart::detail

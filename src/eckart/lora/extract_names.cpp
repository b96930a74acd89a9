#include "eckart/lora/extract_names.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/lora/tied_embeddings.h"
#include "eckart/model/class_names.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

struct NamedTensor {
  const LogicalTensor* tensor = nullptr;
  const TensorSpec* spec = nullptr;
};
using NamedTensors = std::map<std::string, NamedTensor>;

// Names as the model's class has them: with its prefix, and those of old files replaced.
NamedTensors named(const std::vector<LogicalTensor>& tensors, const Architecture* architecture,
                   std::string_view model_type) {
  NamedTensors result;
  SpecMatches matches;
  if (architecture != nullptr) matches = match_specs(*architecture, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::string name = tensors[i].name;
    const TensorSpec* spec = nullptr;
    if (architecture != nullptr && matches.of[i].spec >= 0) {
      spec = &architecture->tensors[static_cast<std::size_t>(matches.of[i].spec)];
      name = tensor_name(*spec, matches.of[i].layer, matches.of[i].expert);
    } else if (name.starts_with(matches.foreign_prefix)) {
      name.erase(0, matches.foreign_prefix.size());
    }
    result.insert_or_assign(class_name(model_type, name), NamedTensor{&tensors[i], spec});
  }
  return result;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < shown; ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  return names.size() > shown ? text + ", …" : text;
}

std::string counted_tensors(std::size_t n) {
  return std::to_string(n) + (n == 1 ? " tensor" : " tensors");
}

bool is_parameter(const LogicalTensor& tensor) { return tensor.kind == TensorKind::parameter; }

void check_readable(const LogicalTensor& tensor, const Checkpoint& file) {
  if (const std::string why = why_unreadable(tensor); !why.empty()) {
    throw_argument_error("extract: " + printable(tensor.name) + " of " +
                             printable_path(file.path()) + " is " + why +
                             ", but only floating tensors and F8 with its scales can be subtracted",
                         "take the checkpoint that it was quantized from");
  }
  load_weight_rows(file, tensor, 0, 0);  // throws for scales that do not fit
}

class Pairing {
 public:
  Pairing(const ExtractSources& sources, ExtractPlan& plan)
      : sources_(sources),
        plan_(plan),
        model_type_(sources.config == nullptr ? "" : sources.config->model_type()),
        base_(named(sources.base_tensors, sources.architecture, model_type_)),
        tuned_(named(sources.tuned_tensors, sources.architecture, model_type_)) {}

  std::vector<PlannedExtract> run() {
    find_tied();
    find_shared();
    check_missing();
    std::vector<PlannedExtract> tensors;
    for (const auto& [name, tensor] : tuned_) {
      if (name == tied_head_ || !is_parameter(*tensor.tensor)) continue;
      tensors.push_back(pair(name, tensor));
    }
    std::sort(tensors.begin(), tensors.end(),
              [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
    return tensors;
  }

 private:
  // Of a tied model one matrix stands for both, unless training has parted them.
  void find_tied() {
    std::optional<TiedEmbeddings> tied = tied_embeddings(sources_.base, sources_.base_tensors,
                                                         sources_.architecture, sources_.config);
    if (!tied) return;
    const auto canonical = [&](const NamedTensors& all, const std::string& stored) {
      for (const auto& [name, one] : all) {
        if (one.tensor->name == stored || name == stored) return name;
      }
      return class_name(model_type_, stored);
    };
    const std::string embedding = canonical(base_, tied->embedding);
    const std::string head = canonical(base_, tied->head);
    const auto tuned_head = tuned_.find(head);
    const auto tuned_embedding = tuned_.find(embedding);
    if (tuned_embedding == tuned_.end()) return;
    if (tuned_head != tuned_.end() &&
        !is_same(*tuned_head->second.tensor, *tuned_embedding->second.tensor)) {
      const auto base_embedding = base_.find(embedding);
      if (base_embedding == base_.end()) return;
      base_[head] = base_embedding->second;
      plan_.notes.push_back("the base's " + head + " is tied to its " + embedding +
                            ", and the tuned model's is not: load the base with "
                            "tie_word_embeddings false");
      return;
    }
    tied_embedding_ = embedding;
    tied_head_ = head;
    if (tied->head_bias.empty()) return;
    const std::string own = head.substr(0, head.rfind('.')) + ".bias";
    if (tuned_.count(own) == 0) head_bias_ = {own, canonical(base_, tied->head_bias)};
  }

  void find_shared() {
    if (sources_.config == nullptr) return;
    std::set<std::string, std::less<>> names;
    for (const auto& entry : tuned_) names.insert(entry.first);
    shared_ = shared_names(*sources_.config, names);
  }

  bool is_same(const LogicalTensor& a, const LogicalTensor& b) const {
    const WeightPair pair{&sources_.tuned, &a, &sources_.tuned, &b};
    return same_sizes(a.shape, b.shape) && why_unreadable(a).empty() && why_unreadable(b).empty() &&
           compare(pair).is_same;
  }

  void check_missing() const {
    std::vector<std::string> missing;
    for (const auto& [name, tensor] : base_) {
      if (is_parameter(*tensor.tensor) && tuned_.count(name) == 0 && name != tied_head_ &&
          !is_shared(name)) {
        missing.push_back(name);
      }
    }
    if (missing.empty()) return;
    throw_argument_error("extract: " + printable_path(sources_.tuned.path()) + " lacks " +
                             counted_tensors(missing.size()) + " of the base's (" +
                             some_of(missing) + "), but a tuned model has all of them",
                         "it may be another model, an adapter, or a download that was cut off");
  }

  // A copy that only the base stores.
  bool is_shared(const std::string& name) const {
    return std::any_of(shared_.begin(), shared_.end(),
                       [&](const SharedName& one) { return one.name == name; });
  }

  PlannedExtract pair(const std::string& name, const NamedTensor& tuned) {
    PlannedExtract result;
    result.name = name;
    const std::size_t dot = name.rfind('.');
    result.module = dot == std::string::npos ? "" : name.substr(0, dot);
    result.parameter = dot == std::string::npos ? name : name.substr(dot + 1);
    result.shape = tuned.tensor->shape;
    result.spec = tuned.spec;
    result.pair = {&sources_.base, nullptr, &sources_.tuned, tuned.tensor};
    check_readable(*tuned.tensor, sources_.tuned);
    if (name == tied_embedding_) {
      result.tied_module = tied_head_.substr(0, tied_head_.rfind('.'));
    }
    for (const SharedName& one : shared_) {
      if (one.stored == name) result.shared_names.push_back(one.name);
    }
    if (name == head_bias_.stored) {
      result.is_head_bias = true;
      result.shared_names.push_back(head_bias_.name);
    }
    const auto found = base_.find(name);
    if (found == base_.end() || !is_parameter(*found->second.tensor)) return result;
    result.pair.base = found->second.tensor;
    check_readable(*result.pair.base, sources_.base);
    check_shapes(result);
    return result;
  }

  void check_shapes(const PlannedExtract& tensor) {
    const Shape& base = tensor.pair.base->shape;
    if (same_sizes(base, tensor.shape)) return;
    const bool differs_in_rows =
        base.rank() == 2 && tensor.shape.rank() == 2 && base.size(1) == tensor.shape.size(1);
    const std::string sizes =
        sizes_to_string(base) + " in the base and " + sizes_to_string(tensor.shape);
    if (differs_in_rows && (is_table(tensor) || is_head(tensor))) {
      plan_.notes.push_back(
          tensor.name + " is " + sizes + " in the tuned model: call resize_token_embeddings(" +
          std::to_string(tensor.shape.size(0)) + ") on the base before loading the adapter");
      return;
    }
    throw_argument_error("extract: " + printable(tensor.name) + " is " + sizes +
                             " in the tuned model, but only tables of tokens may differ in rows",
                         "base and tuned model must be of one architecture");
  }

  const ExtractSources& sources_;
  ExtractPlan& plan_;
  std::string model_type_;
  NamedTensors base_;
  NamedTensors tuned_;
  std::string tied_embedding_;
  std::string tied_head_;
  SharedName head_bias_;
  std::vector<SharedName> shared_;
};

// Tables whose names do not say that they are some; what is called an embedding is one.
constexpr std::array<std::string_view, 4> tables = {"wte", "wpe", "shared",
                                                    "relative_attention_bias"};

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

std::vector<PlannedExtract> pair_tensors(const ExtractSources& sources, ExtractPlan& plan) {
  return Pairing(sources, plan).run();
}

bool is_head(const PlannedExtract& tensor) {
  if (tensor.spec != nullptr) return tensor.spec->role == Role::w_unembed && !tensor.spec->is_bias;
  return is_head_name(tensor.name);
}

bool is_table(const PlannedExtract& tensor) {
  if (tensor.spec != nullptr) return tensor.spec->use == Use::gather;
  if (tensor.shape.rank() != 2 || is_head(tensor)) return false;
  const std::string_view module = last_part(tensor.module);
  if (module.find("proj") != std::string_view::npos) return false;
  return is_embedding_name(tensor.name) || module.find("embed") != std::string_view::npos ||
         std::find(tables.begin(), tables.end(), module) != tables.end();
}

bool is_plain_table(const PlannedExtract& tensor) {
  return tensor.spec != nullptr || is_embedding_name(tensor.name);
}

}  // namespace eckart

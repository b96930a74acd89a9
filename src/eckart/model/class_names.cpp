#include "eckart/model/class_names.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace eckart {
namespace {

struct Renaming {
  std::string_view model_type;
  std::string_view old_part;
  std::string_view new_part;
  bool is_at_begin = false;
};

// transformers/conversion_mapping.py, of the classes whose files keep their older names; one after
// the other.
constexpr std::array renamings = {
    Renaming{"gpt_neox", "embed_out.", "lm_head.", true},
    Renaming{"vit", "encoder.layer.", "layers."},
    Renaming{"vit", "attention.attention.query", "attention.q_proj"},
    Renaming{"vit", "attention.attention.key", "attention.k_proj"},
    Renaming{"vit", "attention.attention.value", "attention.v_proj"},
    Renaming{"vit", "attention.output.dense", "attention.o_proj"},
    Renaming{"vit", "intermediate.dense", "mlp.fc1"},
    Renaming{"vit", "output.dense", "mlp.fc2"},
};

std::string class_of(const Config& config) {
  const std::vector<std::string> classes = config.architectures();
  return classes.empty() ? std::string() : classes.front();
}

bool any_begins(const std::set<std::string, std::less<>>& names, const std::string& begin) {
  const auto next = names.lower_bound(begin);
  return next != names.end() && next->starts_with(begin);
}

}  // namespace

std::string class_name(std::string_view model_type, std::string_view name) {
  // DeiT's modules are ViT's.
  if (model_type == "deit") model_type = "vit";
  std::string result(name);
  for (const Renaming& one : renamings) {
    if (one.model_type != model_type) continue;
    const std::size_t at = result.find(one.old_part);
    if (at == std::string::npos || (one.is_at_begin && at != 0)) continue;
    result.replace(at, one.old_part.size(), one.new_part);
  }
  return result;
}

std::vector<SharedName> shared_names(const Config& config,
                                     const std::set<std::string, std::less<>>& names) {
  std::vector<SharedName> found;
  for (const std::string prefix : {"", "model."}) {
    const std::string stored = prefix + "shared.weight";
    if (names.count(stored) == 0) continue;
    const auto add = [&](const std::string& name) {
      if (names.count(name) == 0) found.push_back({name, stored});
    };
    for (const std::string side : {"encoder.", "decoder."}) {
      if (any_begins(names, prefix + side)) add(prefix + side + "embed_tokens.weight");
    }
    if (class_of(config).ends_with("ForConditionalGeneration")) add("lm_head.weight");
  }
  return found;
}

std::string peft_task(const Config* config) {
  if (config == nullptr) return {};
  const std::string name = class_of(*config);
  if (name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel")) return "CAUSAL_LM";
  if (name.ends_with("ForSequenceClassification")) return "SEQ_CLS";
  if (name.ends_with("ForTokenClassification")) return "TOKEN_CLS";
  return {};
}

std::vector<std::string_view> heads_of_task(std::string_view task) {
  if (task == "SEQ_CLS" || task == "TOKEN_CLS") return {"classifier", "score"};
  return {};
}

}  // namespace eckart

#include "eckart/lora/tied_embeddings.h"

#include "eckart/model/class_names.h"
#include "eckart/model/match_specs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <set>

namespace eckart {
namespace {

constexpr std::array<std::string_view, 6> embedding_names = {
    "embed_tokens.weight",    "wte.weight",
    "word_embeddings.weight", "embed_in.weight",
    "tok_embeddings.weight",  "backbone.embeddings.weight"};
constexpr std::string_view weight = ".weight";
constexpr std::array<std::string_view, 5> ends_of_language_models = {
    "ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForMaskedLM", "ForPreTraining"};
constexpr std::array<std::string_view, 4> ends_of_others = {"Model", "Classification", "Answering",
                                                            "MultipleChoice"};
constexpr std::array<std::string_view, 2> masked_heads = {"cls.predictions", "lm_head"};
constexpr std::array<std::string_view, 4> head_names = {"lm_head.weight", "embed_out.weight",
                                                        "output.weight", "proj_out.weight"};

// Whether `name` is `end`, or ends with it behind a dot.
bool ends_as(std::string_view name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  return name.size() == end.size() || name[name.size() - end.size() - 1] == '.';
}

std::optional<TiedEmbeddings> by_table(const Checkpoint& base, const Architecture& architecture,
                                       const std::vector<LogicalTensor>& tensors) {
  const TensorSpec* head = nullptr;
  for (const TensorSpec& spec : architecture.tensors) {
    if (spec.role == Role::w_unembed && !spec.is_bias && !spec.tied_to.empty()) head = &spec;
  }
  if (head == nullptr) return std::nullopt;
  TiedEmbeddings found{.embedding = {}, .head = head->name};
  const SpecMatches matches = match_specs(architecture, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (matches.of[i].spec < 0) continue;
    const TensorSpec& spec = architecture.tensors[static_cast<std::size_t>(matches.of[i].spec)];
    // The name in the file is what its bytes are asked for.
    const std::string& name =
        tensors[i].is_quantized ? tensors[i].name : base.tensors()[tensors[i].values].stored->name;
    if (spec.name == head->tied_to) found.embedding = name;
    if (&spec == head) {
      found.head = name;
      found.head_is_stored = true;
    }
  }
  if (found.embedding.empty()) return std::nullopt;
  const std::string bias = head->name.substr(0, head->name.size() - weight.size()) + ".bias";
  for (const TensorSpec& spec : architecture.tensors) {
    if (spec.is_bias && spec.name == bias) found.head_bias = spec.tied_to;
  }
  return found;
}

std::optional<bool> says_tied(const Config& config) {
  if (const auto tied = config.boolean({"tie_word_embeddings"})) return tied;
  const std::optional<Config> text = config.section("text_config");
  return text ? text->boolean({"tie_word_embeddings"}) : std::nullopt;
}

// Whether the class has a head that gives tokens, where its name says it.
std::optional<bool> has_head(const Config& config) {
  const std::vector<std::string> classes = config.architectures();
  if (classes.empty()) return std::nullopt;
  const auto ends = [&](const auto& all) {
    return std::any_of(all.begin(), all.end(),
                       [&](std::string_view end) { return classes.front().ends_with(end); });
  };
  if (ends(ends_of_language_models)) return true;
  if (ends(ends_of_others)) return false;
  return std::nullopt;
}

// BERT's kind of head: a transform and, under the name of the head, a bias. False where there is
// another kind.
bool find_masked_head(const Checkpoint& base, TiedEmbeddings& found) {
  for (const std::string_view head : masked_heads) {
    const auto has = [&](std::string_view end) {
      const std::string name = std::string(head) + std::string(end);
      return std::any_of(base.tensors().begin(), base.tensors().end(),
                         [&](const auto& tensor) { return tensor.stored->name == name; });
    };
    if (!has(".bias") || has(".weight")) continue;
    found.head = std::string(head) + ".decoder.weight";
    found.head_is_stored = has(".decoder.weight");
    found.head_bias = std::string(head) + ".bias";
    return true;
  }
  return false;
}

std::optional<TiedEmbeddings> by_name(const Checkpoint& base, const Config& config) {
  const std::optional<bool> is_tied = says_tied(config);
  if (!is_tied.value_or(has_head(config).value_or(false)) || !has_head(config).value_or(true)) {
    return std::nullopt;
  }
  TiedEmbeddings found{.embedding = {}, .head = "lm_head.weight"};
  if (config.model_type() == "whisper") found.head = "proj_out.weight";
  for (const CheckpointTensor& tensor : base.tensors()) {
    const std::string& name = tensor.stored->name;
    if (is_embedding_name(name)) {
      if (!found.embedding.empty()) return std::nullopt;  // of an encoder and a decoder
      found.embedding = name;
    } else if (is_head_name(name)) {
      found.head = name;
      found.head_is_stored = true;
    }
  }
  if (found.embedding.empty() || (found.head_is_stored && !is_tied)) return std::nullopt;
  const std::vector<std::string> classes = config.architectures();
  const bool is_masked = !classes.empty() && (classes.front().ends_with("ForMaskedLM") ||
                                              classes.front().ends_with("ForPreTraining"));
  if (is_masked && !find_masked_head(base, found)) return std::nullopt;
  return found;
}

}  // namespace

bool is_embedding_name(std::string_view name) {
  for (const std::string_view end : embedding_names) {
    if (ends_as(name, end)) return true;
  }
  return false;
}

bool is_head_name(std::string_view name) {
  for (const std::string_view end : head_names) {
    if (name == end || (end == "lm_head.weight" && ends_as(name, end))) return true;
  }
  return false;
}

std::map<std::string, std::string> class_aliases(const std::vector<std::string>& stored,
                                                 const std::optional<TiedEmbeddings>& tied,
                                                 const Config* config) {
  std::set<std::string, std::less<>> names(stored.begin(), stored.end());
  if (tied) names.insert(tied->head);
  std::map<std::string, std::string> found;
  const auto add = [&](const std::string& alias, const std::string& name) {
    if (names.count(alias) == 0) found.emplace(alias, name);
  };
  if (config != nullptr) {
    const std::string model_type = config->model_type();
    for (const std::string& name : names) add(class_name(model_type, name), name);
    for (const SharedName& one : shared_names(*config, names)) add(one.name, one.stored);
  }
  if (tied && !tied->head_bias.empty() && names.count(tied->head_bias) != 0) {
    add(tied->head.substr(0, tied->head.size() - weight.size()) + ".bias", tied->head_bias);
  }
  return found;
}

std::optional<TiedEmbeddings> tied_embeddings(const Checkpoint& base,
                                              const std::vector<LogicalTensor>& tensors,
                                              const Architecture* architecture,
                                              const Config* config) {
  if (architecture != nullptr) return by_table(base, *architecture, tensors);
  if (config != nullptr) return by_name(base, *config);
  return std::nullopt;
}

}  // namespace eckart

#include "eckart/lora/tied_embeddings.h"

#include "eckart/model/match_specs.h"

#include <array>
#include <cstddef>

namespace eckart {
namespace {

constexpr std::array<std::string_view, 5> embedding_names = {
    "embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight",
    "tok_embeddings.weight"};
constexpr std::array<std::string_view, 3> head_names = {"lm_head.weight", "embed_out.weight",
                                                        "output.weight"};

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
  return found;
}

bool says_tied(const Config& config) {
  if (const auto tied = config.boolean({"tie_word_embeddings"})) return *tied;
  const std::optional<Config> text = config.section("text_config");
  return text && text->boolean({"tie_word_embeddings"}).value_or(false);
}

std::optional<TiedEmbeddings> by_name(const Checkpoint& base) {
  TiedEmbeddings found{.embedding = {}, .head = "lm_head.weight"};
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
  if (found.embedding.empty()) return std::nullopt;
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

std::optional<TiedEmbeddings> tied_embeddings(const Checkpoint& base,
                                              const std::vector<LogicalTensor>& tensors,
                                              const Architecture* architecture,
                                              const Config* config) {
  if (architecture != nullptr) return by_table(base, *architecture, tensors);
  if (config != nullptr && says_tied(*config)) return by_name(base);
  return std::nullopt;
}

}  // namespace eckart

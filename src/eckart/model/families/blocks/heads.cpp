#include "eckart/model/families/blocks/heads.h"

#include "eckart/io/findings.h"

#include <cstddef>
#include <string>

namespace eckart {

Index n_labels(const Table& table) {
  if (const std::optional<Index> labels = table.config().size({"num_labels"})) return *labels;
  if (const std::optional<Config> names = table.config().section("id2label")) {
    return static_cast<Index>(names->keys().size());
  }
  return 2;
}

void classifier(Table& table, const Classifier& options) {
  const std::size_t first = table.arch.tensors.size();
  table.linear({.name = options.name,
                .role = Role::classifier,
                .out = {"label", options.n == 0 ? n_labels(table) : options.n},
                .in = table.d_model(),
                .bias = options.bias,
                .component = Component::head,
                .use = options.use});
  if (options.old_name.empty()) return;
  for (std::size_t i = first; i < table.arch.tensors.size(); ++i) {
    TensorSpec& spec = table.arch.tensors[i];
    spec.also_named = {std::string(options.old_name) + (spec.is_bias ? ".bias" : ".weight")};
  }
}

void square_dense(Table& table, std::string_view name, Role role, Use use) {
  table.linear({.name = name,
                .role = role,
                .out = {"hidden", table.arch.d_model},
                .in = table.d_model(),
                .bias = true,
                .component = Component::head,
                .use = use});
}

void tied_unembedding(Table& table, const TiedUnembedding& options) {
  TensorSpec weight = {.name = std::string(options.decoder) + ".weight",
                       .shape = {},
                       .role = Role::w_unembed,
                       .component = Component::head,
                       .use = Use::per_token};
  if (table.arch.is_tied) weight.tied_to = options.embedding;
  TensorSpec bias = weight;
  table.add(std::move(weight), {table.vocab(), table.d_model()});
  bias.name = options.bias;
  bias.use = Use::none;
  bias.is_bias = true;
  bias.tied_to.clear();
  TensorSpec same_bias = bias;
  table.add(std::move(bias), {table.vocab()});
  same_bias.name = std::string(options.decoder) + ".bias";
  if (same_bias.name == options.bias) return;
  same_bias.tied_to = options.bias;
  table.add(std::move(same_bias), {table.vocab()});
}

void begin_decoder_base(Table& table) {
  table.begin_base(table.head() == Head::question_answering ? "transformer." : "model.");
}

void decoder_head(Table& table, const DecoderHead& options) {
  const std::string embedding = table.arch.base_prefix + std::string(options.embedding) + ".weight";
  table.begin_head();
  switch (table.head()) {
    case Head::causal_lm:
    case Head::masked_lm:
    case Head::pretraining: {
      TensorSpec weight = {.name = std::string(options.unembedding) + ".weight",
                           .shape = {},
                           .role = Role::w_unembed,
                           .component = Component::head,
                           .use = Use::per_token};
      if (table.arch.is_tied) weight.tied_to = embedding;
      TensorSpec bias = weight;
      table.add(std::move(weight), {table.vocab(), table.d_model()});
      if (!options.unembedding_bias) return;
      bias.name = std::string(options.unembedding) + ".bias";
      bias.use = Use::none;
      bias.is_bias = true;
      bias.tied_to.clear();
      table.add(std::move(bias), {table.vocab()});
      return;
    }
    case Head::sequence_classification:
      classifier(table, {.name = "score", .bias = false});
      return;
    case Head::token_classification:
      classifier(table, {.name = options.token_classifier,
                         .use = Use::per_token,
                         .old_name = options.old_token_classifier});
      return;
    case Head::question_answering:
      classifier(table, {.name = "qa_outputs", .use = Use::per_token, .n = 2});
      return;
    case Head::next_sentence:
    case Head::multiple_choice:
      table.note("architectures names " + printable(table.arch.model_class, 60) +
                 ", whose head is not counted");
      return;
    case Head::none:
      return;
  }
}

}  // namespace eckart

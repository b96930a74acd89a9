// DistilBERT (arXiv 1910.01108): BERT without token types and pooler, under names of its own.
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

void read_sizes(Table& table) {
  Architecture& arch = table.arch;
  arch.is_decoder = false;
  arch.n_vocab = table.size({"vocab_size"});
  arch.d_model = table.size({"dim", "hidden_size"});
  arch.n_layers = table.layer_count({"n_layers", "num_hidden_layers"});
  arch.n_heads = table.size({"n_heads", "num_attention_heads"});
  arch.n_kv_heads = arch.n_heads;
  divide_heads(table);
  arch.d_ff = table.size({"hidden_dim", "intermediate_size"});
  arch.context = table.size({"max_position_embeddings"});
  table.read_tie(true);
  arch.dropout = table.probability({"dropout"}, 0.1);
  arch.n_dropouts = 1;  // behind the MLP alone
  arch.embedding_dropout = arch.dropout;
  arch.attention_dropout = table.probability({"attention_dropout"}, 0.1);
}

void add_layers(Table& table) {
  const Axis d_model = table.d_model();
  table.begin_layers("transformer.layer.{layer}.");
  const auto attention = [&](std::string_view name, Role role, Axis out, Axis in) {
    table.linear({.name = name, .role = role, .out = out, .in = in, .bias = true});
  };
  attention("attention.q_lin", Role::w_q, table.heads(), d_model);
  attention("attention.k_lin", Role::w_k, table.kv_heads(), d_model);
  attention("attention.v_lin", Role::w_v, table.kv_heads(), d_model);
  attention("attention.out_lin", Role::w_o, d_model, table.heads());
  table.norm({.name = "sa_layer_norm", .axis = d_model, .bias = true});
  plain_mlp(table, {.up = "ffn.lin1", .down = "ffn.lin2"});
  table.norm({.name = "output_layer_norm", .axis = d_model, .bias = true});
  table.end_layers();
}

void add_head(Table& table) {
  const Head head = table.head();
  table.begin_head();
  if (table.has_unembedding()) {
    square_dense(table, "vocab_transform", Role::head_dense, Use::per_token);
    table.norm({.name = "vocab_layer_norm",
                .axis = table.d_model(),
                .bias = true,
                .component = Component::head});
    tied_unembedding(table, {.embedding = "distilbert.embeddings.word_embeddings.weight",
                             .decoder = "vocab_projector",
                             .bias = "vocab_projector.bias"});
  }
  if (head == Head::sequence_classification || head == Head::multiple_choice) {
    square_dense(table, "pre_classifier", Role::head_dense, Use::per_sequence);
    classifier(table, {.name = "classifier", .n = head == Head::multiple_choice ? 1 : 0});
  }
  if (head == Head::token_classification) {
    classifier(table, {.name = "classifier", .use = Use::per_token});
  }
  if (head == Head::question_answering) {
    classifier(table, {.name = "qa_outputs", .use = Use::per_token});
  }
}

Architecture read(const Config& config) {
  Table table(config, "distilbert");
  table.read_class("DistilBertModel");
  read_sizes(table);

  table.begin_base("distilbert.");
  table.embedding("embeddings.word_embeddings", Role::token_embedding, table.vocab());
  table.embedding("embeddings.position_embeddings", Role::position_embedding,
                  {"position", table.arch.context});
  table.norm({.name = "embeddings.LayerNorm", .axis = table.d_model(), .bias = true});
  add_layers(table);
  add_head(table);
  return table.finish();
}

}  // namespace

Family family_distilbert() { return {"distilbert", {"distilbert"}, read}; }

}  // namespace eckart

#include "eckart/model/families/blocks/encoder.h"

#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {

void read_encoder_sizes(Table& table) {
  Architecture& arch = table.arch;
  arch.n_vocab = table.size({"vocab_size"});
  arch.d_model = table.size({"hidden_size"});
  arch.n_layers = table.layer_count({"num_hidden_layers"});
  arch.n_heads = table.size({"num_attention_heads"});
  arch.n_kv_heads = arch.n_heads;
  divide_heads(table);
  arch.d_ff = table.size({"intermediate_size"});
  arch.context = table.size({"max_position_embeddings"});
  arch.is_decoder = table.flag("is_decoder", false);
  table.note_cross_attention();
  table.read_tie(true);
  arch.dropout = table.probability({"hidden_dropout_prob"}, 0.1);
  arch.embedding_dropout = arch.dropout;
  arch.attention_dropout = table.probability({"attention_probs_dropout_prob"}, 0.1);
}

void bert_encoder(Table& table) {
  const Axis d_model = table.d_model();
  const Axis heads = table.heads();
  table.embedding("embeddings.word_embeddings", Role::token_embedding, table.vocab());
  table.embedding("embeddings.position_embeddings", Role::position_embedding,
                  {"position", table.size({"max_position_embeddings"})});
  table.embedding("embeddings.token_type_embeddings", Role::type_embedding,
                  {"type", table.size({"type_vocab_size"})});
  table.norm({.name = "embeddings.LayerNorm", .axis = d_model, .bias = true, .old_names = true});

  table.begin_layers("encoder.layer.{layer}.");
  const auto attention = [&](std::string_view name, Role role, Axis out, Axis in) {
    table.linear({.name = name, .role = role, .out = out, .in = in, .bias = true});
  };
  attention("attention.self.query", Role::w_q, heads, d_model);
  attention("attention.self.key", Role::w_k, table.kv_heads(), d_model);
  attention("attention.self.value", Role::w_v, table.kv_heads(), d_model);
  attention("attention.output.dense", Role::w_o, d_model, heads);
  table.norm(
      {.name = "attention.output.LayerNorm", .axis = d_model, .bias = true, .old_names = true});
  plain_mlp(table, {.up = "intermediate.dense", .down = "output.dense"});
  table.norm({.name = "output.LayerNorm", .axis = d_model, .bias = true, .old_names = true});
  table.end_layers();
}

void bert_pooler(Table& table) {
  square_dense(table, "pooler.dense", Role::pooler, Use::per_sequence);
}

}  // namespace eckart

// BLOOM (arXiv 2211.05100): no positions (ALiBi), a LayerNorm behind the embedding, tied.
#include "eckart/model/checked.h"
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

void read_sizes(Table& table) {
  Architecture& arch = table.arch;
  arch.n_vocab = table.size({"vocab_size"});
  arch.d_model = table.size({"n_embed", "hidden_size"});  // the older name wins
  arch.n_layers = table.layer_count({"n_layer", "num_hidden_layers"});
  arch.n_heads = table.size({"n_head", "num_attention_heads"});
  arch.n_kv_heads = arch.n_heads;
  divide_heads(table);
  arch.d_ff = checked_product({4, arch.d_model}, "4 d_model");
  arch.context = table.size_or({"seq_length", "max_position_embeddings"}, 2048);
  table.read_tie(true);
  arch.dropout = table.probability({"hidden_dropout"}, 0);
  arch.attention_dropout = table.probability({"attention_dropout"}, 0);
}

Architecture read(const Config& config) {
  Table table(config, "bloom");
  table.read_class("BloomForCausalLM");
  read_sizes(table);
  table.arch.has_alibi = true;

  table.begin_base("transformer.");
  table.embedding("word_embeddings", Role::token_embedding, table.vocab());
  table.norm({.name = "word_embeddings_layernorm", .axis = table.d_model(), .bias = true});
  table.begin_layers("h.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model(), .bias = true});
  fused_attention(table, {.qkv_name = "self_attention.query_key_value",
                          .out_name = "self_attention.dense",
                          .bias = true});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model(), .bias = true});
  plain_mlp(table, {.up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h"});
  table.end_layers();
  table.norm({.name = "ln_f", .axis = table.d_model(), .bias = true});
  decoder_head(table, {.embedding = "word_embeddings", .token_classifier = "classifier"});
  return table.finish();
}

}  // namespace

Family family_bloom() { return {"bloom", {"bloom"}, read}; }

}  // namespace eckart

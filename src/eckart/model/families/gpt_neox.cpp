// GPT-NeoX and Pythia (arXiv 2204.06745): attention and MLP side by side, each behind its own
// LayerNorm; q, k, v fused head by head.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "gpt_neox");
  table.read_class("GPTNeoXForCausalLM");
  read_decoder_sizes(table, {.context = 2048, .has_kv_heads = false, .has_head_dim = false});
  read_rotary_share(table, {"rotary_pct", "partial_rotary_factor"}, 0.25);
  table.arch.is_gated = false;
  table.arch.is_parallel = table.flag("use_parallel_residual", true);
  table.arch.dropout = table.probability({"hidden_dropout"}, 0);
  table.arch.embedding_dropout = table.arch.dropout;

  table.begin_base("gpt_neox.");
  table.embedding("embed_in", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model(), .bias = true});
  fused_attention(table, {.qkv_name = "attention.query_key_value",
                          .out_name = "attention.dense",
                          .bias = table.flag("attention_bias", true)});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model(), .bias = true});
  plain_mlp(table, {.up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h"});
  table.end_layers();
  table.norm({.name = "final_layer_norm", .axis = table.d_model(), .bias = true});
  decoder_head(
      table,
      {.embedding = "embed_in", .unembedding = "embed_out", .token_classifier = "classifier"});
  return table.finish();
}

}  // namespace

Family family_gpt_neox() { return {"gpt_neox", {"gpt_neox"}, read}; }

}  // namespace eckart

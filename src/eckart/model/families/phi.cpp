// Phi 1, 1.5 and 2: attention and MLP side by side behind one LayerNorm, biases everywhere, also on
// the unembedding.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "phi");
  table.read_class("PhiForCausalLM");
  read_decoder_sizes(table, {.context = 2048, .has_head_dim = false});
  read_rotary_share(table, {"partial_rotary_factor"}, 0.5);
  table.arch.is_gated = false;
  table.arch.is_parallel = true;
  table.arch.dropout = table.probability({"resid_pdrop"}, 0);
  table.arch.embedding_dropout = table.probability({"embd_pdrop"}, 0);

  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model(), .bias = true});
  grouped_attention(table, {.qkv_bias = true, .out_bias = true, .out_name = "self_attn.dense"});
  if (table.flag("qk_layernorm", false)) {
    const Axis d_head = {"d_head", table.arch.d_head};
    table.norm({.name = "self_attn.q_layernorm", .axis = d_head, .bias = true});
    table.norm({.name = "self_attn.k_layernorm", .axis = d_head, .bias = true});
  }
  plain_mlp(table, {.up = "mlp.fc1", .down = "mlp.fc2"});
  table.end_layers();
  table.norm({.name = "final_layernorm", .axis = table.d_model(), .bias = true});
  decoder_head(table, {.unembedding_bias = true, .old_token_classifier = "classifier"});
  return table.finish();
}

}  // namespace

Family family_phi() { return {"phi", {"phi"}, read}; }

}  // namespace eckart

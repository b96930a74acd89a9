// Phi 3, 3.5 and 4 (arXiv 2404.14219): Llama with q, k, v fused to qkv_proj and gate, up to
// gate_up_proj.
#include "eckart/model/checked.h"
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

void fused_gated_mlp(Table& table) {
  const Index d_ff = table.arch.d_ff;
  table.linear({.name = "mlp.gate_up_proj",
                .role = Role::w_gate_up,
                .out = {"gate_up", checked_product({2, d_ff}, "the width of fused gate and up")},
                .in = table.d_model(),
                .component = Component::mlp});
  table.linear({.name = "mlp.down_proj",
                .role = Role::w_down,
                .out = table.d_model(),
                .in = {"d_ff", d_ff},
                .component = Component::mlp});
}

Architecture read(const Config& config) {
  Table table(config, "phi3");
  table.read_class("Phi3ForCausalLM");
  read_decoder_sizes(table, {.context = 4096});
  read_rotary_share(table, {"partial_rotary_factor"}, 1);
  table.arch.dropout = table.probability({"resid_pdrop"}, 0);
  table.arch.embedding_dropout = table.probability({"embd_pdrop"}, 0);
  set_windows(table, config.size({"sliding_window"}).value_or(0), [](Index) { return true; });

  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  fused_attention(table, {.qkv_name = "self_attn.qkv_proj", .out_name = "self_attn.o_proj"});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  fused_gated_mlp(table);
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table, {.old_token_classifier = "classifier"});
  return table.finish();
}

}  // namespace

Family family_phi3() { return {"phi3", {"phi3"}, read}; }

}  // namespace eckart

// Llama 1, 2 and 3 (arXiv 2302.13971): RMSNorm, rotary positions, gated MLP, grouped heads.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "llama");
  table.read_class("LlamaForCausalLM");
  read_decoder_sizes(table, {.context = 2048});
  const bool attention_bias = table.flag("attention_bias", false);

  begin_decoder_base(table);
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table, {.qkv_bias = attention_bias, .out_bias = attention_bias});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  gated_mlp(table, {.bias = table.flag("mlp_bias", false)});
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_llama() { return {"llama", {"llama"}, read}; }

}  // namespace eckart

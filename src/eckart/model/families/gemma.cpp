// Gemma (arXiv 2403.08295): Llama with heads of 256 and a tied unembedding.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "gemma");
  table.read_class("GemmaForCausalLM");
  read_decoder_sizes(table, {.context = 8192, .n_kv_heads = 16, .d_head = 256, .is_tied = true});
  table.arch.scales_embedding = true;
  table.arch.norm_adds_one = true;
  const bool bias = table.flag("attention_bias", false);

  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table, {.qkv_bias = bias, .out_bias = bias});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  gated_mlp(table);
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_gemma() { return {"gemma", {"gemma"}, read}; }

}  // namespace eckart

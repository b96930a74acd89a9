// Gemma 2 (arXiv 2408.00118): a norm before and after attention and MLP; every other layer, from
// the first, has a sliding window.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "gemma2");
  table.read_class("Gemma2ForCausalLM");
  read_decoder_sizes(table, {.context = 8192, .n_kv_heads = 4, .d_head = 256, .is_tied = true});
  table.arch.scales_embedding = true;
  table.arch.norm_adds_one = true;
  table.arch.query_scale = config.number({"query_pre_attn_scalar"}).value_or(256);
  // Absent, they are the family's; null switches them off.
  const auto softcap = [&](std::string_view name, double value) {
    return config.number({name}).value_or(config.has(name) ? 0 : value);
  };
  table.arch.attention_softcap = softcap("attn_logit_softcapping", 50);
  table.arch.logit_softcap = softcap("final_logit_softcapping", 30);
  const bool bias = table.flag("attention_bias", false);
  set_windows(table, read_window(table, 4096), [](Index layer) { return layer % 2 == 0; });

  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table, {.qkv_bias = bias, .out_bias = bias});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  table.norm({.name = "pre_feedforward_layernorm", .axis = table.d_model()});
  gated_mlp(table);
  table.norm({.name = "post_feedforward_layernorm", .axis = table.d_model()});
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_gemma2() { return {"gemma2", {"gemma2"}, read}; }

}  // namespace eckart

// Qwen 3 (arXiv 2505.09388): heads of 128 whatever d_model is, RMSNorm on each head's queries and
// keys, no biases.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "qwen3");
  table.read_class("Qwen3ForCausalLM");
  read_decoder_sizes(table, {.context = 32'768, .n_kv_heads = 32, .d_head = 128});
  const bool bias = table.flag("attention_bias", false);
  const Index window = table.flag("use_sliding_window", false) ? read_window(table, 4096) : 0;
  const Index first_windowed = config.size({"max_window_layers"}).value_or(28);
  set_windows(table, window, [=](Index layer) { return layer >= first_windowed; });

  begin_decoder_base(table);
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table, {.qkv_bias = bias, .out_bias = bias, .qk_norm = true});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  gated_mlp(table);
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_qwen3() { return {"qwen3", {"qwen3"}, read}; }

}  // namespace eckart

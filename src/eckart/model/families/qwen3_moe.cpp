// Qwen 3 with experts (arXiv 2505.09388): Qwen 3's attention, and many small experts.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/qwen_experts.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "qwen3_moe");
  table.read_class("Qwen3MoeForCausalLM");
  read_decoder_sizes(table, {.context = 32'768, .has_dense_mlp = false, .n_kv_heads = 4});
  read_experts(table, {"num_experts", "num_local_experts"},
               {.n_experts = 128, .n_active_experts = 8});
  table.arch.d_expert = table.size_or({"moe_intermediate_size"}, 768);
  const ExpertLayers layers = read_qwen_expert_layers(table);
  if (!layers.dense.empty()) table.arch.d_ff = table.size({"intermediate_size"});
  const bool bias = table.flag("attention_bias", false);
  const Index window = table.flag("use_sliding_window", false) ? read_window(table, 4096) : 0;
  set_windows(table, window, [](Index) { return true; });

  begin_decoder_base(table);
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table, {.qkv_bias = bias, .out_bias = bias, .qk_norm = true});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  table.only_in(layers.dense);
  gated_mlp(table);
  table.only_in(layers.sparse);
  router(table, "mlp.gate");
  routed_experts(table, {.prefix = "mlp.experts.{expert}."});
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_qwen3_moe() { return {"qwen3_moe", {"qwen3_moe"}, read}; }

}  // namespace eckart

// Qwen 1.5 and 2 with experts (arXiv 2407.10671): Qwen 2's attention, routed experts, and one
// shared expert behind a gate of its own.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/qwen_experts.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

// Odd layers below max_window_layers look back without a limit, even ones have the window.
void read_windows(Table& table) {
  const Index window = table.flag("use_sliding_window", false) ? read_window(table, 4096) : 0;
  const Index end = table.config().size({"max_window_layers"}).value_or(28);
  set_windows(table, window, [=](Index layer) { return layer % 2 == 0 && layer < end; });
}

Architecture read(const Config& config) {
  Table table(config, "qwen2_moe");
  table.read_class("Qwen2MoeForCausalLM");
  read_decoder_sizes(table, {.context = 32'768, .has_dense_mlp = false, .n_kv_heads = 16});
  read_experts(table, {"num_experts"}, {.n_experts = 60, .n_active_experts = 4});
  table.arch.d_expert = table.size_or({"moe_intermediate_size"}, 1408);
  table.arch.d_shared_expert = table.size_or({"shared_expert_intermediate_size"}, 5632);
  table.arch.n_shared_experts = 1;
  const ExpertLayers layers = read_qwen_expert_layers(table);
  if (!layers.dense.empty()) table.arch.d_ff = table.size({"intermediate_size"});
  read_windows(table);

  begin_decoder_base(table);
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table, {.qkv_bias = table.flag("qkv_bias", true)});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  table.only_in(layers.dense);
  gated_mlp(table);
  table.only_in(layers.sparse);
  router(table, "mlp.gate");
  routed_experts(table, {.prefix = "mlp.experts.{expert}."});
  shared_experts(table, "mlp.shared_expert.");
  table.linear({.name = "mlp.shared_expert_gate",
                .role = Role::router,
                .out = {"shared_expert", 1},
                .in = table.d_model(),
                .component = Component::shared_experts});
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_qwen2_moe() { return {"qwen2_moe", {"qwen2_moe"}, read}; }

}  // namespace eckart

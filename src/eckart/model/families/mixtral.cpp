// Mixtral (arXiv 2401.04088): Mistral with experts in place of the MLP; w1 gates, w3 is up, w2
// down.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "mixtral");
  table.read_class("MixtralForCausalLM");
  read_decoder_sizes(table, {.context = 131'072, .has_dense_mlp = false, .n_kv_heads = 8});
  read_experts(table, {"num_local_experts"}, {.n_experts = 8, .n_active_experts = 2});
  table.arch.d_expert = table.size({"intermediate_size"});
  set_windows(table, config.size({"sliding_window"}).value_or(0), [](Index) { return true; });

  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table);
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  router(table, "block_sparse_moe.gate");
  routed_experts(
      table,
      {.prefix = "block_sparse_moe.experts.{expert}.", .gate = "w1", .up = "w3", .down = "w2"});
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_mixtral() { return {"mixtral", {"mixtral"}, read}; }

}  // namespace eckart

// gpt-oss: biases, a sink score a head, every other layer (from the first) with a window, and
// experts stored together, inputs first. The published files hold the experts in MXFP4, which is a
// way of storing this table.
#include "eckart/model/checked.h"
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

// Adds `<name>` of expert x in x out and `<name>_bias` of expert x out.
void add_experts(Table& table, const std::string& name, Role role, Axis in, Axis out) {
  const Axis expert = {"expert", table.arch.n_experts};
  TensorSpec matrix = {.name = name,
                       .shape = {},
                       .role = role,
                       .component = Component::experts,
                       .use = Use::per_token,
                       .n_experts = table.arch.n_experts,
                       .n_active_experts = table.arch.n_active_experts,
                       .input_first = true};
  TensorSpec bias = matrix;
  table.add(std::move(matrix), {expert, in, out});
  bias.name = name + "_bias";
  bias.use = Use::none;
  bias.input_first = false;
  bias.is_bias = true;
  table.add(std::move(bias), {expert, out});
}

Architecture read(const Config& config) {
  Table table(config, "gpt_oss");
  table.read_class("GptOssForCausalLM");
  read_decoder_sizes(table,
                     {.context = 131'072, .has_dense_mlp = false, .n_kv_heads = 8, .d_head = 64});
  read_experts(table, {"num_local_experts", "num_experts"},
               {.n_experts = 128, .n_active_experts = 4});
  Architecture& arch = table.arch;
  arch.d_expert = table.size({"intermediate_size"});
  const bool bias = table.flag("attention_bias", true);
  set_windows(table, read_window(table, 128), [](Index layer) { return layer % 2 == 0; });
  const Axis d_expert = {"d_expert", arch.d_expert};
  const Axis gate_up = {"gate_up",
                        checked_product({2, arch.d_expert}, "the width of fused gate and up")};

  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table, {.qkv_bias = bias, .out_bias = bias});
  table.add({.name = "self_attn.sinks",
             .shape = {},
             .role = Role::sinks,
             .component = Component::attention,
             .use = Use::none},
            {{"head", arch.n_heads}});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  router(table, "mlp.router", true);
  add_experts(table, "mlp.experts.gate_up_proj", Role::w_gate_up, table.d_model(), gate_up);
  add_experts(table, "mlp.experts.down_proj", Role::w_down, d_expert, table.d_model());
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_gpt_oss() { return {"gpt_oss", {"gpt_oss"}, read}; }

}  // namespace eckart

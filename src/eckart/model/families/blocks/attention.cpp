#include "eckart/model/families/blocks/attention.h"

#include "eckart/model/checked.h"

namespace eckart {

void grouped_attention(Table& table, const GroupedAttention& options) {
  const Axis d_model = table.d_model();
  const Axis heads = table.heads();
  const Axis kv_heads = table.kv_heads();
  const bool bias = options.qkv_bias;
  table.linear(
      {.name = "self_attn.q_proj", .role = Role::w_q, .out = heads, .in = d_model, .bias = bias});
  table.linear({.name = "self_attn.k_proj",
                .role = Role::w_k,
                .out = kv_heads,
                .in = d_model,
                .bias = bias});
  table.linear({.name = "self_attn.v_proj",
                .role = Role::w_v,
                .out = kv_heads,
                .in = d_model,
                .bias = bias});
  table.linear({.name = options.out_name,
                .role = Role::w_o,
                .out = d_model,
                .in = heads,
                .bias = options.out_bias});
  if (!options.qk_norm) return;
  const Axis d_head = {"d_head", table.arch.d_head};
  table.norm({.name = "self_attn.q_norm", .axis = d_head});
  table.norm({.name = "self_attn.k_norm", .axis = d_head});
}

void fused_attention(Table& table, const FusedAttention& options) {
  const Axis heads = table.heads();
  const Index kv = table.kv_heads().size;
  table.linear({.name = options.qkv_name,
                .role = Role::w_qkv,
                .out = {"qkv", checked_sum({heads.size, kv, kv}, "the width of fused q, k and v")},
                .in = table.d_model(),
                .bias = options.bias,
                .input_first = options.input_first});
  table.linear({.name = options.out_name,
                .role = Role::w_o,
                .out = table.d_model(),
                .in = heads,
                .bias = options.bias,
                .input_first = options.input_first});
}

void read_latent_sizes(Table& table) {
  Architecture& arch = table.arch;
  LatentAttention latent;
  latent.kv_rank = table.size_or({"kv_lora_rank"}, 512);
  latent.d_rope = table.size_or({"qk_rope_head_dim"}, 64);
  arch.d_head = table.size_or({"qk_nope_head_dim"}, 128) + latent.d_rope;
  arch.d_head_v = table.size_or({"v_head_dim"}, 128);
  // Unpacked, each query head has keys and values of its own.
  arch.n_kv_heads = arch.n_heads;
  arch.latent = latent;
}

void latent_attention(Table& table, Index q_rank, bool bias) {
  const Architecture& arch = table.arch;
  const LatentAttention latent = arch.latent.value_or(LatentAttention{});
  const Axis d_model = table.d_model();
  const Axis heads = table.heads();
  if (q_rank == 0) {
    table.linear({.name = "self_attn.q_proj", .role = Role::w_q, .out = heads, .in = d_model});
  } else {
    const Axis rank = {"q_rank", q_rank};
    table.linear({.name = "self_attn.q_a_proj",
                  .role = Role::w_q_a,
                  .out = rank,
                  .in = d_model,
                  .bias = bias});
    table.norm({.name = "self_attn.q_a_layernorm", .axis = rank});
    table.linear({.name = "self_attn.q_b_proj", .role = Role::w_q_b, .out = heads, .in = rank});
  }
  const Axis kv_rank = {"kv_rank", latent.kv_rank};
  const Index d_unrotated = arch.d_head - latent.d_rope;
  table.linear({.name = "self_attn.kv_a_proj_with_mqa",
                .role = Role::w_kv_a,
                .out = {"kv_rank_rope", latent.kv_rank + latent.d_rope},
                .in = d_model,
                .bias = bias});
  table.norm({.name = "self_attn.kv_a_layernorm", .axis = kv_rank});
  table.linear({.name = "self_attn.kv_b_proj",
                .role = Role::w_kv_b,
                .out = {"keys_values", checked_product({arch.n_heads, d_unrotated + arch.d_head_v},
                                                       "the width of unpacked keys and values")},
                .in = kv_rank});
  table.linear({.name = "self_attn.o_proj",
                .role = Role::w_o,
                .out = d_model,
                .in = {"v_heads", checked_product({arch.n_heads, arch.d_head_v},
                                                  "n_heads times the width of a head's values")},
                .bias = bias});
}

}  // namespace eckart

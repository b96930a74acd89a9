// Attention as most decoders store it.
#pragma once

#include "eckart/model/families/blocks/table.h"

#include <string_view>

namespace eckart {

struct GroupedAttention {
  bool qkv_bias = false;
  bool out_bias = false;
  bool qk_norm = false;  // RMSNorm of each head's queries and keys: `q_norm`, `k_norm`
  std::string_view out_name = "self_attn.o_proj";
};

/// `self_attn.{q,k,v,o}_proj`, n_kv_heads key-value heads shared by n_heads query heads.
void grouped_attention(Table& table, const GroupedAttention& options = {});

struct FusedAttention {
  std::string_view qkv_name;
  std::string_view out_name;
  bool bias = false;
  bool input_first = false;
};

/// Queries, keys and values in one matrix.
void fused_attention(Table& table, const FusedAttention& options);

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): reads q_lora_rank, kv_lora_rank and
/// the heads' parts, sets d_head, d_head_v and latent. Call it before `latent_attention`.
void read_latent_sizes(Table& table);
/// Its tensors. `q_rank` is the query latent's size, 0 where queries come straight from d_model.
void latent_attention(Table& table, Index q_rank, bool bias);

}  // namespace eckart

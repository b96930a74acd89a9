// GPT-2: learned positions, LayerNorm, plain MLP; its Conv1D matrices are stored in x out.
#include "eckart/model/checked.h"
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

void read_sizes(Table& table) {
  Architecture& arch = table.arch;
  arch.n_vocab = table.size({"vocab_size"});
  arch.d_model = table.size({"n_embd", "hidden_size"});
  arch.n_layers = table.layer_count({"n_layer", "num_hidden_layers"});
  arch.n_heads = table.size({"n_head", "num_attention_heads"});
  arch.n_kv_heads = arch.n_heads;
  divide_heads(table);
  const std::optional<Index> d_ff = table.config().size({"n_inner"});
  arch.d_ff = d_ff ? table.size({"n_inner"}) : checked_product({4, arch.d_model}, "4 d_model");
  arch.context = table.size({"n_positions", "max_position_embeddings"});
  table.read_tie(true);
  arch.dropout = table.probability({"resid_pdrop"}, 0.1);
  arch.attention_dropout = table.probability({"attn_pdrop"}, 0.1);
  arch.embedding_dropout = table.probability({"embd_pdrop"}, 0.1);
}

Architecture read(const Config& config) {
  Table table(config, "gpt2");
  table.read_class("GPT2LMHeadModel");
  read_sizes(table);
  table.note_cross_attention();

  table.begin_base("transformer.");
  table.embedding("wte", Role::token_embedding, table.vocab());
  table.embedding("wpe", Role::position_embedding, {"position", table.arch.context});
  table.begin_layers("h.{layer}.");
  table.norm({.name = "ln_1", .axis = table.d_model(), .bias = true});
  fused_attention(
      table,
      {.qkv_name = "attn.c_attn", .out_name = "attn.c_proj", .bias = true, .input_first = true});
  table.norm({.name = "ln_2", .axis = table.d_model(), .bias = true});
  plain_mlp(table, {.up = "mlp.c_fc", .down = "mlp.c_proj", .input_first = true});
  table.end_layers();
  table.norm({.name = "ln_f", .axis = table.d_model(), .bias = true});
  decoder_head(table, {.embedding = "wte", .token_classifier = "classifier"});
  return table.finish();
}

}  // namespace

Family family_gpt2() { return {"gpt2", {"gpt2"}, read}; }

}  // namespace eckart

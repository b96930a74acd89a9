// Mistral 7B (arXiv 2310.06825): Llama with fewer key-value heads and a sliding window.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "mistral");
  table.read_class("MistralForCausalLM");
  read_decoder_sizes(table, {.context = 131'072, .n_kv_heads = 8});
  set_windows(table, read_window(table, 4096), [](Index) { return true; });

  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table);
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  gated_mlp(table);
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_mistral() { return {"mistral", {"mistral"}, read}; }

}  // namespace eckart

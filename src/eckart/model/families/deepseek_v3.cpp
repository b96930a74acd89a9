// DeepSeek-V3 and R1 (arXiv 2412.19437): V2's layers, a bias that balances the router, and one more
// layer in the file that predicts a further token. That layer carries copies of embedding and
// unembedding; it is itemised, but not part of the model's total.
#include "eckart/model/checked.h"
#include "eckart/model/families/blocks/deepseek.h"
#include "eckart/model/families/blocks/heads.h"

namespace eckart {
namespace {

void further_token_layer(Table& table, Index layer, bool has_selection_bias) {
  table.begin_extra_layer(layer);
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.norm({.name = "enorm", .axis = table.d_model()});
  table.norm({.name = "hnorm", .axis = table.d_model()});
  table.linear({.name = "eh_proj",
                .role = Role::head_dense,
                .out = table.d_model(),
                .in = {"embeddings", checked_product({2, table.arch.d_model}, "2 d_model")},
                .component = Component::head});
  deepseek_sparse_layer(table, has_selection_bias);
  table.norm({.name = "shared_head.norm", .axis = table.d_model()});
  table.linear({.name = "shared_head.head",
                .role = Role::w_unembed,
                .out = table.vocab(),
                .in = table.d_model(),
                .component = Component::head});
}

Architecture read(const Config& config) {
  Table table(config, "deepseek_v3");
  table.read_class("DeepseekV3ForCausalLM");
  read_deepseek_sizes(table, {.context = 4096,
                              .n_experts = 256,
                              .n_active_experts = 8,
                              .n_shared_experts = 1,
                              .d_expert = 2048});
  const bool has_selection_bias = config.text({"topk_method"}).value_or("noaux_tc") == "noaux_tc";
  const Index n_further = config.size({"num_nextn_predict_layers"}).value_or(0);
  if (n_further > table.arch.n_layers) {
    table.fail("num_nextn_predict_layers is " + std::to_string(n_further) +
               ", but there are no more of them than layers");
  }

  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  deepseek_layers(table, {.first_sparse = 3, .has_selection_bias = has_selection_bias});
  for (Index i = 0; i < n_further; ++i) {
    further_token_layer(table, table.arch.n_layers + i, has_selection_bias);
  }
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_deepseek_v3() { return {"deepseek_v3", {"deepseek_v3"}, read}; }

}  // namespace eckart

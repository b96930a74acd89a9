// DeepSeek-V2 (arXiv 2405.04434): latent attention, a few dense layers, then fine-grained experts.
#include "eckart/model/families/blocks/deepseek.h"
#include "eckart/model/families/blocks/heads.h"

namespace eckart {
namespace {

Architecture read(const Config& config) {
  Table table(config, "deepseek_v2");
  table.read_class("DeepseekV2ForCausalLM");
  read_deepseek_sizes(table, {.context = 2048,
                              .n_experts = 64,
                              .n_active_experts = 0,
                              .n_shared_experts = 2,
                              .d_expert = 1407});
  table.begin_base("model.");
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  deepseek_layers(table, {});
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
  decoder_head(table);
  return table.finish();
}

}  // namespace

Family family_deepseek_v2() { return {"deepseek_v2", {"deepseek_v2"}, read}; }

}  // namespace eckart

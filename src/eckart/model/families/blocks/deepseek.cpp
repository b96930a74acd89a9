#include "eckart/model/families/blocks/deepseek.h"

#include "eckart/model/checked.h"
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

// Null says that there is none; only an absent key means the default.
bool has_null(const Table& table, std::string_view name) {
  return table.config().has(name) && !table.config().size({name});
}

Index query_rank(const Table& table) {
  if (!table.config().has("q_lora_rank")) return 1536;
  return table.config().size({"q_lora_rank"}).value_or(0);
}

void check_groups(const Table& table) {
  const Index n_experts = table.arch.n_experts;
  const Index groups = table.config().size({"n_group"}).value_or(1);
  const Index active_groups = table.config().size({"topk_group"}).value_or(groups);
  if (groups == 0 || n_experts % groups != 0) {
    table.fail("it has " + std::to_string(n_experts) + " experts in " + std::to_string(groups) +
               " groups, but the groups must be of equal size");
  }
  if (active_groups > groups) {
    table.fail("topk_group is " + std::to_string(active_groups) + " of " + std::to_string(groups) +
               " groups, but it can't be more than there are");
  }
}

void attention_and_norms(Table& table) {
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  latent_attention(table, query_rank(table), table.flag("attention_bias", false));
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
}

void experts(Table& table, bool has_selection_bias) {
  router(table, "mlp.gate");
  if (has_selection_bias) {
    table.add({.name = "mlp.gate.e_score_correction_bias",
               .shape = {},
               .role = Role::router,
               .component = Component::router,
               .use = Use::none,
               .is_bias = true},
              {{"expert", table.arch.n_experts}});
  }
  routed_experts(table, {.prefix = "mlp.experts.{expert}."});
  if (table.arch.d_shared_expert > 0) shared_experts(table, "mlp.shared_experts.");
}

}  // namespace

void read_deepseek_sizes(Table& table, const DeepseekDefaults& defaults) {
  Architecture& arch = table.arch;
  arch.is_gated = true;
  arch.n_vocab = table.size({"vocab_size"});
  arch.d_model = table.size({"hidden_size"});
  arch.n_layers = table.layer_count({"num_hidden_layers"});
  arch.n_heads = table.size({"num_attention_heads"});
  arch.d_ff = table.size({"intermediate_size"});
  arch.context = table.size_or({"max_position_embeddings"}, defaults.context);
  table.read_tie(false);
  arch.attention_dropout = table.probability({"attention_dropout"}, 0);
  read_latent_sizes(table);
  if (has_null(table, "n_routed_experts")) return;
  arch.n_experts = table.size_or({"n_routed_experts"}, defaults.n_experts);
  arch.n_active_experts = defaults.n_active_experts == 0
                              ? table.size({"num_experts_per_tok"})
                              : table.size_or({"num_experts_per_tok"}, defaults.n_active_experts);
  arch.d_expert = table.size_or({"moe_intermediate_size"}, defaults.d_expert);
  arch.n_shared_experts = table.config().has("n_shared_experts")
                              ? table.config().size({"n_shared_experts"}).value_or(0)
                              : table.size_or({"n_shared_experts"}, defaults.n_shared_experts);
  arch.d_shared_expert =
      checked_product({arch.n_shared_experts, arch.d_expert}, "the width of the shared experts");
  check_groups(table);
}

void deepseek_layers(Table& table, const DeepseekLayers& options) {
  const Index first = table.config().size({"first_k_dense_replace"}).value_or(options.first_sparse);
  const Index every = table.config().size({"moe_layer_freq"}).value_or(1);
  if (every == 0) table.fail("moe_layer_freq is 0, but must be at least 1");
  const bool has_experts = table.arch.n_experts > 0;
  const auto is_sparse = [=](Index layer) {
    return has_experts && layer >= first && layer % every == 0;
  };
  table.begin_layers("layers.{layer}.");
  attention_and_norms(table);
  table.only_in(layers_where(table.arch.n_layers, [=](Index l) { return !is_sparse(l); }));
  gated_mlp(table);
  table.only_in(layers_where(table.arch.n_layers, is_sparse));
  experts(table, options.has_selection_bias);
  table.in_all_layers();
}

void deepseek_sparse_layer(Table& table, bool has_selection_bias) {
  attention_and_norms(table);
  if (table.arch.n_experts == 0) return gated_mlp(table);
  experts(table, has_selection_bias);
}

}  // namespace eckart

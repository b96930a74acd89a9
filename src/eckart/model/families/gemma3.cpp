// Gemma 3's text model (arXiv 2503.19786): Gemma 2's four norms, RMSNorm on each head's queries and
// keys, and one layer in six without a window. The multimodal files nest its config in text_config.
#include "eckart/model/families/blocks/attention.h"
#include "eckart/model/families/blocks/heads.h"
#include "eckart/model/families/blocks/mlp.h"
#include "eckart/model/families/blocks/sizes.h"

namespace eckart {
namespace {

void fill(Table& table, std::string_view base_prefix) {
  read_decoder_sizes(table, {.context = 131'072,
                             .n_kv_heads = 4,
                             .d_head = 256,
                             .is_tied = true,
                             .n_vocab = 262'208,
                             .n_heads = 8});
  table.arch.scales_embedding = true;
  table.arch.norm_adds_one = true;
  table.arch.query_scale = table.config().number({"query_pre_attn_scalar"}).value_or(256);
  table.arch.attention_softcap = table.config().number({"attn_logit_softcapping"}).value_or(0);
  table.arch.logit_softcap = table.config().number({"final_logit_softcapping"}).value_or(0);
  const bool bias = table.flag("attention_bias", false);
  const Index period = table.config().size({"sliding_window_pattern"}).value_or(6);
  if (period == 0) table.fail("sliding_window_pattern is 0, but must be at least 1");
  set_windows(table, read_window(table, 4096),
              [=](Index layer) { return (layer + 1) % period != 0; });

  table.begin_base(base_prefix);
  table.embedding("embed_tokens", Role::token_embedding, table.vocab());
  table.begin_layers("layers.{layer}.");
  table.norm({.name = "input_layernorm", .axis = table.d_model()});
  grouped_attention(table, {.qkv_bias = bias, .out_bias = bias, .qk_norm = true});
  table.norm({.name = "post_attention_layernorm", .axis = table.d_model()});
  table.norm({.name = "pre_feedforward_layernorm", .axis = table.d_model()});
  gated_mlp(table);
  table.norm({.name = "post_feedforward_layernorm", .axis = table.d_model()});
  table.end_layers();
  table.norm({.name = "norm", .axis = table.d_model()});
}

// Newer files put the class's prefix in front of the text model's.
void add_newer_names(Architecture& arch) {
  const std::string_view base = "language_model.model.";
  const std::string_view top = "language_model.";
  for (TensorSpec& spec : arch.tensors) {
    if (spec.name.starts_with(base)) {
      spec.also_named = {"model.language_model." + spec.name.substr(base.size())};
    } else if (spec.name.starts_with(top)) {
      spec.also_named = {spec.name.substr(top.size())};
    }
  }
}

// The class without a head: its text model is a part of it, whatever stands before both.
Architecture base_of(Table& table) {
  fill(table, "model.");
  for (TensorSpec& spec : table.arch.tensors) {
    spec.also_named = {"language_model.model." + spec.name};
    spec.name.insert(0, "language_model.");
  }
  return table.finish();
}

Architecture read(const Config& config) {
  const std::optional<Config> text = config.section("text_config");
  Table table(text ? *text : config, "gemma3", &config);
  if (!text) {
    table.read_class("Gemma3ForCausalLM");
    fill(table, "model.");
    decoder_head(table);
    return table.finish();
  }
  table.note(
      "the vision tower and its projector are not counted: the count is that of the text model");
  table.read_class("Gemma3ForConditionalGeneration");
  if (table.head() == Head::none) return base_of(table);
  fill(table, "language_model.model.");
  decoder_head(table, {.unembedding = "language_model.lm_head"});
  add_newer_names(table.arch);
  return table.finish();
}

}  // namespace

Family family_gemma3() { return {"gemma3", {"gemma3", "gemma3_text"}, read}; }

}  // namespace eckart

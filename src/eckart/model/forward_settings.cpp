#include "eckart/model/forward_settings.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/rotary_settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace eckart {
namespace {

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

Activation activation_of(const Config& config, Config::Names names, std::string_view otherwise) {
  const std::string name = config.text(names).value_or(std::string(otherwise));
  if (const std::optional<Activation> known = parse_activation(name)) return *known;
  throw_argument_error("forward: the activation of " + config.source() + " is \"" +
                           printable(name, 60) + "\", but that one is not known",
                       "known are relu, gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, "
                       "silu, swish, relu2, tanh and sigmoid");
}

void read_norms(const Config& config, ForwardSettings& settings, double rms_eps) {
  settings.is_rms_norm = true;
  settings.norm_eps = config.number({"rms_norm_eps"}).value_or(rms_eps);
}

void read_gpt2(const Config& config, const Architecture& architecture, ForwardSettings& settings) {
  settings.norm_eps = config.number({"layer_norm_epsilon"}).value_or(1e-5);
  settings.activation = activation_of(config, {"activation_function"}, "gelu_new");
  const bool is_scaled = config.boolean({"scale_attn_weights"}).value_or(true);
  const bool by_layer = config.boolean({"scale_attn_by_inverse_layer_idx"}).value_or(false);
  for (std::size_t layer = 0; layer < settings.scales.size(); ++layer) {
    double& scale = settings.scales[layer];
    if (!is_scaled) scale = 1;
    if (by_layer) scale /= static_cast<double>(layer + 1);
  }
  if (config.boolean({"add_cross_attention"}).value_or(false)) {
    throw_argument_error("forward: " + config.source() +
                         " has attention to an encoder (add_cross_attention), but only " +
                         architecture.family + " without it is supported");
  }
}

void read_gpt_neox(const Config& config, ForwardSettings& settings) {
  settings.norm_eps = config.number({"layer_norm_eps"}).value_or(1e-5);
  settings.activation = activation_of(config, {"hidden_act"}, "gelu");
  settings.qkv_order = QkvOrder::by_head;
}

void read_encoder(const Config& config, const Architecture& architecture,
                  ForwardSettings& settings) {
  settings.norm_placement = NormPlacement::after;
  settings.norm_eps = config.number({"layer_norm_eps"}).value_or(1e-12);
  settings.activation = activation_of(config, {"hidden_act"}, "gelu");
  const std::string positions =
      config.text({"position_embedding_type"}).value_or(std::string("absolute"));
  if (positions != "absolute") {
    throw_argument_error("forward: " + config.source() + " has positions of the kind \"" +
                         printable(positions, 60) + "\", but of " + architecture.family +
                         " only absolute ones are supported");
  }
  if (config.boolean({"add_cross_attention"}).value_or(false)) {
    throw_argument_error("forward: " + config.source() +
                         " has attention to an encoder (add_cross_attention), but only " +
                         architecture.family + " without it is supported");
  }
  if (architecture.family == "bert") {
    settings.head_activation = settings.activation;
    return;
  }
  // RoBERTa counts positions from the row behind its padding token's, and pads with that row.
  const Index padding = config.size({"pad_token_id"}).value_or(1);
  settings.padding_id = padding;
  settings.position_offset = padding + 1;
}

// Gemma's first configs say `gelu` and mean its approximation by tanh.
Activation gemma_activation(const Config& config) {
  const Activation named =
      activation_of(config, {"hidden_act", "hidden_activation"}, "gelu_pytorch_tanh");
  return named == Activation::gelu ? Activation::gelu_tanh : named;
}

void read_gemma(const Config& config, const Architecture& architecture, ForwardSettings& settings) {
  read_norms(config, settings, 1e-6);
  settings.is_causal = !config.boolean({"use_bidirectional_attention"}).value_or(false);
  if (architecture.family == "gemma") {
    settings.activation = gemma_activation(config);
    return;
  }
  settings.norm_placement = NormPlacement::both;
  settings.activation = activation_of(config, {"hidden_activation"}, "gelu_pytorch_tanh");
}

void read_family(const Config& config, const Architecture& architecture,
                 ForwardSettings& settings) {
  const std::string& family = architecture.family;
  if (family == "gpt2") return read_gpt2(config, architecture, settings);
  if (family == "gpt_neox") return read_gpt_neox(config, settings);
  if (family == "bert" || family == "roberta") return read_encoder(config, architecture, settings);
  if (family == "gemma" || family == "gemma2") return read_gemma(config, architecture, settings);
  read_norms(config, settings, family == "phi3" ? 1e-5 : 1e-6);
  settings.activation = activation_of(config, {"hidden_act"}, "silu");
}

// Scaled positions reach further than the ones that were trained.
Index longest(const Architecture& architecture, const RotaryOptions& rotary) {
  if (rotary.scaling == RotaryScaling::none || rotary.scaling == RotaryScaling::longrope) {
    return architecture.context;
  }
  const double reach = rotary.factor * static_cast<double>(rotary.original_context);
  return std::max(architecture.context, static_cast<Index>(std::min(reach, 0x1p40)));
}

// Learned positions where the table has them, rotary ones elsewhere.
void read_positions(const Config& config, const Architecture& architecture,
                    ForwardSettings& settings) {
  const auto learned =
      std::find_if(architecture.tensors.begin(), architecture.tensors.end(),
                   [](const TensorSpec& spec) { return spec.role == Role::position_embedding; });
  if (learned == architecture.tensors.end()) {
    settings.rotary = read_rotary(config, architecture);
    settings.context = longest(architecture, *settings.rotary);
    return;
  }
  const Index rows = learned->shape.size(0);
  settings.context = rows - settings.position_offset;
  if (settings.context >= 1) return;
  throw_format_error(config.source(), std::nullopt,
                     config.source() + ": pad_token_id is " +
                         std::to_string(settings.position_offset - 1) + ", but positions begin " +
                         "behind it and there are " + std::to_string(rows));
}

}  // namespace

const std::vector<std::string_view>& forward_families() {
  static const std::vector<std::string_view> names = {"bert",     "gemma", "gemma2",  "gpt2",
                                                      "gpt_neox", "llama", "mistral", "phi3",
                                                      "qwen2",    "qwen3", "roberta"};
  return names;
}

ForwardSettings read_forward_settings(const Config& config, const Architecture& architecture) {
  const std::vector<std::string_view>& known = forward_families();
  if (std::find(known.begin(), known.end(), architecture.family) == known.end()) {
    throw_argument_error("forward: " + config.source() + " is of the family " +
                             architecture.family + ", but it has no forward pass yet",
                         "families with one: " + listed(known));
  }
  ForwardSettings settings;
  const double queries = architecture.query_scale > 0 ? architecture.query_scale
                                                      : static_cast<double>(architecture.d_head);
  settings.scales.assign(static_cast<std::size_t>(architecture.n_layers), 1 / std::sqrt(queries));
  settings.is_causal = architecture.is_decoder;
  settings.is_parallel = architecture.is_parallel;
  settings.norm_adds_one = architecture.norm_adds_one;
  settings.attention_softcap = architecture.attention_softcap;
  settings.logit_softcap = architecture.logit_softcap;
  if (architecture.scales_embedding) {
    settings.embedding_scale = std::sqrt(static_cast<double>(architecture.d_model));
  }
  read_family(config, architecture, settings);
  read_positions(config, architecture, settings);
  settings.end_ids = config.one_or_more({"eos_token_id"});
  return settings;
}

}  // namespace eckart

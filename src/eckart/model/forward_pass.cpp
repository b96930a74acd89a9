#include "eckart/model/forward_pass.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/nn/normalization.h"

#include <algorithm>
#include <cmath>

namespace eckart::detail {
namespace {

constexpr Index grain_elements = 1 << 15;

void add_into(Tensor<float>& x, const Tensor<float>& y) {
  parallel_for(x.count(), grain_elements, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) x.data()[i] += y.data()[i];
  });
}

// The last token of a sequence that is no padding.
Index last_row(const PassTokens& tokens, Index sequence) {
  const auto at = static_cast<std::size_t>(sequence);
  const Tensor<bool>& mask = tokens.masks[at];
  Index row = tokens.begin[at + 1] - 1;
  for (Index t = mask.count() - 1; t > 0 && !mask.data()[t]; --t) --row;
  return row;
}

}  // namespace

Tensor<float> norm(const ForwardSettings& settings, const NormWeights& weights,
                   TensorView<const float> x) {
  if (settings.is_rms_norm) {
    return rms_norm<float>(x, {.weight = weights.weight.view(),
                               .eps = settings.norm_eps,
                               .adds_one = settings.norm_adds_one});
  }
  LayerNormOptions<float> options{.weight = weights.weight.view(), .eps = settings.norm_eps};
  if (weights.bias) options.bias = weights.bias->view();
  return layer_norm<float>(x, options);
}

void check_logits(const ForwardModel& model) {
  const ModelWeights& weights = model.weights;
  if (weights.unembedding) return;
  throw_argument_error(weights.missing_head.empty()
                           ? "forward: " + model.architecture.model_class +
                                 " has no unembedding, so that there are no logits"
                           : "forward: " + weights.missing_head +
                                 " is not in the file, so that there are no logits");
}

Tensor<float> logits_of(const ForwardModel& model, TensorView<const float> hidden) {
  check_logits(model);
  const ModelWeights& weights = model.weights;
  Tensor<float> logits;
  if (weights.head_dense) {
    Tensor<float> x = linear(hidden, *weights.head_dense);
    activate_in_place(x, model.settings.head_activation);
    if (weights.head_norm) x = norm(model.settings, *weights.head_norm, x);
    logits = linear(x.view(), *weights.unembedding);
  } else {
    logits = linear(hidden, *weights.unembedding);
  }
  const double cap = model.settings.logit_softcap;
  if (cap > 0) {
    const auto limit = static_cast<float>(cap);
    parallel_for(logits.count(), grain_elements, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        logits.data()[i] = limit * std::tanh(logits.data()[i] / limit);
      }
    });
  }
  return logits;
}

void ForwardPass::show(std::string_view name, Index layer, TensorView<const float> values) const {
  if (!options_.on_intermediate) return;
  const std::string full =
      layer < 0 ? std::string(name) : "layers." + std::to_string(layer) + "." + std::string(name);
  options_.on_intermediate({full, layer, values});
}

Tensor<float> ForwardPass::embed() {
  const ModelWeights& weights = model_.weights;
  Tensor<float> x = gather_rows(*weights.token_embedding, tokens_.ids);
  if (model_.settings.embedding_scale != 1) {
    const auto scale = static_cast<float>(model_.settings.embedding_scale);
    for (Index i = 0; i < x.count(); ++i) x.data()[i] *= scale;
  }
  if (weights.type_embedding) add_into(x, gather_rows(*weights.type_embedding, tokens_.types));
  if (weights.position_embedding) {
    add_into(x, gather_rows(*weights.position_embedding, tokens_.positions));
  }
  if (weights.embedding_norm) x = norm(model_.settings, *weights.embedding_norm, x);
  return x;
}

Tensor<float> ForwardPass::mlp(Index layer, const Tensor<float>& x) {
  const LayerWeights& weights = model_.weights.layers[static_cast<std::size_t>(layer)];
  Tensor<float> gate, up;
  TensorView<const float> factor;
  if (weights.gate_up) {
    // Fused: the gates first, then what they are multiplied by.
    up = linear(x.view(), *weights.gate_up);
    const Index d_ff = up.size(1) / 2;
    gate = Tensor<float>(up.view().slice(1, {0, d_ff}));
    factor = up.view().slice(1, {d_ff, 2 * d_ff});
  } else {
    up = linear(x.view(), *weights.up);
    factor = up.view();
    if (weights.gate) gate = linear(x.view(), *weights.gate);
  }
  const bool is_gated = weights.gate || weights.gate_up;
  if (is_gated) show("gate", layer, gate.view().named({"token", "d_ff"}));
  show("up", layer, factor.named({"token", "d_ff"}));
  Tensor<float>& hidden = is_gated ? gate : up;
  activate_in_place(hidden, model_.settings.activation);
  if (is_gated) {
    const Index columns = gate.size(1);
    parallel_for(gate.size(0), std::max<Index>(1, grain_elements / std::max<Index>(1, columns)),
                 [&](Index begin, Index end) {
                   for (Index row = begin; row < end; ++row) {
                     float* const at = gate.data() + row * columns;
                     const float* const by = factor.data() + row * factor.strides()[0];
                     for (Index j = 0; j < columns; ++j) at[j] *= by[j];
                   }
                 });
  }
  show("activated", layer, hidden.view().named({"token", "d_ff"}));
  Tensor<float> y = linear(hidden.view(), *weights.down);
  show("mlp", layer, y.view().named({"token", "d_model"}));
  return y;
}

void ForwardPass::run_layer(Index layer, Tensor<float>& x) {
  const ForwardSettings& settings = model_.settings;
  const std::vector<NormWeights>& norms =
      model_.weights.layers[static_cast<std::size_t>(layer)].norms;
  const auto normed = [&](std::size_t number, const Tensor<float>& of, std::string_view name) {
    Tensor<float> y = norm(settings, norms[number], of);
    show(name, layer, y.view().named({"token", "d_model"}));
    return y;
  };
  const auto add = [&](const Tensor<float>& y, std::string_view name) {
    add_into(x, y);
    show(name, layer, x.view().named({"token", "d_model"}));
  };
  if (settings.norm_placement == NormPlacement::after) {
    add(attend(layer, x), "residual_attention");
    x = normed(0, x, "attention_norm");
    add(mlp(layer, x), "residual_mlp");
    x = normed(1, x, "mlp_norm");
  } else if (settings.norm_placement == NormPlacement::both) {
    add(normed(1, attend(layer, normed(0, x, "attention_norm")), "attention_post_norm"),
        "residual_attention");
    add(normed(3, mlp(layer, normed(2, x, "mlp_norm")), "mlp_post_norm"), "residual");
  } else if (settings.is_parallel) {
    const Tensor<float> attention = attend(layer, normed(0, x, "attention_norm"));
    const Tensor<float> y = mlp(layer, normed(1, x, "mlp_norm"));
    add(attention, "residual_attention");
    add(y, "residual");
  } else {
    add(attend(layer, normed(0, x, "attention_norm")), "residual_attention");
    add(mlp(layer, normed(1, x, "mlp_norm")), "residual");
  }
}

void ForwardPass::find_logits() {
  if (options_.logits == Logits::none) return;
  if (options_.logits == Logits::all) {
    result_.logits = logits_of(model_, result_.last_hidden);
  } else {
    const Index n = tokens_.n_sequences(), d_model = model_.architecture.d_model;
    Tensor<float> rows = Tensor<float>::uninitialized({n, d_model});
    for (Index i = 0; i < n; ++i) {
      std::copy_n(result_.last_hidden.data() + last_row(tokens_, i) * d_model, d_model,
                  rows.data() + i * d_model);
    }
    result_.logits = logits_of(model_, rows);
  }
  result_.logits = std::move(result_.logits).named({"token", "vocab"});
  show("logits", -1, result_.logits);
}

ForwardResult ForwardPass::run() {
  const Index n_layers = model_.architecture.n_layers;
  // Before anything is computed: no cache must be left longer than its state.
  if (options_.logits != Logits::none) check_logits(model_);
  result_.begin = tokens_.begin;
  if (options_.attention_weights && options_.keeps_attention) {
    result_.attention.resize(static_cast<std::size_t>(n_layers));
    for (auto& of_layer : result_.attention) {
      of_layer.resize(static_cast<std::size_t>(tokens_.n_sequences()));
    }
  }
  for (Index i = 0; model_.settings.rotary && i < tokens_.n_sequences(); ++i) {
    rotaries_.push_back(rotary_of(i));
  }
  Tensor<float> x = embed();
  show("embedding", -1, x.view().named({"token", "d_model"}));
  for (Index layer = 0; layer < n_layers; ++layer) {
    if (options_.hidden_states) result_.hidden_states.push_back(x);
    run_layer(layer, x);
  }
  if (options_.hidden_states) result_.hidden_states.push_back(x);
  if (model_.weights.final_norm) {
    x = norm(model_.settings, *model_.weights.final_norm, x);
    show("final_norm", -1, x.view().named({"token", "d_model"}));
  }
  result_.last_hidden = std::move(x).named({"token", "d_model"});
  find_logits();
  return std::move(result_);
}

}  // namespace eckart::detail

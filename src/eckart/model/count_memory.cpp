// The key-value cache and the activations: see count.h.
#include "eckart/model/checked.h"
#include "eckart/model/count.h"

#include <algorithm>
#include <map>

namespace eckart {
namespace {

// What a layer's operations are made of, a token.
struct LayerWidths {
  Index queries = 0;
  Index keys = 0;
  Index values = 0;
  Index mixed = 0;             // n_heads times the width of values
  Index latents = 0;           // of latent attention: inputs of the unpacking matrices
  Index norm_inputs = 0;       // every norm's, what several share once
  Index n_input_norms = 0;     // norms of d_model
  Index mlp = 0;               // inner width of the dense MLP
  Index shared = 0;            // of the shared experts
  Index expert = 0;            // of one routed expert
  Index n_active_experts = 0;  // 0: no experts in this layer
  Index n_experts = 0;
};

bool is_matrix(const TensorSpec& spec) { return !spec.is_bias && spec.use == Use::per_token; }

Index input_width(const TensorSpec& spec) { return spec.shape.size(spec.input_first ? -2 : -1); }

Index sum_of(std::initializer_list<Index> terms) {
  return checked_sum(terms, "the activations of a token");
}

Index product_of(std::initializer_list<Index> factors) {
  return checked_product(factors, "the activations of a token");
}

void read_norm(const Architecture& arch, const TensorSpec& spec, LayerWidths& widths) {
  if (spec.role != Role::norm || spec.is_bias) return;
  Index input = spec.shape.count();
  if (spec.shape.find_axis("d_model")) {
    // Side by side, attention's norm and the MLP's read the same tensor.
    if (arch.is_parallel && widths.n_input_norms > 0) input = 0;
    ++widths.n_input_norms;
  } else if (spec.shape.find_axis("d_head")) {
    input = spec.name.find("k_") != std::string::npos ? widths.keys : widths.queries;
  }
  widths.norm_inputs = sum_of({widths.norm_inputs, input});
}

LayerWidths widths_of(const Architecture& arch, const LayerRun& run) {
  LayerWidths widths;
  const auto all_heads = [](Index n, Index width) {
    return checked_product({n, width}, "the width of all heads");
  };
  widths.queries = all_heads(arch.n_heads, arch.d_head);
  widths.keys = all_heads(arch.n_kv_heads, arch.d_head);
  widths.values = all_heads(arch.n_kv_heads, arch.d_head_v);
  widths.mixed = all_heads(arch.n_heads, arch.d_head_v);
  for (const TensorSpec* spec : run.tensors) {
    read_norm(arch, *spec, widths);
    if (!is_matrix(*spec)) continue;
    if (spec->role == Role::w_q_b || spec->role == Role::w_kv_b) {
      widths.latents = sum_of({widths.latents, input_width(*spec)});
    }
    if (spec->role != Role::w_down) continue;
    if (spec->component == Component::mlp) widths.mlp = input_width(*spec);
    if (spec->component == Component::shared_experts) widths.shared = input_width(*spec);
    if (spec->component == Component::experts) {
      widths.expert = input_width(*spec);
      widths.n_active_experts = spec->n_active_experts;
      widths.n_experts = spec->n_experts;
    }
  }
  return widths;
}

// Inner widths that an MLP's backward pass needs. Plain: the activation's input and the second
// matrix's. Gated: gate, act(gate) and up, which are the inputs of activation and product, and
// their product, which is the last matrix's.
Index kept_inside(const Architecture& arch, Index width) {
  return product_of({arch.is_gated ? 4 : 2, width});
}

// Elements a token that a layer's backward pass needs, without the score table.
Index training_elements(const Architecture& arch, const LayerWidths& w) {
  const Index attention = sum_of({arch.d_model, w.queries, w.keys, w.values, w.latents, w.mixed});
  // Phi's MLP reads what attention reads; elsewhere each has a norm of its own.
  const bool shares_input = arch.is_parallel && w.n_input_norms == 1;
  const Index dense = sum_of(
      {shares_input ? 0 : arch.d_model, kept_inside(arch, w.mlp), kept_inside(arch, w.shared)});
  // Each active expert has its own copy of the token, and its output is scaled by the router.
  const Index of_expert = sum_of({product_of({2, arch.d_model}), kept_inside(arch, w.expert)});
  const Index routed = sum_of({product_of({w.n_active_experts, of_expert}), w.n_experts});
  return sum_of({w.norm_inputs, attention, dense, routed});
}

// Bytes of dropout masks, one an element, without attention's.
Index mask_bytes(const Architecture& arch) {
  return arch.dropout > 0 ? product_of({arch.n_dropouts, arch.d_model}) : 0;
}

// Elements a token that live at once, at the operation where they are most. The residual stream and
// the operation's inputs and outputs live; element-wise operations are in place.
Index live_elements(const Architecture& arch, const LayerWidths& w) {
  const Index d = arch.d_model;
  const Index n = w.n_active_experts;
  const Index inner = arch.is_gated ? 2 : 1;
  const Index attention = sum_of({w.queries, w.keys, w.values});
  return std::max({
      sum_of({d, d, w.latents, attention}),
      sum_of({d, attention, w.mixed}),
      sum_of({d, w.mixed, d}),
      sum_of({d, d, product_of({inner, w.mlp})}),
      sum_of({d, w.mlp, d}),
      sum_of({d, d, w.n_experts, product_of({n, sum_of({d, product_of({inner, w.expert})})})}),
      sum_of({d, d, product_of({n, sum_of({d, w.expert})})}),
      sum_of({d, d, d, product_of({inner, w.shared})}),
  });
}

// Bytes a token that stay outside the layers for the backward pass.
Index outside_bytes(const Architecture& arch, Dtype dtype) {
  Index elements = 0;
  Index logits = 0;
  for (const TensorSpec& spec : arch.tensors) {
    if (!spec.layers.empty() || spec.is_bias) continue;
    if (spec.role == Role::norm) elements = sum_of({elements, spec.shape.count()});
    if (!is_matrix(spec)) continue;
    elements = sum_of({elements, input_width(spec)});
    // The transform of a masked-language-model head has an activation behind it.
    if (spec.role == Role::head_dense) elements = sum_of({elements, input_width(spec)});
    if (spec.role == Role::w_unembed) logits = product_of({4, arch.n_vocab});
  }
  const Index mask = arch.embedding_dropout > 0 ? arch.d_model : 0;
  return sum_of({packed_bytes(elements, dtype, "the activations of a token"), logits, mask});
}

ScoreTable score_table(const Architecture& arch, const ActivationOptions& options) {
  const std::string quantity = "the score table";
  ScoreTable table;
  table.entries_per_head = checked_product({options.context, options.context}, quantity);
  table.entries_per_layer =
      checked_product({table.entries_per_head, arch.n_heads, options.batch}, quantity);
  table.bytes_per_head = packed_bytes(table.entries_per_head, options.dtype, quantity);
  table.bytes_per_layer = packed_bytes(table.entries_per_layer, options.dtype, quantity);
  return table;
}

// What the softmax leaves for the backward pass: its result; with dropout, also a mask and what the
// mask leaves.
Index training_score_bytes(const Architecture& arch, const ScoreTable& table) {
  if (!(arch.attention_dropout > 0)) return table.bytes_per_layer;
  return checked_sum({table.bytes_per_layer, table.bytes_per_layer, table.entries_per_layer},
                     "the score tables");
}

}  // namespace

KvCacheCost count_kv_cache(const Architecture& arch, const KvCacheCostOptions& options) {
  const std::string quantity = "the key-value cache's bytes";
  KvCacheCost cache;
  cache.dtype = options.dtype;
  if (!arch.is_decoder) return cache;
  const auto bytes_of = [&](Index elements) {
    return packed_bytes(elements, options.dtype, quantity);
  };
  const auto at_context = [&](Index bytes_per_token, Index tokens) {
    return checked_product({bytes_per_token, tokens, options.batch}, quantity);
  };
  const Index unpacked = checked_product({arch.n_kv_heads, arch.d_head + arch.d_head_v}, quantity);
  const Index per_layer =
      bytes_of(arch.latent ? arch.latent->kv_rank + arch.latent->d_rope : unpacked);

  std::map<Index, Index> layers_by_window;
  for (const Index window : arch.windows) ++layers_by_window[window];
  for (const auto& [window, n_layers] : layers_by_window) {
    KvCacheGroup group = {.n_layers = n_layers, .window = window};
    group.bytes_per_token = checked_product({n_layers, per_layer}, quantity);
    group.tokens = window == 0 ? options.context : std::min(options.context, window);
    group.bytes_at_context = at_context(group.bytes_per_token, group.tokens);
    cache.bytes_per_token = checked_sum({cache.bytes_per_token, group.bytes_per_token}, quantity);
    cache.bytes_at_context =
        checked_sum({cache.bytes_at_context, group.bytes_at_context}, quantity);
    cache.groups.push_back(group);
  }
  cache.bytes_at_context_without_windows = at_context(cache.bytes_per_token, options.context);
  if (arch.latent) {
    ExpandedCache expanded;
    expanded.bytes_per_token = checked_product({arch.n_layers, bytes_of(unpacked)}, quantity);
    expanded.bytes_at_context = at_context(expanded.bytes_per_token, options.context);
    cache.expanded = expanded;
  }
  return cache;
}

Index live_elements_per_token(const Architecture& arch) {
  Index most = 0;
  for (const LayerRun& run : layer_runs(arch)) {
    most = std::max(most, live_elements(arch, widths_of(arch, run)));
  }
  return most;
}

Activations count_activations(const Architecture& arch, const ActivationOptions& options) {
  const std::string quantity = "the activations' bytes";
  const Index tokens = checked_product({options.context, options.batch}, "the number of tokens");
  const auto bytes_of = [&](Index elements_per_token) {
    return packed_bytes(checked_product({elements_per_token, tokens}, quantity), options.dtype,
                        quantity);
  };
  Activations activations;
  activations.dtype = options.dtype;
  activations.score_table = score_table(arch, options);
  const Index scores = training_score_bytes(arch, activations.score_table);
  activations.training_outside_layers_bytes =
      checked_product({outside_bytes(arch, options.dtype), tokens}, quantity);
  activations.training_bytes = activations.training_outside_layers_bytes;
  activations.training_bytes_fused = activations.training_outside_layers_bytes;
  for (const LayerRun& run : layer_runs(arch)) {
    const LayerWidths widths = widths_of(arch, run);
    LayerActivations layer = {.first = run.first, .n_layers = run.n_layers};
    layer.training_bytes_fused =
        checked_sum({bytes_of(training_elements(arch, widths)),
                     checked_product({mask_bytes(arch), tokens}, quantity)},
                    quantity);
    layer.training_bytes = checked_sum({layer.training_bytes_fused, scores}, quantity);
    layer.inference_bytes = bytes_of(live_elements(arch, widths));
    const auto add_layers = [&](Index& sum, Index bytes) {
      sum = checked_sum({sum, checked_product({run.n_layers, bytes}, quantity)}, quantity);
    };
    add_layers(activations.training_bytes, layer.training_bytes);
    add_layers(activations.training_bytes_fused, layer.training_bytes_fused);
    activations.inference_bytes = std::max(activations.inference_bytes, layer.inference_bytes);
    activations.per_layer.push_back(layer);
  }
  activations.inference_bytes_with_scores =
      checked_sum({activations.inference_bytes, activations.score_table.bytes_per_layer}, quantity);
  return activations;
}

}  // namespace eckart

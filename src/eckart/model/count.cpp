#include "eckart/model/count.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/checked.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace eckart {
namespace {

constexpr std::size_t n_components = 8;

bool is_input_table(const TensorSpec& spec) {
  return spec.role == Role::token_embedding || spec.role == Role::position_embedding ||
         spec.role == Role::type_embedding;
}

Index of_one_layer(Index of_all, const TensorSpec& spec) {
  return of_all / static_cast<Index>(spec.layers.size());
}

void add_to(Index& sum, Index term, std::string_view quantity) {
  sum = checked_sum({sum, term}, quantity);
}

// Pairs of a token and one that it may look at, itself included.
Index causal_pairs(Index context, Index window) {
  const Index full = window == 0 ? context : std::min(context, window);
  const Index growing = checked_product({full, full + 1}, "the pairs of tokens") / 2;
  const Index sliding = checked_product({context - full, full}, "the pairs of tokens");
  return checked_sum({growing, sliding}, "the pairs of tokens");
}

Index attention_macs_per_pair(const Architecture& arch) {
  return checked_product({arch.n_heads, arch.d_head + arch.d_head_v}, "attention's MACs");
}

FlopCount to_flops(const Architecture& arch, const MacCount& macs, Index context) {
  FlopCount flops;
  flops.linear_per_token = checked_product({2, macs.linear_per_token}, "FLOPs a token");
  flops.forward_full_square = checked_product({2, macs.forward_full_square}, "the forward FLOPs");
  flops.forward_causal = checked_product({2, macs.forward_causal}, "the forward FLOPs");
  flops.forward = flops.forward_full_square;
  Index keys = 0;
  for (const Index window : arch.windows) keys += window == 0 ? context : std::min(context, window);
  flops.per_token_at_context = checked_sum(
      {flops.linear_per_token,
       checked_product({2, keys, attention_macs_per_pair(arch)}, "attention's FLOPs a token")},
      "FLOPs a token");
  return flops;
}

TrainingCount count_training(const Count& count) {
  const Index n = count.parameters.total;
  TrainingCount training;
  training.tokens = checked_product({count.context, count.batch}, "the number of tokens");
  training.flops = checked_product({3, count.flops.forward}, "the training FLOPs");
  training.flops_causal = checked_product({3, count.flops.forward_causal}, "the training FLOPs");
  training.flops_6nd_total =
      checked_product({6, count.parameters.active, training.tokens}, "6 N D");
  training.flops_6nd_non_embedding =
      checked_product({6, count.parameters.active_non_embedding, training.tokens}, "6 N D");
  training.weights_bytes = count.weights.bytes;
  const Dtype trained = trained_dtype(count.weights.dtype);
  training.gradient_bytes = packed_bytes(n, trained, "the gradients' bytes");
  training.optimizer_bytes =
      checked_product({bits(trained) >= 32 ? 8 : 12, n}, "the optimizer's bytes");
  training.activation_bytes = count.activations.training_bytes;
  training.activation_bytes_fused = count.activations.training_bytes_fused;
  training.total_bytes = checked_sum({training.weights_bytes, training.gradient_bytes,
                                      training.optimizer_bytes, training.activation_bytes},
                                     "the training's bytes");
  return training;
}

WeightBytes count_weights(const Architecture& arch, const ParameterCount& parameters, Dtype dtype,
                          const CountOptions& options) {
  const std::optional<Index>& stored = options.stored_weights_bytes;
  return {.dtype = dtype,
          .is_stored = stored.has_value(),
          .storage = stored ? options.weights_storage : std::string(),
          .bytes = stored ? *stored : weight_bytes(arch, dtype),
          .extra_bytes = packed_bytes(parameters.extra, dtype, "the extra weights' bytes")};
}

void note_narrow_training(Dtype dtype, const CountOptions& options,
                          std::vector<std::string>& notes) {
  if ((!options.train && options.lora_rank == 0) || trained_dtype(dtype) == dtype) return;
  notes.push_back("gradients and the factors of a LoRA are BF16: " + std::string(to_string(dtype)) +
                  " is too narrow to train in");
}

}  // namespace

Index packed_bytes(Index elements, Dtype dtype, const std::string& quantity) {
  const Index all_bits = checked_product({elements, bits(dtype)}, quantity);
  return all_bits / 8 + (all_bits % 8 == 0 ? 0 : 1);
}

WeightDtype choose_weights_dtype(const Architecture& arch, std::optional<Dtype> asked) {
  if (asked) {
    WeightDtype chosen = {.dtype = *asked, .notes = {}};
    if (bits(*asked) < 16) {
      chosen.notes.push_back(std::string(to_string(*asked)) +
                             " is for the layers' matrices, without scales: embeddings, head, "
                             "norms and biases stay " +
                             std::string(to_string(dtype_beside_narrow(arch))));
    }
    return chosen;
  }
  WeightDtype chosen = {.dtype = arch.dtype.value_or(Dtype::bf16), .notes = {}};
  if (!arch.dtype) {
    chosen.notes.push_back((arch.unknown_dtype.empty()
                                ? std::string("the config names no dtype")
                                : "the config names the dtype " +
                                      printable(arch.unknown_dtype, 60) + ", which is not known") +
                           ": the weights are counted in BF16");
  }
  if (!arch.quantization.empty()) {
    chosen.notes.push_back("the config names the quantization " + printable(arch.quantization, 60) +
                           ": the weights are counted without it, the file is smaller");
  }
  return chosen;
}

std::vector<LayerRun> layer_runs(const Architecture& arch) {
  // Each line's layers are ascending: one pass over the layers takes them as they come.
  std::vector<std::size_t> taken(arch.tensors.size(), 0);
  std::vector<LayerRun> runs;
  std::vector<const TensorSpec*> tensors;
  for (Index layer = 0; layer < arch.n_layers; ++layer) {
    tensors.clear();
    for (std::size_t i = 0; i < arch.tensors.size(); ++i) {
      const TensorSpec& spec = arch.tensors[i];
      if (spec.is_extra || taken[i] == spec.layers.size()) continue;
      if (spec.layers[taken[i]] != layer) continue;
      ++taken[i];
      tensors.push_back(&spec);
    }
    if (runs.empty() || runs.back().tensors != tensors) {
      runs.push_back({.first = layer, .n_layers = 0, .tensors = tensors});
    }
    ++runs.back().n_layers;
  }
  return runs;
}

ParameterCount count_parameters(const Architecture& arch) {
  ParameterCount count;
  Index active_outside = 0;  // of input tables and an unembedding of its own
  Index outside = 0;
  std::array<ComponentParameters, n_components> components;
  for (const TensorSpec& spec : arch.tensors) {
    const Index total = parameters(spec);
    const Index active = active_parameters(spec);
    if (spec.is_extra) {
      add_to(count.extra, total, "the number of extra parameters");
      continue;
    }
    ComponentParameters& component = components[static_cast<std::size_t>(spec.component)];
    add_to(count.total, total, "the number of parameters");
    // What follows is at most the total.
    count.active += active;
    component.total += total;
    component.active += active;
    if (is_input_table(spec)) count.embedding += total;
    if (spec.component == Component::head) count.head += total;
    const bool is_unembedding = spec.role == Role::w_unembed && !arch.is_tied;
    if (is_input_table(spec) || is_unembedding) {
      outside += total;
      active_outside += active;
    }
  }
  count.non_embedding = count.total - outside;
  count.active_non_embedding = count.active - active_outside;
  for (std::size_t i = 0; i < n_components; ++i) {
    components[i].component = static_cast<Component>(i);
    if (components[i].total > 0) count.by_component.push_back(components[i]);
  }
  for (const LayerRun& run : layer_runs(arch)) {
    LayerParameters layer = {.first = run.first, .n_layers = run.n_layers};
    for (const TensorSpec* spec : run.tensors) {
      layer.total += of_one_layer(parameters(*spec), *spec);
      layer.active += of_one_layer(active_parameters(*spec), *spec);
    }
    count.per_layer.push_back(layer);
  }
  return count;
}

MacCount count_macs(const Architecture& arch, Index context, Index batch) {
  MacCount macs;
  for (const TensorSpec& spec : arch.tensors) {
    if (spec.is_extra) continue;
    Index& sum = spec.use == Use::per_sequence ? macs.head_per_sequence : macs.linear_per_token;
    add_to(sum, macs_per_use(spec), "MACs a token");
  }
  const Index per_pair = attention_macs_per_pair(arch);
  const Index square = checked_product({context, context}, "the pairs of tokens");
  Index causal = 0;
  for (const Index window : arch.windows) {
    add_to(causal, causal_pairs(context, window), "the pairs of tokens of all layers");
  }
  macs.attention_full_square =
      checked_product({arch.n_layers, square, per_pair, batch}, "attention's MACs");
  macs.attention_causal = arch.is_decoder
                              ? checked_product({causal, per_pair, batch}, "attention's MACs")
                              : macs.attention_full_square;
  const Index linear =
      checked_sum({checked_product({macs.linear_per_token, context, batch}, "the linear MACs"),
                   checked_product({macs.head_per_sequence, batch}, "the head's MACs")},
                  "the linear MACs");
  macs.forward_full_square = checked_sum({linear, macs.attention_full_square}, "the forward MACs");
  macs.forward_causal = checked_sum({linear, macs.attention_causal}, "the forward MACs");
  return macs;
}

Count count(const Architecture& arch, const CountOptions& options) {
  check_range("count: context", options.context, 0);
  check_range("count: batch", options.batch, 1);
  check_range("count: the LoRA rank", options.lora_rank, 0);
  Count count;
  count.context = options.context == 0 ? arch.context : options.context;
  count.batch = options.batch;
  const auto [dtype, dtype_notes] = choose_weights_dtype(arch, options.weights_dtype);
  count.notes = arch.assumptions;
  if (!options.stored_weights_bytes) {
    count.notes.insert(count.notes.end(), dtype_notes.begin(), dtype_notes.end());
  }
  if (count.context > arch.context) {
    count.notes.push_back("a context of " + std::to_string(count.context) + " is beyond the " +
                          std::to_string(arch.context) + " tokens that the model was made for");
  }
  count.parameters = count_parameters(arch);
  count.weights = count_weights(arch, count.parameters, dtype, options);
  note_narrow_training(dtype, options, count.notes);
  count.kv_cache = count_kv_cache(
      arch, {.context = count.context, .batch = count.batch, .dtype = options.kv_dtype});
  count.activations =
      count_activations(arch, {.context = count.context,
                               .batch = count.batch,
                               .dtype = options.activation_dtype.value_or(activation_dtype(arch))});
  count.macs = count_macs(arch, count.context, count.batch);
  count.flops = to_flops(arch, count.macs, count.context);
  if (options.train) count.training = count_training(count);
  if (options.lora_rank > 0) {
    count.lora = count_lora(arch, {.rank = options.lora_rank,
                                   .targets = options.lora_targets,
                                   .dtype = trained_dtype(dtype)});
  }
  return count;
}

}  // namespace eckart

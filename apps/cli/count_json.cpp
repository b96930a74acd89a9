#include <utility>

#include "count_report.h"

namespace eckart::cli {
namespace {

Json parameters_json(const ParameterCount& p) {
  Json components = Json::object();
  for (const ComponentParameters& part : p.by_component) {
    components[std::string(to_string(part.component))] = {{"total", part.total},
                                                          {"active", part.active}};
  }
  Json layers = Json::array();
  for (const LayerParameters& run : p.per_layer) {
    layers.push_back({{"first", run.first},
                      {"n_layers", run.n_layers},
                      {"total", run.total},
                      {"active", run.active}});
  }
  return {{"total", p.total},
          {"active", p.active},
          {"embedding", p.embedding},
          {"non_embedding", p.non_embedding},
          {"active_non_embedding", p.active_non_embedding},
          {"head", p.head},
          {"extra", p.extra},
          {"by_component", std::move(components)},
          {"per_layer", std::move(layers)}};
}

Json cache_json(const KvCacheCost& cache) {
  Json groups = Json::array();
  for (const KvCacheGroup& group : cache.groups) {
    groups.push_back({{"n_layers", group.n_layers},
                      {"window", group.window},
                      {"bytes_per_token", group.bytes_per_token},
                      {"tokens", group.tokens},
                      {"bytes_at_context", group.bytes_at_context}});
  }
  Json json = {{"dtype", to_string(cache.dtype)},
               {"bytes_per_token", cache.bytes_per_token},
               {"bytes_at_context", cache.bytes_at_context},
               {"bytes_at_context_without_windows", cache.bytes_at_context_without_windows}};
  json["expanded"] = nullptr;
  if (cache.expanded) {
    json["expanded"] = {{"bytes_per_token", cache.expanded->bytes_per_token},
                        {"bytes_at_context", cache.expanded->bytes_at_context}};
  }
  json["groups"] = std::move(groups);
  return json;
}

Json activations_json(const Activations& a) {
  Json layers = Json::array();
  for (const LayerActivations& run : a.per_layer) {
    layers.push_back({{"first", run.first},
                      {"n_layers", run.n_layers},
                      {"training_bytes", run.training_bytes},
                      {"training_bytes_fused", run.training_bytes_fused},
                      {"inference_bytes", run.inference_bytes}});
  }
  return {{"dtype", to_string(a.dtype)},
          {"inference_bytes", a.inference_bytes},
          {"inference_bytes_with_scores", a.inference_bytes_with_scores},
          {"training_bytes", a.training_bytes},
          {"training_bytes_fused", a.training_bytes_fused},
          {"training_outside_layers_bytes", a.training_outside_layers_bytes},
          {"per_layer", std::move(layers)},
          {"score_table",
           {{"entries_per_head", a.score_table.entries_per_head},
            {"bytes_per_head", a.score_table.bytes_per_head},
            {"entries_per_layer", a.score_table.entries_per_layer},
            {"bytes_per_layer", a.score_table.bytes_per_layer}}}};
}

Json compute_json(Json json, const Count& count) {
  json["macs"] = {{"linear_per_token", count.macs.linear_per_token},
                  {"head_per_sequence", count.macs.head_per_sequence},
                  {"attention_full_square", count.macs.attention_full_square},
                  {"attention_causal", count.macs.attention_causal},
                  {"forward_full_square", count.macs.forward_full_square},
                  {"forward_causal", count.macs.forward_causal}};
  json["flops"] = {{"linear_per_token", count.flops.linear_per_token},
                   {"forward", count.flops.forward},
                   {"forward_full_square", count.flops.forward_full_square},
                   {"forward_causal", count.flops.forward_causal},
                   {"per_token_at_context", count.flops.per_token_at_context}};
  return json;
}

Json training_json(const TrainingCount& t) {
  return {{"tokens", t.tokens},
          {"flops", t.flops},
          {"flops_causal", t.flops_causal},
          {"flops_6nd_total", t.flops_6nd_total},
          {"flops_6nd_non_embedding", t.flops_6nd_non_embedding},
          {"weights_bytes", t.weights_bytes},
          {"gradient_bytes", t.gradient_bytes},
          {"optimizer_bytes", t.optimizer_bytes},
          {"activation_bytes", t.activation_bytes},
          {"activation_bytes_fused", t.activation_bytes_fused},
          {"total_bytes", t.total_bytes}};
}

Json lora_json(const LoraCount& lora) {
  Json targets = Json::array();
  for (const LoraTarget& target : lora.targets) {
    targets.push_back({{"name", target.name},
                       {"role", to_string(target.role)},
                       {"d_in", target.d_in},
                       {"d_out", target.d_out},
                       {"n_matrices", target.n_matrices},
                       {"parameters", target.parameters}});
  }
  return {{"rank", lora.rank},
          {"parameters", lora.parameters},
          {"share", lora.share},
          {"weights_bytes", lora.weights_bytes},
          {"gradient_bytes", lora.gradient_bytes},
          {"optimizer_bytes", lora.optimizer_bytes},
          {"targets", std::move(targets)}};
}

Json point_json(const std::optional<FitPoint>& point) {
  if (!point) return nullptr;
  return {{"context", point->context},
          {"batch", point->batch},
          {"weights_bytes", point->weights_bytes},
          {"kv_cache_bytes", point->kv_cache_bytes},
          {"trained_bytes", point->trained_bytes},
          {"working_bytes", point->working_bytes},
          {"total_bytes", point->total_bytes}};
}

Json fit_json(const Fit& fit) {
  return {{"purpose", to_string(fit.purpose)},
          {"available_bytes", fit.available_bytes},
          {"weights_bytes", fit.weights_bytes},
          {"missing_bytes", fit.missing_bytes},
          {"dtype_that_fits",
           fit.dtype_that_fits ? Json(to_string(*fit.dtype_that_fits)) : Json(nullptr)},
          {"request_missing_bytes", fit.request_missing_bytes},
          {"longest_context", point_json(fit.longest_context)},
          {"largest_batch", point_json(fit.largest_batch)},
          {"notes", fit.notes}};
}

}  // namespace

Json to_json(const CountReport& report) {
  const Count& count = report.count;
  Json json = {{"name", report.name},
               {"family", report.architecture->family},
               {"model_class", report.architecture->model_class},
               {"context", count.context},
               {"batch", count.batch},
               {"parameters", parameters_json(count.parameters)},
               {"weights",
                {{"dtype", count.weights.is_stored ? Json(count.weights.storage)
                                                   : Json(to_string(count.weights.dtype))},
                 {"bytes", count.weights.bytes},
                 {"extra_bytes", count.weights.extra_bytes}}},
               {"kv_cache", cache_json(count.kv_cache)},
               {"activations", activations_json(count.activations)}};
  json = compute_json(std::move(json), count);
  json["training"] = count.training ? training_json(*count.training) : Json(nullptr);
  json["lora"] = count.lora ? lora_json(*count.lora) : Json(nullptr);
  json["request"] = point_json(report.request);
  json["fit"] = report.fit ? fit_json(*report.fit) : Json(nullptr);
  json["notes"] = count.notes;
  return json;
}

Json to_json(const TensorCount& count, const ModelInput& input) {
  Json json = {
      {"name", input.name},
      {"family", nullptr},
      {"no_architecture", input.no_architecture},
      {"is_config_broken", input.is_config_broken},
      {"parameters",
       {{"total", count.parameters},
        {"active", nullptr},
        {"embedding", nullptr},
        {"layer_matrices", count.layer_matrix_parameters}}},
      {"weights", {{"dtype", "as stored"}, {"bytes", count.weights_bytes}}},
      {"kv_cache", {{"bytes_per_token", nullptr}, {"bytes_at_context", nullptr}}},
      {"macs", {{"forward_full_square", nullptr}}},
      {"flops", {{"linear_per_token", count.flops_linear_per_token}, {"forward", nullptr}}}};
  json["lora"] = nullptr;
  if (count.lora_rank > 0) {
    json["lora"] = {{"rank", count.lora_rank}, {"parameters", count.lora_parameters}};
  }
  return json;
}

}  // namespace eckart::cli

#include "inspect_json.h"

#include "eckart/io/findings.h"

#include <optional>
#include <utility>

#include "inspect_spectrum.h"

namespace eckart::cli {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json shape_json(const Shape& shape) { return Json(shape.sizes()); }

Json axes_json(const Shape& shape) {
  Json axes = Json::array();
  for (const std::string& name : shape.names()) axes.push_back(text_or_null(name));
  return axes;
}

Json node_json(const SummaryNode& node, const CheckpointSpectrum* spectra) {
  Json json = {{"path", node.path},
               {"copies", node.n_copies},
               {"parameters", node.parameters},
               {"bytes", node.bytes},
               {"share", node.share}};
  if (node.is_tensor) {
    json["shape"] = shape_json(node.shape);
    json["axes"] = axes_json(node.shape);
    json["dtype"] = node.storage;
    json["with_bias"] = node.with_bias;
    if (spectra != nullptr) {
      const NodeSpectrum spectrum = spectrum_of(node, *spectra);
      json["stable_rank"] = or_null(spectrum.stable_rank);
      json["effective_rank"] = or_null(spectrum.effective_rank);
      json["alpha"] = or_null(spectrum.alpha);
    }
    return json;
  }
  Json children = Json::array();
  for (const SummaryNode& child : node.children) children.push_back(node_json(child, spectra));
  json["modules"] = std::move(children);
  return json;
}

Json architecture_json(const Architecture& a) {
  Json json = {{"n_layers", a.n_layers},     {"d_model", a.d_model}, {"n_heads", a.n_heads},
               {"n_kv_heads", a.n_kv_heads}, {"d_head", a.d_head},   {"d_ff", a.d_ff},
               {"n_vocab", a.n_vocab},       {"context", a.context}, {"is_decoder", a.is_decoder},
               {"is_tied", a.is_tied},       {"windows", a.windows}};
  if (a.n_experts > 0) {
    json["n_experts"] = a.n_experts;
    json["n_active_experts"] = a.n_active_experts;
    json["n_shared_experts"] = a.n_shared_experts;
    json["d_expert"] = a.d_expert;
  }
  if (a.latent) {
    json["kv_lora_rank"] = a.latent->kv_rank;
    json["qk_rope_head_dim"] = a.latent->d_rope;
  }
  json["assumptions"] = a.assumptions;
  return json;
}

Json differences_json(const std::vector<Difference>& differences) {
  Json list = Json::array();
  for (const Difference& d : differences) {
    list.push_back({{"level", to_string(d.level)},
                    {"kind", d.kind},
                    {"tensor", text_or_null(d.tensor)},
                    {"expected", text_or_null(d.expected)},
                    {"found", text_or_null(d.found)},
                    {"count", d.count},
                    {"message", d.message},
                    {"hint", text_or_null(d.hint)}});
  }
  return list;
}

Json tied_json(const std::vector<TiedValues>& all) {
  Json list = Json::array();
  for (const TiedValues& tied : all) {
    list.push_back(
        {{"tensor", tied.tensor->name}, {"tied_to", tied.tied_to->name}, {"equal", tied.is_equal}});
  }
  return list;
}

Json values_json(const std::vector<TensorValues>& all) {
  Json tensors = Json::array();
  std::uint64_t n_values = 0;
  for (const TensorValues& values : all) {
    n_values += values.scan.n_values;
    if (describe_values(values).empty()) continue;
    tensors.push_back({{"tensor", values.tensor->name},
                       {"values", values.scan.n_values},
                       {"nan", values.scan.n_nan},
                       {"infinite", values.scan.n_infinite},
                       {"first_nan", or_null(values.scan.first_nan)},
                       {"first_infinite", or_null(values.scan.first_infinite)},
                       {"all_zero", values.scan.all_zero}});
  }
  return {{"read", n_values}, {"ok", tensors.empty()}, {"tensors", std::move(tensors)}};
}

Json tensors_json(const Checkpoint& checkpoint) {
  Json list = Json::array();
  for (const CheckpointTensor& entry : checkpoint.tensors()) {
    list.push_back({{"name", entry.stored->name},
                    {"dtype", to_string(entry.stored->dtype)},
                    {"shape", shape_json(entry.stored->shape)},
                    {"file", checkpoint.shards()[entry.shard].path()},
                    {"begin", entry.stored->begin},
                    {"end", entry.stored->end}});
  }
  return list;
}

Json dtypes_json(const std::vector<LogicalTensor>& tensors) {
  Json list = Json::array();
  for (const StorageTotal& total : storage_totals(tensors)) {
    list.push_back({{"dtype", total.storage},
                    {"kind", to_string(total.kind)},
                    {"tensors", total.n_tensors},
                    {"parameters", total.parameters},
                    {"bytes", total.bytes}});
  }
  return list;
}

Json not_counted_json(const std::vector<NotCounted>& items) {
  Json list = Json::array();
  for (const NotCounted& item : items) {
    list.push_back({{"name", item.name},
                    {"dtype", item.storage},
                    {"reason", item.reason},
                    {"tensors", item.n_tensors},
                    {"elements", item.elements},
                    {"bytes", item.bytes}});
  }
  return list;
}

}  // namespace

Json to_json(const Inspection& inspection, bool list_tensors) {
  const ModelInput& input = inspection.input;
  const Checkpoint& checkpoint = *input.checkpoint;
  Json json = {{"path", checkpoint.path()}, {"name", input.name}};
  json["family"] = input.architecture ? Json(input.architecture->family) : Json(nullptr);
  json["model_class"] = input.architecture ? Json(input.architecture->model_class) : Json(nullptr);
  json["architecture"] =
      input.architecture ? architecture_json(*input.architecture) : Json(nullptr);
  json["no_architecture"] = text_or_null(input.no_architecture);
  json["is_config_broken"] = input.is_config_broken;
  json["parameters"] = {{"total", inspection.summary.root.parameters},
                        {"active", inspection.active_parameters}};
  json["bytes"] = checkpoint.tensor_bytes();
  json["dtypes"] = dtypes_json(input.tensors);
  Json shards = Json::array();
  for (const SafetensorsFile& shard : checkpoint.shards()) {
    shards.push_back({{"file", shard.path()},
                      {"bytes", shard.file_size()},
                      {"tensors", shard.tensors().size()},
                      {"metadata", shard.metadata()}});
  }
  json["shards"] = std::move(shards);
  Json modules = Json::array();
  for (const SummaryNode& node : inspection.summary.root.children) {
    modules.push_back(node_json(node, inspection.spectra ? &*inspection.spectra : nullptr));
  }
  json["modules"] = std::move(modules);
  json["modules_are_flat"] = inspection.summary.is_flat;
  json["modules_omitted"] = inspection.summary.n_omitted;
  json["not_counted"] = not_counted_json(inspection.summary.not_counted);
  json["differences"] = differences_json(inspection.differences);
  Json warnings = Json::array();
  for (const Finding& finding : other_warnings(inspection)) {
    warnings.push_back({{"file", finding.file},
                        {"tensor", text_or_null(finding.tensor)},
                        {"rule", finding.rule},
                        {"message", finding.message}});
  }
  json["warnings"] = std::move(warnings);
  if (inspection.values) {
    json["values"] = values_json(*inspection.values);
    json["values"]["tied"] = tied_json(inspection.tied);
  }
  if (list_tensors) json["tensors"] = tensors_json(checkpoint);
  return json;
}

}  // namespace eckart::cli

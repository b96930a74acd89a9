#include "eckart/lora/extract_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace eckart {
namespace {

using Json = nlohmann::ordered_json;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

Json tensor_json(const ExtractedTensor& tensor) {
  Json json = {{"name", tensor.name},
               {"fate", to_string(tensor.fate)},
               {"shape", tensor.shape.sizes()},
               {"base_norm", tensor.base_norm},
               {"difference_norm", tensor.difference_norm}};
  if (!tensor.reason.empty()) json["reason"] = tensor.reason;
  if (tensor.fate == ExtractFate::low_rank && tensor.rank > 0) {
    json["rank"] = tensor.rank;
    json["energy_kept"] = tensor.energy_kept();
    json["certified_error"] = share(tensor.certified_error, tensor.difference_norm);
    if (!tensor.method.empty()) json["method"] = tensor.method;
  }
  if (tensor.fate != ExtractFate::unchanged) {
    json["error"] = share(tensor.error, tensor.difference_norm);
  }
  return json;
}

}  // namespace

double ExtractedTensor::energy_kept() const {
  const double lost = share(certified_error, difference_norm);
  return 1 - lost * lost;
}

ExtractReport empty_report(const ExtractPlan& plan, const ExtractOptions& options) {
  ExtractReport report;
  report.consumer = options.rules.consumer;
  report.base_norm = plan.base_norm;
  report.difference_norm = plan.difference_norm;
  report.notes = plan.notes;
  for (const PlannedExtract& tensor : plan.tensors) {
    report.tensors.push_back({.name = tensor.name,
                              .fate = tensor.fate,
                              .reason = tensor.reason,
                              .shape = tensor.shape,
                              .base_norm = tensor.norms.base,
                              .difference_norm = tensor.norms.difference});
  }
  return report;
}

void total_errors(ExtractReport& report) {
  for (ExtractedTensor& tensor : report.tensors) {
    if (tensor.fate == ExtractFate::skipped) {
      tensor.error = tensor.difference_norm;
      report.left_out = std::hypot(report.left_out, tensor.difference_norm);
    }
    report.error = std::hypot(report.error, tensor.error);
  }
}

void note_missed_error(const ExtractRanks& ranks, ExtractReport& report) {
  const double asked = ranks.relative_error;
  if (asked == 0) return;
  Index n = 0;
  double largest = 0;
  for (const ExtractedTensor& entry : report.tensors) {
    const bool is_missed =
        entry.fate == ExtractFate::low_rank && entry.error > asked * entry.difference_norm;
    if (!is_missed) continue;
    ++n;
    largest = std::max(largest, share(entry.error, entry.difference_norm));
  }
  if (n == 0) return;
  const std::string why =
      ranks.max_rank > 0
          ? "the largest rank, or the rounding of the factors, does not let it be less"
          : fmt::format("{} rounds the factors by so much", to_string(report.dtype));
  report.notes.push_back(fmt::format("the error is above {:.3g} for {} {}, at most {:.3g}: {}",
                                     asked, n, n == 1 ? "matrix" : "matrices", largest, why));
}

std::string entry_text(const ExtractedTensor& entry) {
  const Json json = {{"reason", entry.reason},
                     {"rank", entry.rank},
                     {"certified_error", entry.certified_error},
                     {"error", entry.error},
                     {"method", entry.method}};
  return json.dump();
}

void read_entry(const std::string& text, ExtractedTensor& entry) {
  const Json json = Json::parse(text);
  entry.reason = json.at("reason").get<std::string>();
  entry.rank = json.at("rank").get<Index>();
  entry.certified_error = json.at("certified_error").get<double>();
  entry.error = json.at("error").get<double>();
  entry.method = json.at("method").get<std::string>();
}

std::string options_text(const ExtractOptions& options) {
  const ExtractRules& rules = options.rules;
  const ExtractRanks& ranks = options.ranks;
  const Json json = {{"include", rules.include},
                     {"exclude", rules.exclude},
                     {"tables", static_cast<int>(rules.tables)},
                     {"norms", rules.norms},
                     {"biases", rules.biases},
                     {"consumer", to_string(rules.consumer)},
                     {"rank", ranks.rank},
                     {"energy", ranks.energy},
                     {"relative_error", ranks.relative_error},
                     {"budget_parameters", ranks.budget_parameters.value_or(0)},
                     {"budget_bytes", ranks.budget_bytes.value_or(0)},
                     {"max_rank", ranks.max_rank},
                     {"dtype", options.dtype ? to_string(*options.dtype) : ""},
                     {"base_name", options.base_name},
                     {"seed", options.seed}};
  return json.dump();
}

std::string to_json(const ExtractReport& report) {
  Json tensors = Json::array();
  for (const ExtractedTensor& tensor : report.tensors) tensors.push_back(tensor_json(tensor));
  const Json json = {{"consumer", to_string(report.consumer)},
                     {"dtype", to_string(report.dtype)},
                     {"rank", report.rank},
                     {"parameters", report.parameters},
                     {"bytes", report.bytes},
                     {"base_norm", report.base_norm},
                     {"difference_norm", report.difference_norm},
                     {"error", share(report.error, report.difference_norm)},
                     {"left_out", share(report.left_out, report.difference_norm)},
                     {"notes", report.notes},
                     {"tensors", tensors}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace eckart

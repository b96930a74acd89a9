#include "spectrum_data.h"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "array_output.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

constexpr std::array<const char*, energy_shares.size()> share_names = {"0.5", "0.9", "0.99"};

Json value_or_null(const std::optional<Estimate>& estimate) {
  return estimate ? Json(estimate->value) : Json(nullptr);
}

Json count_or_null(const std::optional<Estimate>& estimate) {
  return estimate ? Json(static_cast<Index>(estimate->value)) : Json(nullptr);
}

Json error_or_null(const std::optional<Estimate>& estimate) {
  return estimate ? Json(estimate->error) : Json(nullptr);
}

Json position_json(const std::optional<MatrixPosition>& position) {
  return position ? Json::array({position->row, position->column}) : Json(nullptr);
}

Json errors_json(const Spectrum& s) {
  Json ranks = nullptr, top = Json::array();
  if (s.energy_ranks) {
    ranks = Json::object();
    for (std::size_t i = 0; i < share_names.size(); ++i) {
      ranks[share_names[i]] = (*s.energy_ranks)[i].error;
    }
  }
  for (const Estimate& value : s.top) top.push_back(value.error);
  return {{"spectral_norm", error_or_null(s.spectral_norm)},
          {"stable_rank", error_or_null(s.stable_rank)},
          {"effective_rank", error_or_null(s.effective_rank)},
          {"numerical_rank", error_or_null(s.numerical_rank)},
          {"energy_ranks", std::move(ranks)},
          {"top", std::move(top)},
          {"alpha", s.power_law ? Json(s.alpha_error) : Json(nullptr)},
          {"noise", s.marchenko_pastur ? Json(s.noise_error) : Json(nullptr)},
          {"n_above", s.marchenko_pastur ? Json(s.n_above_error) : Json(nullptr)}};
}

Json power_law_json(const Spectrum& s) {
  if (!s.power_law) return nullptr;
  const PowerLaw& law = *s.power_law;
  return {{"alpha", law.alpha},
          {"standard_error", law.standard_error},
          {"xmin", number_json(law.xmin)},
          {"sigma_min", law.sigma_min},
          {"ks_distance", law.ks_distance},
          {"n_tail", law.n_tail},
          {"n_values", law.n_values},
          {"p_value", law.p_value ? Json(*law.p_value) : Json(nullptr)}};
}

Json marchenko_pastur_json(const Spectrum& s) {
  if (!s.marchenko_pastur) return nullptr;
  const MarchenkoPastur& bulk = *s.marchenko_pastur;
  return {{"noise", bulk.noise},
          {"lower_edge", bulk.lower_edge},
          {"upper_edge", bulk.upper_edge},
          {"n_above", bulk.n_above},
          {"spike_threshold", bulk.spike_threshold},
          {"n_spikes", bulk.n_spikes}};
}

Json density_json(const Spectrum& s) {
  if (!s.density) return nullptr;
  Json edges = Json::array(), counts = Json::array(), errors = Json::array();
  for (Index i = 0; i < s.density->edges.count(); ++i) edges.push_back(s.density->edges(i));
  for (const Estimate& count : s.density->counts) {
    counts.push_back(count.value);
    errors.push_back(count.error);
  }
  return {
      {"edges", std::move(edges)}, {"counts", std::move(counts)}, {"errors", std::move(errors)}};
}

void add_figures(const Spectrum& s, Json& json) {
  json["frobenius_norm"] = number_json(s.frobenius_norm);
  json["spectral_norm"] = value_or_null(s.spectral_norm);
  json["stable_rank"] = value_or_null(s.stable_rank);
  json["effective_rank"] = value_or_null(s.effective_rank);
  json["numerical_rank"] = count_or_null(s.numerical_rank);
  json["top"] = Json::array();
  for (const Estimate& value : s.top) json["top"].push_back(value.value);
  json["energy_ranks"] = nullptr;
  if (s.energy_ranks) {
    json["energy_ranks"] = Json::object();
    for (std::size_t i = 0; i < share_names.size(); ++i) {
      json["energy_ranks"][share_names[i]] = static_cast<Index>((*s.energy_ranks)[i].value);
    }
  }
  json["errors"] = errors_json(s);
  json["power_law"] = power_law_json(s);
  json["marchenko_pastur"] = marchenko_pastur_json(s);
  json["density"] = density_json(s);
  json["floor"] = s.floor;
  json["n_below_floor"] = s.n_below_floor;
}

Json matrix_json(const MatrixSpectrum& one) {
  const Spectrum& s = one.spectrum;
  const MatrixStatistics& statistics = s.statistics;
  Json axes = Json::array();
  for (const std::string& axis : one.matrix.shape.names()) {
    axes.push_back(axis.empty() ? Json(nullptr) : Json(axis));
  }
  Json json = {{"name", one.matrix.name},
               {"tensor", one.matrix.tensor},
               {"shape", one.matrix.shape.sizes()},
               {"axes", std::move(axes)},
               {"dtype", to_string(one.matrix.dtype)},
               {"is_exact", s.is_exact},
               {"method", s.method},
               {"passes", s.passes}};
  add_figures(s, json);
  json["largest"] = {{"value", statistics.largest}, {"at", position_json(statistics.largest_at)}};
  json["outlier_rows"] = statistics.outlier_rows;
  json["outlier_columns"] = statistics.outlier_columns;
  json["nan"] = {{"count", statistics.n_nan}, {"first", position_json(statistics.first_nan)}};
  json["infinite"] = {{"count", statistics.n_infinite},
                      {"first", position_json(statistics.first_infinite)}};
  return json;
}

// Quoted where a letter would end the cell.
std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text)
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + "\"";
}

std::string csv_number(const std::optional<Estimate>& estimate, bool error) {
  return estimate ? fmt::format("{}", error ? estimate->error : estimate->value) : "";
}

std::string csv_line(const MatrixSpectrum& one) {
  const Spectrum& s = one.spectrum;
  std::vector<std::string> cells = {
      csv_text(one.matrix.name),
      std::to_string(one.matrix.shape.size(0)),
      std::to_string(one.matrix.shape.size(1)),
      std::string(to_string(one.matrix.dtype)),
      s.is_exact ? "true" : "false",
      std::isnan(s.frobenius_norm) ? "" : fmt::format("{}", s.frobenius_norm)};
  for (const auto* estimate :
       {&s.spectral_norm, &s.stable_rank, &s.effective_rank, &s.numerical_rank}) {
    cells.push_back(csv_number(*estimate, false));
    cells.push_back(csv_number(*estimate, true));
  }
  for (std::size_t i = 0; i < energy_shares.size(); ++i) {
    std::optional<Estimate> rank;
    if (s.energy_ranks) rank = (*s.energy_ranks)[i];
    cells.push_back(csv_number(rank, false));
    cells.push_back(csv_number(rank, true));
  }
  const auto add = [&](bool there, double value) {
    cells.push_back(there ? fmt::format("{}", value) : "");
  };
  const PowerLaw law = s.power_law.value_or(PowerLaw{});
  const bool has_law = s.power_law.has_value();
  add(has_law, law.alpha);
  add(has_law, law.standard_error);
  add(has_law, s.alpha_error);
  add(has_law && std::isfinite(law.xmin), law.xmin);
  add(has_law, law.sigma_min);
  add(has_law, law.ks_distance);
  add(has_law, static_cast<double>(law.n_tail));
  add(law.p_value.has_value(), law.p_value.value_or(0));
  const MarchenkoPastur bulk = s.marchenko_pastur.value_or(MarchenkoPastur{});
  const bool has_bulk = s.marchenko_pastur.has_value();
  add(has_bulk, bulk.noise);
  add(has_bulk, bulk.upper_edge);
  add(has_bulk, static_cast<double>(bulk.n_above));
  add(has_bulk, static_cast<double>(bulk.n_spikes));
  cells.push_back(std::to_string(s.statistics.outlier_rows.size()));
  cells.push_back(std::to_string(s.statistics.outlier_columns.size()));
  cells.push_back(std::to_string(s.statistics.n_nan));
  cells.push_back(std::to_string(s.statistics.n_infinite));
  return fmt::format("{}\n", fmt::join(cells, ","));
}

}  // namespace

Json spectrum_json(const std::string& name, const CheckpointSpectrum& found) {
  Json tensors = Json::array(), left_out = Json::array(), unread = Json::array();
  for (const MatrixSpectrum& one : found.matrices) tensors.push_back(matrix_json(one));
  for (const LeftOut& one : found.left_out) {
    (one.is_matrix ? unread : left_out).push_back({{"name", one.name}, {"reason", one.reason}});
  }
  return {{"name", name},
          {"tensors", std::move(tensors)},
          {"skipped", std::move(unread)},
          {"left_out", std::move(left_out)}};
}

std::string spectrum_csv(const CheckpointSpectrum& found) {
  std::string text =
      "name,rows,columns,dtype,is_exact,frobenius_norm,spectral_norm,spectral_norm_error,"
      "stable_rank,stable_rank_error,effective_rank,effective_rank_error,numerical_rank,"
      "numerical_rank_error,energy_rank_0.5,energy_rank_0.5_error,energy_rank_0.9,"
      "energy_rank_0.9_error,energy_rank_0.99,energy_rank_0.99_error,alpha,alpha_standard_error,"
      "alpha_error,xmin,sigma_min,ks_distance,n_tail,p_value,noise,upper_edge,n_above,n_spikes,"
      "outlier_rows,"
      "outlier_columns,n_nan,n_infinite\n";
  for (const MatrixSpectrum& one : found.matrices) text += csv_line(one);
  return text;
}

}  // namespace eckart::cli

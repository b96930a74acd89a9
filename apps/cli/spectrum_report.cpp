#include "spectrum_report.h"

#include "eckart/io/findings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "console.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

// Estimates are marked, so that nobody takes them for the figure itself.
std::string cell(const std::optional<Estimate>& estimate) {
  if (!estimate) return "-";
  return (estimate->error > 0 ? "~" : "") + figure(estimate->value);
}

std::string whole(const std::optional<Estimate>& estimate) {
  if (!estimate) return "-";
  return (estimate->error > 0 ? "~" : "") + grouped(static_cast<Index>(estimate->value));
}

std::optional<Estimate> share_of(const Spectrum& s, std::size_t share) {
  if (!s.energy_ranks) return std::nullopt;
  return (*s.energy_ranks)[share];
}

std::string alpha_cell(const Spectrum& s) {
  if (!s.power_law) return "-";
  return fmt::format("{}{:.2f}", s.alpha_error > 0 ? "~" : "", s.power_law->alpha);
}

std::string table_text(const CheckpointSpectrum& found) {
  using Align = Table::Align;
  const int width = terminal_width();
  const bool is_wide = width == 0 || width >= 128;
  std::vector<Table::Column> columns = {{"matrix"}, {"shape", Align::right}};
  if (is_wide) columns.push_back({"Frobenius", Align::right});
  for (const char* title : {"sigma_1", "stable", "effective", "rank"}) {
    columns.push_back({title, Align::right});
  }
  if (is_wide) columns.push_back({"50%", Align::right});
  columns.push_back({"90%", Align::right});
  if (is_wide) columns.push_back({"99%", Align::right});
  columns.push_back({"alpha", Align::right});
  if (is_wide) columns.push_back({"D", Align::right});
  columns.push_back({"above", Align::right});
  Table table(columns);
  for (const MatrixSpectrum& one : found.matrices) {
    const Spectrum& s = one.spectrum;
    std::vector<std::string> cells = {printable(one.matrix.name),
                                      sizes_to_string(one.matrix.shape)};
    if (is_wide) cells.push_back(figure(s.frobenius_norm));
    cells.push_back(cell(s.spectral_norm));
    cells.push_back(cell(s.stable_rank));
    cells.push_back(cell(s.effective_rank));
    cells.push_back(whole(s.numerical_rank));
    if (is_wide) cells.push_back(whole(share_of(s, 0)));
    cells.push_back(whole(share_of(s, 1)));
    if (is_wide) cells.push_back(whole(share_of(s, 2)));
    cells.push_back(alpha_cell(s));
    if (is_wide)
      cells.push_back(s.power_law ? fmt::format("{:.3f}", s.power_law->ks_distance) : "-");
    cells.push_back(
        s.marchenko_pastur
            ? whole(Estimate{static_cast<double>(s.marchenko_pastur->n_above), s.n_above_error})
            : "-");
    table.add(std::move(cells));
  }
  return table.empty() ? "" : table.text();
}

std::string legend_text(const CheckpointSpectrum& found) {
  const bool any_estimate = std::any_of(found.matrices.begin(), found.matrices.end(),
                                        [](const auto& one) { return one.spectrum.passes > 0; });
  std::string text =
      "  stable: |W|_F^2 / sigma_1^2; effective: exp of the entropy of sigma / sum; 90%: singular "
      "values that\n  hold so much of |W|_F^2; alpha: power law of sigma^2; above: values above "
      "the "
      "Marchenko-Pastur edge\n";
  if (any_estimate) {
    text +=
        "  ~ estimated from random vectors: --json has each error at 95%, --exact computes all "
        "values\n";
  }
  return text;
}

// NaN, zeros, and values that are not resolved.
std::vector<std::string> faults_of(const Spectrum& s) {
  const MatrixStatistics& statistics = s.statistics;
  std::vector<std::string> faults;
  const auto not_finite = [&](Index count, const char* what,
                              const std::optional<MatrixPosition>& first) {
    if (count == 0) return;
    faults.push_back(fmt::format("{} {} (first at [{}, {}]): no singular values", grouped(count),
                                 what, first->row, first->column));
  };
  not_finite(statistics.n_nan, "NaN", statistics.first_nan);
  not_finite(statistics.n_infinite, "infinite", statistics.first_infinite);
  if (statistics.is_finite() && s.frobenius_norm == 0) faults.emplace_back("every entry is 0");
  if (s.n_below_floor > 0) {
    faults.push_back(fmt::format("{} below {}, where rounding begins",
                                 counted(static_cast<std::uint64_t>(s.n_below_floor), "value"),
                                 figure(s.floor)));
  }
  return faults;
}

// What is wrong is said of each matrix; outliers, which most trained matrices have, are counted.
std::string notes_text(const CheckpointSpectrum& found) {
  std::string text;
  std::uint64_t n_with_outliers = 0;
  for (const MatrixSpectrum& one : found.matrices) {
    const MatrixStatistics& statistics = one.spectrum.statistics;
    const bool is_error = !statistics.is_finite();
    for (const std::string& note : faults_of(one.spectrum)) {
      text += "  " + (is_error ? red("error  ") : "note   ") + " " + printable(one.matrix.name) +
              ": " + note + "\n";
    }
    if (!statistics.outlier_rows.empty() || !statistics.outlier_columns.empty()) ++n_with_outliers;
  }
  if (n_with_outliers > 0) {
    text += fmt::format(
        "  {} of {} matrices {} rows or columns far larger than the others: --tensor NAME lists "
        "them\n",
        grouped(n_with_outliers), grouped(std::uint64_t{found.matrices.size()}),
        n_with_outliers == 1 ? "has" : "have");
  }
  return text;
}

std::string left_out_text(const CheckpointSpectrum& found) {
  std::map<std::string, std::uint64_t> counts;
  std::string text;
  for (const LeftOut& one : found.left_out) {
    if (one.is_matrix) {
      text += "  " + yellow("skipped") + " " + printable(one.name) + ": " + printable(one.reason) +
              "\n";
    } else {
      ++counts[one.reason];
    }
  }
  for (const auto& [reason, count] : counts) {
    text += fmt::format("  left out: {}, {}\n", counted(count, "tensor"), printable(reason));
  }
  return text;
}

std::string power_law_text(const Spectrum& s) {
  const PowerLaw& law = *s.power_law;
  std::string text =
      fmt::format("alpha {} +- {} from sigma {} on ({} of {} values), D {:.3f}", figure(law.alpha),
                  figure(law.standard_error), figure(law.sigma_min), grouped(law.n_tail),
                  grouped(law.n_values), law.ks_distance);
  if (law.p_value) text += fmt::format(", p {:.2f}", *law.p_value);
  if (s.alpha_error > 0) text += ", estimated +- " + figure(s.alpha_error);
  return text;
}

std::string marchenko_pastur_text(const Spectrum& s) {
  const MarchenkoPastur& bulk = *s.marchenko_pastur;
  return fmt::format(
      "noise {}, bulk {} to {}; {} above, {} beyond chance (99%)",
      with_error({bulk.noise, s.noise_error}), figure(bulk.lower_edge), figure(bulk.upper_edge),
      with_error({static_cast<double>(bulk.n_above), s.n_above_error}), grouped(bulk.n_spikes));
}

std::string details_text(const MatrixSpectrum& one) {
  const Spectrum& s = one.spectrum;
  std::string text = "\n" + bold(printable(one.matrix.name)) + "   " + to_string(one.matrix.shape) +
                     " " + std::string(to_string(one.matrix.dtype)) + "   " + dim(s.method) + "\n";
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<16} {}\n", label, value);
  };
  line("Frobenius norm", figure(s.frobenius_norm));
  if (s.spectral_norm) line("spectral norm", with_error(*s.spectral_norm));
  if (s.stable_rank) line("stable rank", with_error(*s.stable_rank));
  if (s.effective_rank) line("effective rank", with_error(*s.effective_rank));
  if (s.numerical_rank) line("numerical rank", with_error(*s.numerical_rank));
  if (s.energy_ranks) {
    const auto& ranks = *s.energy_ranks;
    line("energy", fmt::format("50% in {}, 90% in {}, 99% in {} singular values",
                               with_error(ranks[0]), with_error(ranks[1]), with_error(ranks[2])));
  }
  if (s.power_law) line("power law", power_law_text(s));
  if (s.marchenko_pastur) line("Marchenko-Pastur", marchenko_pastur_text(s));
  if (const auto& at = s.statistics.largest_at) {
    line("largest entry",
         fmt::format("{} at [{}, {}]", figure(s.statistics.largest), at->row, at->column));
  }
  std::vector<std::string> top;
  top.reserve(s.top.size());
  for (const Estimate& value : s.top) top.push_back(with_error(value));
  if (!top.empty()) line("largest sigma", fmt::format("{}", fmt::join(top, "  ")));
  for (const std::string& note : notes_of(s)) line("note", note);
  const int width = terminal_width() == 0 ? 80 : std::min(terminal_width(), 110);
  return text + drawn_spectrum(s, width - 15, 12);
}

std::string list_text(const std::vector<Index>& positions) {
  constexpr std::size_t shown = 8;
  std::string text = fmt::format(
      "{}",
      fmt::join(positions.begin(),
                positions.begin() + static_cast<std::ptrdiff_t>(std::min(shown, positions.size())),
                ", "));
  return text + (positions.size() > shown ? ", …" : "");
}

}  // namespace

std::string figure(double value) {
  if (std::isnan(value)) return "-";
  const double magnitude = std::abs(value);
  if (value == std::floor(value) && magnitude < 1e6) return fmt::format("{:.0f}", value);
  if (magnitude >= 1e5 || magnitude < 1e-3) return fmt::format("{:.2e}", value);
  if (magnitude >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:#.4g}", value);
}

std::string with_error(const Estimate& estimate) {
  if (!(estimate.error > 0)) return figure(estimate.value);
  return fmt::format("~{} +- {:.2g}", figure(estimate.value), estimate.error);
}

std::vector<std::string> notes_of(const Spectrum& s) {
  const MatrixStatistics& statistics = s.statistics;
  std::vector<std::string> notes = faults_of(s);
  const auto outliers = [&](const std::vector<Index>& which, const char* noun, double threshold) {
    if (which.empty()) return;
    notes.push_back(fmt::format("{} of norm above {}: {}",
                                counted(std::uint64_t{which.size()}, noun), figure(threshold),
                                list_text(which)));
  };
  outliers(statistics.outlier_rows, "row", statistics.row_threshold);
  outliers(statistics.outlier_columns, "column", statistics.column_threshold);
  return notes;
}

std::string spectrum_text(const std::string& head, const CheckpointSpectrum& found, bool details) {
  std::string text = head + "\n";
  // The details of one matrix alone say all that its line would.
  if (!details || found.matrices.size() > 1) text += "\n" + table_text(found);
  if (found.matrices.size() > 1) text += legend_text(found);
  const std::string notes = details ? "" : notes_text(found);
  const std::string left_out = left_out_text(found);
  if (!notes.empty()) text += "\n" + notes;
  if (!left_out.empty()) text += "\n" + left_out;
  if (details) {
    for (const MatrixSpectrum& one : found.matrices) text += details_text(one);
  }
  return text;
}

}  // namespace eckart::cli

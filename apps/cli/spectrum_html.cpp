#include "spectrum_html.h"

#include "eckart/io/findings.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "console.h"
#include "markup.h"
#include "spectrum_page.h"
#include "spectrum_report.h"
#include "spectrum_svg.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

std::string name_of(const MatrixSpectrum& one) { return escaped(printable(one.matrix.name)); }

std::string shown(const Estimate& estimate) {
  if (!(estimate.error > 0)) return figure(estimate.value);
  return fmt::format("≈ {} ± {:.2g}", figure(estimate.value), estimate.error);
}

// Of the table: the number that rows are sorted by, and what is shown of it.
std::string html_cell(const std::optional<Estimate>& estimate) {
  if (!estimate) return "<td data-v=\"\">–</td>";
  return fmt::format("<td data-v=\"{}\">{}{}</td>", estimate->value,
                     estimate->error > 0 ? "≈ " : "", figure(estimate->value));
}

std::string row(const MatrixSpectrum& one, std::size_t number) {
  const Spectrum& s = one.spectrum;
  std::optional<Estimate> rank_90, alpha, above;
  if (s.energy_ranks) rank_90 = (*s.energy_ranks)[1];
  if (s.power_law) alpha = {s.power_law->alpha, s.alpha_error};
  if (s.marchenko_pastur) {
    above = {static_cast<double>(s.marchenko_pastur->n_above), s.n_above_error};
  }
  std::string text = fmt::format(
      "<tr data-name=\"{0}\"><td data-v=\"{1}\"><a href=\"#m{1}\">{0}</a></td>"
      "<td data-v=\"{2}\">{3}</td><td>{4}</td>",
      name_of(one), number, one.matrix.shape.count(), sizes_to_string(one.matrix.shape),
      spark_svg(s));
  text += html_cell(Estimate{s.frobenius_norm, 0});
  for (const auto& estimate : {s.spectral_norm, s.stable_rank, s.effective_rank, s.numerical_rank,
                               rank_90, alpha, above}) {
    text += html_cell(estimate);
  }
  return text + "</tr>\n";
}

std::string table(const CheckpointSpectrum& found) {
  std::string text = "<div class=\"sheet\"><table><thead><tr>";
  for (const char* title :
       {"matrix", "shape", "spectrum", "‖W‖<sub>F</sub>", "σ<sub>1</sub>", "stable rank",
        "effective rank", "rank", "90%", "alpha", "above edge"}) {
    const bool is_sortable = title != std::string_view("spectrum");
    const char* const element = is_sortable ? "button" : "span";
    text += fmt::format("<th scope=\"col\"><{0}{1}>{2}</{0}></th>", element,
                        is_sortable ? " type=\"button\"" : "", title);
  }
  text += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < found.matrices.size(); ++i) text += row(found.matrices[i], i);
  return text + "</tbody></table></div>\n";
}

std::string facts(const Spectrum& s) {
  std::string text = "<dl>";
  const auto add = [&](const char* label, const std::string& value) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>", label, value);
  };
  add("Frobenius norm", figure(s.frobenius_norm));
  if (s.spectral_norm) add("spectral norm", shown(*s.spectral_norm));
  if (s.stable_rank) add("stable rank", shown(*s.stable_rank));
  if (s.effective_rank) add("effective rank", shown(*s.effective_rank));
  if (s.numerical_rank) add("numerical rank", shown(*s.numerical_rank));
  if (s.energy_ranks) {
    add("energy", fmt::format("50% in {}, 90% in {}, 99% in {} values", shown((*s.energy_ranks)[0]),
                              shown((*s.energy_ranks)[1]), shown((*s.energy_ranks)[2])));
  }
  if (s.power_law) {
    const PowerLaw& law = *s.power_law;
    std::string value = fmt::format("α = {:.2f} ± {:.2g} on {} of {} values, D = {:.3f}", law.alpha,
                                    law.standard_error, law.n_tail, law.n_values, law.ks_distance);
    if (law.p_value) value += fmt::format(", p = {:.2f}", *law.p_value);
    if (s.alpha_error > 0) value += fmt::format(" (estimated ± {:.2g})", s.alpha_error);
    add("power law", value);
  }
  if (s.marchenko_pastur) {
    const MarchenkoPastur& bulk = *s.marchenko_pastur;
    add("noise",
        fmt::format("{} an entry, edge {}: {} values above, {} beyond chance",
                    shown({bulk.noise, s.noise_error}), figure(bulk.upper_edge),
                    shown({static_cast<double>(bulk.n_above), s.n_above_error}), bulk.n_spikes));
  }
  if (const auto& at = s.statistics.largest_at) {
    add("largest entry",
        fmt::format("{} at [{}, {}]", figure(s.statistics.largest), at->row, at->column));
  }
  std::vector<std::string> top;
  top.reserve(s.top.size());
  for (const Estimate& value : s.top) top.push_back(shown(value));
  if (!top.empty()) add("largest σ", fmt::format("{}", fmt::join(top, ", ")));
  text += "</dl>";
  for (const std::string& note : notes_of(s)) {
    text += "<p class=\"note\">" + escaped(note) + "</p>";
  }
  return text;
}

std::string card(const MatrixSpectrum& one, std::size_t number) {
  return fmt::format(
      "<figure id=\"m{}\" data-name=\"{}\"><h2>{} <span>{} {}</span></h2><p class=\"method\">{}</p>"
      "{}{}{}</figure>\n",
      number, name_of(one), name_of(one), escaped(to_string(one.matrix.shape)),
      to_string(one.matrix.dtype), escaped(one.spectrum.method), values_svg(one.spectrum),
      density_svg(one.spectrum), facts(one.spectrum));
}

std::string left_out(const CheckpointSpectrum& found) {
  if (found.left_out.empty()) return "";
  std::string text = "<section class=\"rest\"><h2>Not shown</h2><ul>";
  for (const bool is_matrix : {true, false}) {
    for (const LeftOut& one : found.left_out) {
      if (one.is_matrix != is_matrix) continue;
      text += fmt::format("<li>{}: {}</li>", escaped(printable(one.name)),
                          escaped(printable(one.reason)));
    }
  }
  return text + "</ul></section>";
}

constexpr std::string_view legend =
    "<p class=\"legend\">The curve is the singular values σ<sub>i</sub>, largest first, on a "
    "logarithmic scale. The tinted range is where those of <b>noise</b> of the same median would "
    "lie (Marchenko, Pastur): what stands above its edge is structure. The dashed line is a "
    "<b>power law</b> fitted to the tail of λ = σ². <b>Stable rank</b> is ‖W‖<sub>F</sub>² / "
    "σ<sub>1</sub>², <b>effective rank</b> the exponential of the entropy of σ / Σσ, <b>90%</b> "
    "how "
    "many values hold that share of ‖W‖<sub>F</sub>². ≈ marks estimates, with the error at "
    "95%.</p>";

}  // namespace

std::string spectrum_html(const std::string& name, const std::string& head,
                          const CheckpointSpectrum& found) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>Spectra of {0}</title>\n<style>{1}</style>\n<main>\n<h1>Spectra of {0}</h1>\n"
      "<p class=\"head\">{2}</p>\n{3}\n",
      escaped(name), spectrum_style, escaped(head), legend);
  page +=
      "<label class=\"find\">Show names with <input type=\"search\" "
      "placeholder=\"q_proj\"></label>\n";
  page += table(found) + "<div class=\"cards\">\n";
  for (std::size_t i = 0; i < found.matrices.size(); ++i) page += card(found.matrices[i], i);
  page += "</div>\n" + left_out(found) + "\n</main>\n";
  return page + fmt::format("<script>{}</script>\n</html>\n", spectrum_script);
}

}  // namespace eckart::cli

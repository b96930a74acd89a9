#include "diff_report.h"

#include "eckart/io/findings.h"
#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "array_output.h"
#include "console.h"
#include "spectrum_report.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

constexpr std::array kinds = {DifferenceKind::changed, DifferenceKind::unchanged,
                              DifferenceKind::reshaped, DifferenceKind::added,
                              DifferenceKind::removed};
// Differences as large as the weights: these are hardly two states of one model.
constexpr double unrelated = 0.7;

std::uint64_t count_of(const CheckpointDifference& found, DifferenceKind kind) {
  return static_cast<std::uint64_t>(
      std::count_if(found.tensors.begin(), found.tensors.end(),
                    [kind](const TensorDifference& one) { return one.kind == kind; }));
}

std::string cell(const std::optional<Estimate>& estimate) {
  if (!estimate) return "-";
  return (estimate->error > 0 ? "~" : "") + figure(estimate->value);
}

std::string rank_cell(const std::optional<Spectrum>& spectrum, std::size_t share) {
  if (!spectrum || !spectrum->energy_ranks) return "-";
  const Estimate& rank = (*spectrum->energy_ranks)[share];
  return (rank.error > 0 ? "~" : "") + grouped(static_cast<Index>(rank.value));
}

std::string storage_cell(const TensorDifference& one) {
  return one.storage_a == one.storage_b ? one.storage_b : one.storage_a + " -> " + one.storage_b;
}

std::string changed_text(const CheckpointDifference& found) {
  using Align = Table::Align;
  const bool with_spectra = std::any_of(found.tensors.begin(), found.tensors.end(),
                                        [](const auto& one) { return one.spectrum.has_value(); });
  std::vector<Table::Column> columns = {{"changed"},
                                        {"shape", Align::right},
                                        {"dtype"},
                                        {"relative", Align::right},
                                        {"largest", Align::right}};
  if (with_spectra) {
    for (const char* title : {"sigma_1", "effective", "50%", "90%", "99%"}) {
      columns.push_back({title, Align::right});
    }
  }
  Table table(std::move(columns));
  for (const TensorDifference& one : found.tensors) {
    if (one.kind != DifferenceKind::changed) continue;
    std::vector<std::string> cells = {
        printable(one.name), sizes_to_string(*one.shape_b), storage_cell(one),
        one.has_values ? figure(one.relative) : "-", one.has_values ? figure(one.largest) : "-"};
    if (with_spectra) {
      const auto of = [&](auto member) {
        return one.spectrum ? cell((*one.spectrum).*member) : std::string("-");
      };
      cells.push_back(of(&Spectrum::spectral_norm));
      cells.push_back(of(&Spectrum::effective_rank));
      for (std::size_t share = 0; share < energy_shares.size(); ++share) {
        cells.push_back(rank_cell(one.spectrum, share));
      }
    }
    table.add(std::move(cells));
  }
  if (table.empty()) return {};
  std::string text = table.text() +
                     "  relative: ||b - a|| / ||a||, Frobenius; largest: the largest entry of |b - "
                     "a|\n";
  if (with_spectra) {
    text +=
        "  of b - a, sigma_1: the largest singular value; effective: exp of the entropy of sigma / "
        "sum;\n  50%, 90%, 99%: ranks that hold so much of ||b - a||^2; ~ estimated, --exact "
        "computes all\n";
  }
  return text;
}

// Names that say the same of themselves, folded over their numbers.
std::string folded_text(const CheckpointDifference& found, DifferenceKind kind) {
  using Key = std::tuple<std::string, std::string>;  // template, what is said
  std::vector<Key> order;
  std::map<Key, NameFold> folds;
  for (const TensorDifference& one : found.tensors) {
    if (one.kind != kind) continue;
    std::string said;
    if (kind == DifferenceKind::reshaped) {
      said = sizes_to_string(*one.shape_a) + " -> " + sizes_to_string(*one.shape_b);
    } else {
      const auto& shape = one.shape_b ? one.shape_b : one.shape_a;
      said = sizes_to_string(*shape);
    }
    said += ", " + (one.storage_a.empty()   ? one.storage_b
                    : one.storage_b.empty() ? one.storage_a
                                            : storage_cell(one));
    if (kind == DifferenceKind::unchanged && !one.same_bytes) said += ", equal values";
    if (!one.note.empty()) said += ": " + printable(one.note);
    const NameTemplate name = name_template(one.name);
    const Key key{name.text, said};
    const auto [at, is_new] = folds.try_emplace(key, name.text);
    if (is_new) order.push_back(key);
    at->second.add(name.numbers);
  }
  std::string text;
  for (const Key& key : order) {
    const NameFold& fold = folds.at(key);
    text += fmt::format("  {:<9}  {}{}  {}\n", to_string(kind),
                        fold.count() > 1 ? grouped(fold.count()) + " x " : "",
                        printable(fold.name()), std::get<1>(key));
  }
  return text;
}

std::string at_text(const TensorDifference& one, Index at) {
  const Shape& shape = *one.shape_b;
  std::string text;
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(at % shape.size(axis)) + (text.empty() ? "" : ", ") + text;
    at /= shape.size(axis);
  }
  return "[" + text + "]";
}

std::string notes_text(const CheckpointDifference& found) {
  std::string text;
  for (const TensorDifference& one : found.tensors) {
    if (one.n_not_finite > 0) {
      text += fmt::format(
          "  {} {}: b - a has {} (first at {})\n", red("error  "), printable(one.name),
          grouped(one.n_not_finite) +
              (one.n_not_finite == 1 ? " entry that is" : " entries that are") + " no number",
          at_text(one, *one.first_not_finite));
    }
    if (one.kind == DifferenceKind::changed && !one.note.empty()) {
      text += fmt::format("  note    {}: {}\n", printable(one.name), printable(one.note));
    }
  }
  if (found.relative > unrelated && found.relative < 1e300) {
    text +=
        "  note    the differences are as large as the weights: these are hardly two states of one "
        "model\n";
  }
  return text;
}

Json estimate_json(const std::optional<Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"value", number_json(estimate->value)}, {"error", number_json(estimate->error)}};
}

Json spectrum_head_json(const Spectrum& s) {
  Json top = Json::array();
  for (const Estimate& value : s.top) top.push_back(number_json(value.value));
  Json ranks = nullptr;
  if (s.energy_ranks) {
    ranks = {{"50%", estimate_json((*s.energy_ranks)[0])},
             {"90%", estimate_json((*s.energy_ranks)[1])},
             {"99%", estimate_json((*s.energy_ranks)[2])}};
  }
  return {{"is_exact", s.is_exact},
          {"method", s.method},
          {"top", top},
          {"spectral_norm", estimate_json(s.spectral_norm)},
          {"stable_rank", estimate_json(s.stable_rank)},
          {"effective_rank", estimate_json(s.effective_rank)},
          {"numerical_rank", estimate_json(s.numerical_rank)},
          {"energy_ranks", ranks}};
}

Json shape_json(const std::optional<Shape>& shape) {
  return shape ? sizes_json(*shape) : Json(nullptr);
}

Json tensor_json(const TensorDifference& one) {
  Json json = {{"name", one.name},
               {"name_a", one.name_a.empty() ? Json(nullptr) : Json(one.name_a)},
               {"kind", to_string(one.kind)},
               {"shape_a", shape_json(one.shape_a)},
               {"shape_b", shape_json(one.shape_b)},
               {"storage_a", one.storage_a.empty() ? Json(nullptr) : Json(one.storage_a)},
               {"storage_b", one.storage_b.empty() ? Json(nullptr) : Json(one.storage_b)},
               {"same_bytes", one.same_bytes},
               {"note", one.note}};
  if (one.has_values) {
    json["norm_a"] = number_json(one.norm_a);
    json["difference_norm"] = number_json(one.difference_norm);
    json["relative"] = number_json(one.relative);
    json["n_different"] = one.n_different;
    json["largest"] = number_json(one.largest);
    json["largest_at"] = one.largest_at;
    json["n_not_finite"] = one.n_not_finite;
    json["first_not_finite"] = one.first_not_finite ? Json(*one.first_not_finite) : Json(nullptr);
  }
  json["spectrum"] = one.spectrum ? spectrum_head_json(*one.spectrum) : Json(nullptr);
  return json;
}

}  // namespace

std::string difference_text(const std::string& head, const CheckpointDifference& found) {
  std::string text = head + "\n" + counted(found.tensors.size(), "tensor");
  const char* before = ": ";
  for (const DifferenceKind kind : kinds) {
    const std::uint64_t count = count_of(found, kind);
    if (count == 0) continue;
    text += before + grouped(count) + " " + std::string(to_string(kind));
    before = ", ";
  }
  if (found.relative > 0) {
    text += fmt::format("   the changed ones by {} of their norm", figure(found.relative));
  }
  text += "\n";
  for (const auto& [prefix, side] : {std::pair(found.prefix_of_a, "a"), {found.prefix_of_b, "b"}}) {
    if (!prefix.empty()) {
      text += fmt::format("names of {} have {} in front\n", side, printable(prefix));
    }
  }
  text += "\n" + changed_text(found);
  for (const DifferenceKind kind : kinds) {
    if (kind != DifferenceKind::changed) text += folded_text(found, kind);
  }
  return text + notes_text(found);
}

Json difference_json(const CheckpointDifference& found) {
  Json counts = Json::object();
  for (const DifferenceKind kind : kinds) {
    counts[std::string(to_string(kind))] = count_of(found, kind);
  }
  Json tensors = Json::array();
  for (const TensorDifference& one : found.tensors) tensors.push_back(tensor_json(one));
  return {{"counts", counts},
          {"prefix_of_a", found.prefix_of_a},
          {"prefix_of_b", found.prefix_of_b},
          {"norm_a", number_json(found.norm_a)},
          {"difference_norm", number_json(found.difference_norm)},
          {"relative", number_json(found.relative)},
          {"tensors", tensors}};
}

}  // namespace eckart::cli

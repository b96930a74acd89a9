#include "inspect_report.h"

#include "eckart/io/findings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "console.h"
#include "inspect_spectrum.h"
#include "spectrum_report.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

// `90.9 MB F32`, `13.8 GB: 12.0 GB MXFP4, 1.80 GB BF16`.
std::string storage_text(const std::vector<LogicalTensor>& tensors, std::uint64_t bytes) {
  std::vector<StorageTotal> totals;
  for (StorageTotal& total : storage_totals(tensors)) {
    if (total.kind == TensorKind::parameter) totals.push_back(std::move(total));
  }
  if (totals.size() == 1) return bytes_text(bytes) + " " + totals.front().storage;
  std::string text = bytes_text(bytes);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + bytes_text(totals[i].bytes) + " " + totals[i].storage;
  }
  return text;
}

std::string head_text(const Inspection& inspection) {
  const ModelInput& input = inspection.input;
  const Index total = inspection.summary.root.parameters;
  std::string text = bold(printable(input.name));
  if (input.architecture) text += "   " + architecture_line(*input.architecture);
  text += "\n" + grouped(total) + " parameters";
  if (inspection.active_parameters != total) {
    text += " (" + grouped(inspection.active_parameters) + " active)";
  }
  text += "   " + storage_text(input.tensors, input.checkpoint->tensor_bytes());
  return text + "   " + counted(input.checkpoint->shards().size(), "file") + "\n";
}

std::string number_or_blank(const std::optional<double>& number) {
  return number ? figure(*number) : "";
}

void add_node(Table& table, const SummaryNode& node, int depth, const CheckpointSpectrum* spectra) {
  const bool folded = node.n_copies > 1;
  const Index parameters = node.parameters * node.n_copies;
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  std::string shape;
  if (node.is_tensor) {
    shape = (folded ? grouped(node.n_copies) + " x " : "") + to_string(node.shape);
  } else if (folded) {
    shape = grouped(node.n_copies) + " x " + grouped(node.parameters);
  }
  const bool top = depth == 0 || !node.is_tensor;
  std::vector<std::string> cells = {indent + printable(node.label), shape, node.storage,
                                    grouped(parameters),
                                    top ? fmt::format("{:.1f}%", 100 * node.share) : ""};
  if (spectra != nullptr) {
    const NodeSpectrum spectrum = spectrum_of(node, *spectra);
    cells.push_back(number_or_blank(spectrum.stable_rank));
    cells.push_back(number_or_blank(spectrum.effective_rank));
    cells.push_back(spectrum.alpha ? fmt::format("{:.2f}", *spectrum.alpha) : "");
  }
  cells.emplace_back(node.with_bias ? "with bias" : "");
  table.add(std::move(cells));
  for (const SummaryNode& child : node.children) add_node(table, child, depth + 1, spectra);
}

std::string tree_text(const Summary& summary, const CheckpointSpectrum* spectra) {
  using Align = Table::Align;
  std::vector<Table::Column> columns = {{"module"},
                                        {"shape (axes)"},
                                        {"dtype"},
                                        {"parameters", Align::right},
                                        {"share", Align::right}};
  if (spectra != nullptr) {
    for (const char* title : {"stable rank", "effective rank", "alpha"}) {
      columns.push_back({title, Align::right});
    }
  }
  columns.push_back({""});
  Table table(std::move(columns));
  for (const SummaryNode& node : summary.root.children) add_node(table, node, 0, spectra);
  std::string text = table.empty() ? "  no tensors\n" : table.text();
  if (summary.is_flat) {
    text += fmt::format(
        "  the names make more than {} modules, so the tensors are listed{}\n",
        grouped(max_summary_rows),
        summary.n_omitted == 0 ? "" : "; " + grouped(summary.n_omitted) + " more are in --tensors");
  }
  for (const NotCounted& item : summary.not_counted) {
    text += fmt::format("  not counted: {}, {} {} values in {}, {}: {}\n", printable(item.name),
                        grouped(item.elements), item.storage,
                        counted(to_unsigned(item.n_tensors), "tensor"), bytes_text(item.bytes),
                        printable(item.reason));
  }
  return text;
}

std::string tensors_text(const Inspection& inspection) {
  using Align = Table::Align;
  const Checkpoint& checkpoint = *inspection.input.checkpoint;
  Table table({{"tensor"},
               {"shape"},
               {"dtype"},
               {"bytes", Align::right},
               {"begin", Align::right},
               {"file"}});
  for (const CheckpointTensor& entry : checkpoint.tensors()) {
    const std::filesystem::path file = checkpoint.shards()[entry.shard].path();
    table.add({printable(entry.stored->name), to_string(entry.stored->shape),
               std::string(to_string(entry.stored->dtype)), grouped(entry.stored->bytes()),
               grouped(entry.stored->begin), printable(file.filename().string())});
  }
  return table.empty() ? "  no tensors\n" : table.text();
}

// Which sources there were to compare.
std::string sources_of(const ModelInput& input) {
  const bool index = input.checkpoint->index().has_value();
  if (input.architecture)
    return index ? "config.json, the index and the headers" : "config.json and the file";
  return "the index and the headers";
}

std::string difference_text(const Difference& difference) {
  const std::string level(to_string(difference.level));
  const std::string shown = difference.level == DifferenceLevel::error     ? red("error  ")
                            : difference.level == DifferenceLevel::warning ? yellow("warning")
                                                                           : "note   ";
  std::string text = "  " + shown + " " + printable(difference.message, 2000) + "\n";
  if (!difference.hint.empty())
    text += "          hint: " + printable(difference.hint, 2000) + "\n";
  return text;
}

std::string warning_text(const Finding& finding) {
  const std::string name = std::filesystem::path(finding.file).filename().string();
  const std::string tensor =
      finding.tensor.empty() ? "" : "tensor " + printable(finding.tensor) + ": ";
  return "  " + yellow("warning") + " " + printable(name) + ": " + tensor + finding.message + "\n";
}

std::string differences_text(const Inspection& inspection) {
  const ModelInput& input = inspection.input;
  const auto n_of = [&](DifferenceLevel level) {
    return to_unsigned(std::count_if(inspection.differences.begin(), inspection.differences.end(),
                                     [&](const Difference& d) { return d.level == level; }));
  };
  const std::uint64_t errors = n_of(DifferenceLevel::error);
  const std::uint64_t warnings = n_of(DifferenceLevel::warning);
  std::string text;
  if (!input.no_architecture.empty()) {
    text += input.is_config_broken ? red("error  ") + " the config can't be used: "
                                   : std::string("not compared with a config: ");
    text += input.no_architecture + "\n";
    if (!input.no_architecture_hint.empty()) text += "  hint: " + input.no_architecture_hint + "\n";
  }
  if (input.architecture || input.checkpoint->index()) {
    text += sources_of(input);
    text += errors + warnings == 0 ? " agree\n"
                                   : " differ: " + counted(errors, "error") + ", " +
                                         counted(warnings, "warning") + "\n";
  }
  for (const Difference& difference : inspection.differences) {
    // Buffers and scales stand below the table already.
    if (difference.kind != "buffer" && difference.kind != "quantization_scales") {
      text += difference_text(difference);
    }
  }
  for (const Finding& finding : other_warnings(inspection)) text += warning_text(finding);
  return text;
}

std::string tied_text(const std::vector<TiedValues>& all) {
  std::string text;
  for (const TiedValues& tied : all) {
    text += "  " + (tied.is_equal ? std::string("note   ") : yellow("warning")) + " " +
            printable(tied.tensor->name) +
            (tied.is_equal ? " equals " : " is tied by config.json, but differs from ") +
            printable(tied.tied_to->name) +
            (tied.is_equal ? ", to which config.json ties it\n"
                           : ": a loader that ties them drops its values\n");
  }
  return text;
}

std::string values_text(const std::vector<TensorValues>& all) {
  std::uint64_t n_values = 0;
  bool all_finite = true;
  std::string lines;
  for (const TensorValues& values : all) {
    n_values += values.scan.n_values;
    all_finite = all_finite && values.scan.n_nan + values.scan.n_infinite == 0;
    const std::string problem = describe_values(values);
    if (problem.empty()) continue;
    lines += "  " + (values.scan.all_zero ? yellow("warning") : red("error  ")) + " " +
             printable(values.tensor->name) + ": " + problem + "\n";
  }
  return "values: " + grouped(n_values) + " read, " +
         (all_finite ? "all finite" : "some not finite") + "\n" + lines;
}

}  // namespace

bool has_errors(const Inspection& inspection) {
  const auto is_error = [](const Difference& d) { return d.level == DifferenceLevel::error; };
  const auto not_finite = [](const TensorValues& v) {
    return v.scan.n_nan + v.scan.n_infinite > 0;
  };
  const auto& values = inspection.values;
  return inspection.input.is_config_broken ||
         std::any_of(inspection.differences.begin(), inspection.differences.end(), is_error) ||
         (values && std::any_of(values->begin(), values->end(), not_finite));
}

std::vector<Finding> other_warnings(const Inspection& inspection) {
  std::vector<Finding> others;
  for (const Finding& finding : inspection.input.checkpoint->warnings().all()) {
    // The cross-check compares these, too, and tells them in its own words.
    static constexpr std::array<std::string_view, 5> compared = {
        "index_missing_tensor", "index_unlisted_tensor", "index_wrong_shard", "index_total_size",
        "index_total_parameters"};
    const bool is_no_number = finding.rule.starts_with("index_total") && finding.begin;
    if (is_no_number || std::find(compared.begin(), compared.end(), finding.rule) == compared.end())
      others.push_back(finding);
  }
  return others;
}

std::string position_text(const Shape& shape, std::uint64_t at) {
  std::vector<std::uint64_t> position(static_cast<std::size_t>(shape.rank()));
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    const std::uint64_t size = to_unsigned(shape.size(axis));
    position[static_cast<std::size_t>(axis)] = at % size;
    at /= size;
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

std::string describe_values(const TensorValues& values) {
  const ValueScan& scan = values.scan;
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view what,
                       const std::optional<std::uint64_t>& first) {
    if (count == 0) return;
    text += fmt::format("{}{} {} (first at {})", text.empty() ? "" : ", ", grouped(count), what,
                        position_text(values.tensor->shape, *first));
  };
  add(scan.n_nan, "NaN", scan.first_nan);
  add(scan.n_infinite, "infinite", scan.first_infinite);
  if (!text.empty()) return text + " of " + grouped(scan.n_values) + " values";
  return scan.all_zero ? "all " + grouped(scan.n_values) + " values are zero" : "";
}

std::string inspection_text(const Inspection& inspection, bool list_tensors) {
  std::string text = head_text(inspection) + "\n";
  const CheckpointSpectrum* const spectra = inspection.spectra ? &*inspection.spectra : nullptr;
  text += list_tensors ? tensors_text(inspection) : tree_text(inspection.summary, spectra);
  if (spectra != nullptr && !list_tensors) {
    text +=
        "  spectra: the median where a line stands for several matrices; eckart spectrum tells "
        "more\n";
  }
  text += "\n" + differences_text(inspection);
  if (inspection.values) text += values_text(*inspection.values) + tied_text(inspection.tied);
  return text;
}

}  // namespace eckart::cli

// eckart lora inspect: an adapter's modules, their scales and the spectra of what they add.
#include "eckart/io/findings.h"
#include "eckart/lora/inspect.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapter_input.h"
#include "array_output.h"
#include "console.h"
#include "json_output.h"
#include "lora.h"
#include "model_input.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct InspectCommand {
  std::string adapter;
  std::string base;
};

struct Inspected {
  const Adapter& adapter;
  std::vector<ModuleSpectrum> spectra;
  std::vector<Adapter::Unmatched> unmatched;
  bool has_base = false;
};

// Of factors, saved tensors and all.
struct Totals {
  Index parameters = 0;
  Index saved_parameters = 0;
  std::uint64_t bytes = 0;
  Index n_spikes = 0;
};

Totals totals_of(const Inspected& found) {
  Totals totals;
  for (const ModuleSpectrum& one : found.spectra) {
    totals.parameters += one.parameters;
    totals.bytes += one.bytes;
    totals.n_spikes += one.has_spike ? 1 : 0;
  }
  for (const SavedTensor& saved : found.adapter.saved()) {
    totals.saved_parameters += saved.stored->shape.count();
    totals.bytes += saved.stored->bytes();
  }
  return totals;
}

std::string figure(double number) { return fmt::format("{:.4g}", number); }
std::string figure(const std::optional<double>& number) { return number ? figure(*number) : "-"; }

std::string shape_text(const AdapterModule& module) {
  const std::string matrix = fmt::format("{}x{}", module.d_out, module.d_in);
  return module.kind == AdapterKind::experts ? fmt::format("{}x{}", module.n_experts, matrix)
                                             : matrix;
}

// `rank 8`, or `ranks 4 to 16`.
std::string ranks_text(const Adapter& adapter) {
  Index least = 0;
  Index most = 0;
  for (const AdapterModule& module : adapter.modules()) {
    least = least == 0 ? module.rank : std::min(least, module.rank);
    most = std::max(most, module.rank);
  }
  return least == most ? fmt::format("rank {}", most) : fmt::format("ranks {} to {}", least, most);
}

std::string kinds_text(const Adapter& adapter) {
  std::string text;
  if (adapter.config().use_rslora) text += ", rslora";
  if (adapter.config().use_dora) text += ", DoRA";
  if (adapter.config().lora_bias) text += ", biases";
  return text;
}

std::string head_text(const Inspected& found, const Totals& totals) {
  const Adapter& adapter = found.adapter;
  std::string text = fmt::format(
      "{}   {}: {} of {}{}\n", bold(adapter_title(adapter)), to_string(adapter.naming()),
      counted(adapter.modules().size(), "module"), ranks_text(adapter), kinds_text(adapter));
  text +=
      fmt::format("{} parameters   {} {}\n", grouped(totals.parameters + totals.saved_parameters),
                  bytes_text(totals.bytes), to_string(adapter.dtype()));
  if (!adapter.config().base_model.empty()) {
    text += "base  " + printable(adapter.config().base_model) + "\n";
  }
  return text;
}

std::string modules_text(const Inspected& found) {
  using Align = Table::Align;
  std::vector<Table::Column> columns = {{"module"},
                                        {"shape", Align::right},
                                        {"rank", Align::right},
                                        {"alpha", Align::right},
                                        {"scale", Align::right},
                                        {"norm", Align::right},
                                        {"sigma_1", Align::right},
                                        {"stable", Align::right},
                                        {"effective", Align::right},
                                        {"50/90/99%", Align::right}};
  if (found.has_base) columns.insert(columns.begin() + 6, {"of base", Align::right});
  columns.push_back({""});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < found.spectra.size(); ++i) {
    const AdapterModule& module = found.adapter.modules()[i];
    const ModuleSpectrum& one = found.spectra[i];
    const auto ranks = one.energy_ranks;
    std::vector<std::string> cells = {
        printable(module.name),
        shape_text(module),
        std::to_string(module.rank),
        figure(module.alpha),
        figure(module.scale),
        figure(one.frobenius_norm),
        figure(one.spectral_norm),
        figure(one.stable_rank),
        figure(one.effective_rank),
        ranks ? fmt::format("{}/{}/{}", (*ranks)[0], (*ranks)[1], (*ranks)[2]) : "-"};
    if (found.has_base) {
      cells.insert(cells.begin() + 6,
                   one.relative_norm ? fmt::format("{:.3g}%", 100 * *one.relative_norm) : "-");
    }
    cells.emplace_back(one.has_spike ? yellow("spike") : "");
    table.add(std::move(cells));
  }
  return table.text();
}

std::string saved_text(const Adapter& adapter) {
  Table table({{"replaces"}, {"shape", Table::Align::right}, {"dtype"}});
  for (const auto& [name, stored] : adapter.saved()) {
    table.add(
        {printable(name), sizes_to_string(stored->shape), std::string(to_string(stored->dtype))});
  }
  return table.empty() ? "" : "\n" + table.text();
}

void print_text(const Inspected& found) {
  const Totals totals = totals_of(found);
  print(head_text(found, totals));
  print("\n" + modules_text(found) + saved_text(found.adapter));
  std::string notes;
  if (totals.n_spikes > 0) {
    notes += fmt::format("{} of {} {} a rank-one spike: sigma_1 is at least {} times sigma_2\n",
                         totals.n_spikes, counted(found.spectra.size(), "module"),
                         totals.n_spikes == 1 ? "has" : "have", spike_ratio);
  }
  if (found.adapter.config().use_dora) {
    notes += "norms and ranks are of scale B A, without DoRA's magnitudes\n";
  }
  notes += warnings_text(found.adapter);
  if (!found.unmatched.empty()) {
    notes +=
        fmt::format("{}  the base has no tensor for {} of the adapter's names:\n{}",
                    yellow("warning"), found.unmatched.size(), unmatched_text(found.unmatched));
  }
  if (!notes.empty()) print("\n" + notes);
}

Json optional_json(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json module_json(const AdapterModule& module, const ModuleSpectrum& one) {
  Json energy = nullptr;
  if (one.energy_ranks) {
    energy = {{"50", (*one.energy_ranks)[0]},
              {"90", (*one.energy_ranks)[1]},
              {"99", (*one.energy_ranks)[2]}};
  }
  return {{"name", module.name},
          {"kind", to_string(module.kind)},
          {"d_out", module.d_out},
          {"d_in", module.d_in},
          {"n_experts", module.n_experts},
          {"rank", module.rank},
          {"alpha", module.alpha},
          {"scale", module.scale},
          {"has_bias", module.bias != nullptr},
          {"has_magnitude", module.magnitude != nullptr},
          {"parameters", one.parameters},
          {"bytes", one.bytes},
          {"frobenius_norm", one.frobenius_norm},
          {"spectral_norm", one.spectral_norm},
          {"relative_norm", optional_json(one.relative_norm)},
          {"stable_rank", optional_json(one.stable_rank)},
          {"effective_rank", optional_json(one.effective_rank)},
          {"energy_ranks", energy},
          {"has_spike", one.has_spike},
          {"singular_values", array_json(one.values.view())}};
}

void print_found_json(const Inspected& found) {
  const Adapter& adapter = found.adapter;
  const AdapterConfig& config = adapter.config();
  const Totals totals = totals_of(found);
  Json modules = Json::array();
  for (std::size_t i = 0; i < found.spectra.size(); ++i) {
    modules.push_back(module_json(adapter.modules()[i], found.spectra[i]));
  }
  Json saved = Json::array();
  for (const auto& [name, stored] : adapter.saved()) {
    saved.push_back({{"name", name},
                     {"dtype", to_string(stored->dtype)},
                     {"shape", sizes_json(stored->shape)}});
  }
  print_json({{"naming", to_string(adapter.naming())},
              {"dtype", to_string(adapter.dtype())},
              {"use_rslora", config.use_rslora},
              {"use_dora", config.use_dora},
              {"lora_bias", config.lora_bias},
              {"base_model", config.base_model.empty() ? Json(nullptr) : Json(config.base_model)},
              {"parameters", totals.parameters + totals.saved_parameters},
              {"bytes", totals.bytes},
              {"n_spikes", totals.n_spikes},
              {"modules", modules},
              {"saved", saved},
              {"unmatched", unmatched_json(found.unmatched)},
              {"warnings", warnings_json(adapter)}});
}

std::vector<std::string> names_of(const std::vector<LogicalTensor>& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const LogicalTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

int inspect(const InspectCommand& command, const CommonOptions& common) {
  Adapter adapter = open_adapter(command.adapter);
  ModelInput base;
  InspectAdapterOptions options;
  Inspected found{.adapter = adapter, .spectra = {}, .unmatched = {}};
  if (!command.base.empty()) {
    base = open_model_with_checkpoint(command.base);
    found.unmatched = adapter.resolve_names(names_of(base.tensors));
    found.has_base = true;
    options.base = &*base.checkpoint;
    options.tensors = &base.tensors;
  }
  Progress progress("inspecting", adapter.modules().size(), common.quiet);
  options.on_progress = [&](Index, Index) { progress.advance(1); };
  found.spectra = inspect_adapter(adapter, options);
  if (common.json) {
    print_found_json(found);
  } else {
    print_text(found);
  }
  return found.unmatched.empty() ? 0 : 1;
}

}  // namespace

void add_lora_inspect(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<InspectCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "inspect",
       .summary = "Modules, ranks, scales of an adapter, and the spectra of what it adds",
       .examples = {"eckart lora inspect adapter/",
                    "eckart lora inspect adapter/ --base examples/tiny-llama",
                    "eckart lora inspect adapter.safetensors --json"},
       .group = group},
      [command, &line] { return inspect(*command, line.common); });
  app->add_option("adapter", command->adapter, std::string(adapter_help))
      ->required()
      ->type_name("ADAPTER");
  app->add_option("--base", command->base,
                  "The model that it was trained on: sizes relative to its matrices, names that it "
                  "does not have (status 1)")
      ->type_name("PATH");
}

}  // namespace eckart::cli

// eckart lora merge, eckart lora verify: adapters folded into a base, and whether they were.
#include "eckart/io/findings.h"
#include "eckart/lora/merge.h"
#include "eckart/lora/verify.h"
#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapter_input.h"
#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "lora.h"
#include "model_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct MergeCommand {
  std::string base;
  std::vector<std::string> adapters;
  std::string output;
  MergeRules rules;
  bool verify = false;
  bool is_unsynced = false;
};

struct VerifyCommand {
  std::vector<std::string> paths;  // base, adapters, merged
  MergeRules rules;
};

/// A base and its adapters, open, the adapters' modules named as in the base.
struct OpenSources {
  ModelInput base;
  std::vector<Adapter> adapters;

  MergeSources sources() const {
    return {*base.checkpoint, base.tensors, base.architecture ? &*base.architecture : nullptr,
            base.config ? &*base.config : nullptr, adapters};
  }
};

OpenSources open_sources(const std::string& base, const std::vector<std::string>& adapters,
                         const MergeRules& rules) {
  check_weights(rules.weights, adapters.size());
  OpenSources open{open_model_with_checkpoint(base), {}};
  const MergeSources sources = open.sources();
  const std::vector<std::string> names =
      mergeable_names(sources.base, sources.tensors, sources.architecture, sources.config);
  for (const std::string& path : adapters) {
    open.adapters.push_back(open_adapter(path));
    open.adapters.back().resolve_names(names);
  }
  return open;
}

std::function<void(std::uint64_t, std::uint64_t)> progress_of(const std::string& label,
                                                              bool quiet) {
  auto progress = std::make_shared<std::unique_ptr<Progress>>();
  return [progress, label, quiet](std::uint64_t bytes, std::uint64_t all) {
    if (!*progress) *progress = std::make_unique<Progress>(label, all, quiet);
    (*progress)->advance(bytes);
  };
}

std::string tensors_text(std::size_t count) { return counted(count, "tensor"); }

// The layers' tensors of one name stand on one line.
struct Line {
  NameFold names;
  std::string shape;
  DeltaStatistics statistics;
};

std::vector<Line> lines_of(const MergeReport& report) {
  std::vector<Line> lines;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const MergedTensor& tensor : report.tensors) {
    if (tensor.fate != TensorFate::merged) continue;
    const NameTemplate name = name_template(tensor.name);
    const std::string shape = sizes_to_string(tensor.shape);
    const auto [at, is_new] = known.emplace(std::pair(name.text, shape), lines.size());
    if (is_new) lines.push_back({NameFold(name.text), shape, {}});
    lines[at->second].names.add(name.numbers);
    lines[at->second].statistics.add(tensor.statistics);
  }
  return lines;
}

std::string share_text(double share) { return fmt::format("{:.3g}%", 100 * share); }

std::string table_text(const MergeReport& report) {
  Table table({{"tensor", Table::Align::left},
               {"shape", Table::Align::left},
               {"delta", Table::Align::right},
               {"swallowed", Table::Align::right},
               {"unchanged", Table::Align::right}});
  for (const Line& line : lines_of(report)) {
    table.add({printable(line.names.name()), line.shape,
               share_text(line.statistics.relative_norm()), share_text(line.statistics.swallowed()),
               share_text(line.statistics.unchanged_share())});
  }
  if (table.empty()) return "";
  return "\n" + table.text() +
         "\ndelta: its norm by the base's; swallowed: how far rounding put it off, by its own "
         "norm; "
         "unchanged: its\nentries that rounding left as they were\n";
}

std::size_t count_of(const MergeReport& report, TensorFate fate) {
  return static_cast<std::size_t>(
      std::count_if(report.tensors.begin(), report.tensors.end(),
                    [&](const MergedTensor& tensor) { return tensor.fate == fate; }));
}

std::vector<std::string> warnings_of(const OpenSources& open) {
  std::vector<std::string> warnings;
  for (const Adapter& adapter : open.adapters) {
    for (const Finding& finding : adapter.warnings().all()) {
      warnings.push_back(adapter.path().string() + ": " +
                         (finding.tensor.empty() ? "" : finding.tensor + ": ") + finding.message);
    }
  }
  return warnings;
}

std::string summary_text(const MergeReport& report) {
  std::string text;
  for (const TensorFate fate :
       {TensorFate::merged, TensorFate::replaced, TensorFate::added, TensorFate::converted}) {
    const std::size_t n = count_of(report, fate);
    if (n > 0) text += fmt::format("{} {}, ", tensors_text(n), to_string(fate));
  }
  text += fmt::format("{} copied   {}\n", report.n_copied, bytes_text(report.bytes));
  if (report.n_resumed > 0) {
    text += fmt::format("{} were finished by a run before this one\n",
                        tensors_text(static_cast<std::size_t>(report.n_resumed)));
  }
  if (report.total.n_wanted > 0) {
    text += fmt::format(
        "delta {} of what it changes; {} of it swallowed, {} of its entries unchanged\n",
        share_text(report.total.relative_norm()), share_text(report.total.swallowed()),
        share_text(report.total.unchanged_share()));
  }
  for (const std::string& change : report.config_changes) {
    text += "config.json: " + printable(change) + "\n";
  }
  if (!report.left_out.empty()) {
    text += "not carried, other weights: ";
    for (std::size_t i = 0; i < report.left_out.size(); ++i) {
      text += (i == 0 ? "" : ", ") + printable(report.left_out[i]);
    }
    text += "\n";
  }
  return text;
}

// What the copies hold beside numbers.
std::string not_finite_text(const std::vector<NotFinite>& tensors) {
  std::string text;
  for (const NotFinite& one : tensors) {
    text +=
        yellow("warning") +
        fmt::format(" {}: {} NaN and {} infinite values, as in the base: no adapter changes it\n",
                    printable(one.name), grouped(one.n_nan), grouped(one.n_infinite));
  }
  return text;
}

Json json_of(const std::vector<NotFinite>& tensors) {
  Json list = Json::array();
  for (const NotFinite& one : tensors) {
    list.push_back({{"name", one.name}, {"nan", one.n_nan}, {"infinite", one.n_infinite}});
  }
  return list;
}

std::string verified_text(const VerifyReport& verified) {
  double worst = 0;
  for (const VerifiedTensor& tensor : verified.tensors) {
    worst = std::max(worst, tensor.share_of_bound);
  }
  std::string text;
  for (const std::string& problem : verified.problems) text += red("wrong") + " " + problem + "\n";
  if (!verified.problems.empty()) {
    return text + counted(verified.problems.size(), "problem") + " found\n";
  }
  return fmt::format(
      "verified: {} within one rounding of base + delta (at worst {:.2f} of it), {} equal to the "
      "base's\n",
      tensors_text(verified.tensors.size()), worst, verified.n_copies);
}

Json json_of(const DeltaStatistics& s) {
  return {{"delta_norm", number_json(s.delta_norm())},
          {"relative_norm", number_json(s.relative_norm())},
          {"swallowed", number_json(s.swallowed())},
          {"entries", s.n_wanted},
          {"unchanged_entries", s.n_unchanged}};
}

Json json_of(const VerifyReport& verified) {
  Json tensors = Json::array();
  for (const VerifiedTensor& tensor : verified.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"relative_error", number_json(tensor.relative_error)},
                       {"share_of_bound", number_json(tensor.share_of_bound)},
                       {"worst", tensor.worst}});
  }
  return {{"ok", verified.problems.empty()},
          {"problems", verified.problems},
          {"copies", verified.n_copies},
          {"not_finite", json_of(verified.not_finite)},
          {"tensors", tensors}};
}

Json json_of(const MergeCommand& command, const MergeReport& report,
             const std::optional<VerifyReport>& verified) {
  Json tensors = Json::array();
  for (const MergedTensor& tensor : report.tensors) {
    Json one = {{"name", tensor.name},
                {"fate", to_string(tensor.fate)},
                {"dtype", to_string(tensor.dtype)},
                {"shape", sizes_json(tensor.shape)}};
    if (tensor.statistics.n_wanted > 0) one["delta"] = json_of(tensor.statistics);
    tensors.push_back(std::move(one));
  }
  Json all = {{"output", command.output},
              {"bytes", report.bytes},
              {"copied", report.n_copied},
              {"not_finite", json_of(report.not_finite)},
              {"resumed", report.n_resumed},
              {"total", json_of(report.total)},
              {"config_changes", report.config_changes},
              {"carried", report.carried},
              {"left_out", report.left_out},
              {"tensors", tensors}};
  if (verified) all["verified"] = json_of(*verified);
  return all;
}

VerifyReport verify(const OpenSources& open, const std::string& merged, const MergeRules& rules,
                    const CommonOptions& common) {
  return verify_merge(open.sources(), open_checkpoint(merged),
                      {rules, progress_of("verify", common.quiet || common.json)});
}

int run_merge(const MergeCommand& command, const CommonOptions& common) {
  const OpenSources open = open_sources(command.base, command.adapters, command.rules);
  const MergeReport report =
      merge_adapters(open.sources(), command.output,
                     {.rules = command.rules,
                      .is_synced = !command.is_unsynced,
                      .on_progress = progress_of("merge", common.quiet || common.json)});
  std::optional<VerifyReport> verified;
  if (command.verify) verified = verify(open, command.output, command.rules, common);
  if (common.json) {
    Json json = json_of(command, report, verified);
    json["warnings"] = warnings_of(open);
    print_json(json);
  } else {
    print(bold(printable_path(command.output)) + "   " + summary_text(report));
    for (const std::string& warning : warnings_of(open)) {
      print(yellow("warning") + " " + printable_path(warning) + "\n");
    }
    print(not_finite_text(report.not_finite));
    print(table_text(report));
    if (verified) print(verified_text(*verified));
  }
  return !verified || verified->problems.empty() ? 0 : 1;
}

int run_verify(const VerifyCommand& command, const CommonOptions& common) {
  if (command.paths.size() < 3) {
    throw_usage_error("lora verify takes a base, at least one adapter and the merged model");
  }
  const std::vector<std::string> adapters(command.paths.begin() + 1, command.paths.end() - 1);
  const OpenSources open = open_sources(command.paths.front(), adapters, command.rules);
  const VerifyReport verified = verify(open, command.paths.back(), command.rules, common);
  if (common.json) {
    print_json(json_of(verified));
  } else {
    print(not_finite_text(verified.not_finite) + verified_text(verified));
  }
  return verified.problems.empty() ? 0 : 1;
}

void add_rules(CLI::App& app, MergeRules& rules) {
  add_weights(app, rules.weights);
  add_dtype(app,
            {.name = "--dtype",
             .effect = "Write all weights as F32, F16 or BF16 (default: as the base has them; a "
                       "base of F8 with scales: BF16)",
             .value = "DTYPE"},
            rules.dtype);
  app.add_flag("--fold-tied", rules.fold_tied,
               "Of a tied model let a change of the embedding or the head change both (default: "
               "write them apart)");
}

}  // namespace

void add_lora_merge(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<MergeCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "merge",
       .summary = "Fold adapters into a base: a model of its own",
       .examples = {"eckart lora merge base/ adapter/ -o merged",
                    "eckart lora merge base/ style/ task/ --weights 1,0.5 -o merged --verify"},
       .group = group},
      [command, &line] { return run_merge(*command, line.common); });
  app->add_option("base", command->base, "The base: a model folder, an index or a file")
      ->required()
      ->type_name("BASE");
  app->add_option("adapters", command->adapters, "Adapter folders or files")
      ->required()
      ->type_name("ADAPTER…");
  app->add_option("-o,--output", command->output, "Write the merged model as this folder")
      ->required()
      ->type_name("DIR");
  add_rules(*app, command->rules);
  app->add_flag("--verify", command->verify,
                "Read the result again and compare it with base + delta, in double");
  app->add_flag("--no-sync", command->is_unsynced,
                "End before the files are on the disk, as cp does: a power failure soon after may "
                "leave them incomplete");
}

void add_lora_verify(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<VerifyCommand>();
  CLI::App* const app = add_command(line,
                                    {.name = "verify",
                                     .summary = "Whether a merged model is base + delta, by value",
                                     .examples = {"eckart lora verify base/ adapter/ merged/"},
                                     .group = group},
                                    [command, &line] { return run_verify(*command, line.common); });
  app->add_option("paths", command->paths, "The base, the adapters, and the merged model last")
      ->required()
      ->type_name("BASE ADAPTER… MERGED");
  add_rules(*app, command->rules);
}

}  // namespace eckart::cli

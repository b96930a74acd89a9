// eckart lora resize, eckart lora combine: adapters made from adapters.
#include "eckart/io/findings.h"
#include "eckart/lora/combine.h"
#include "eckart/lora/resize.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapter_input.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "lora.h"
#include "rank_options.h"
#include "rewritten_report.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct RewriteCommand {
  std::vector<std::string> adapters;
  std::vector<double> weights;
  std::string base;
  std::string output;
  RankOptions ranks;
  std::optional<Dtype> dtype;
};

RewriteOptions options_of(const RewriteCommand& command, const CommonOptions& common) {
  RewriteOptions options;
  if (command.ranks.budget_bytes) {
    options.budget_bytes = static_cast<std::uint64_t>(*command.ranks.budget_bytes);
  }
  options.max_rank = command.ranks.rule.max_rank;
  if (command.ranks.is_given() && !options.budget_bytes) options.rule = command.ranks.rule;
  options.dtype = command.dtype;
  auto progress = std::make_shared<std::unique_ptr<Progress>>();
  const bool quiet = common.quiet || common.json;
  options.on_progress = [progress, quiet](Index done, Index all) {
    if (!*progress) {
      *progress = std::make_unique<Progress>("lora", static_cast<std::uint64_t>(all), quiet);
    }
    (*progress)->advance(static_cast<std::uint64_t>(done));
  };
  return options;
}

// The adapters, their modules named as in the base where one is given.
std::vector<Adapter> open_adapters(const RewriteCommand& command) {
  std::vector<Adapter> adapters;
  for (const std::string& path : command.adapters) adapters.push_back(open_adapter(path));
  if (!command.base.empty()) take_names_of_base(adapters, command.base);
  return adapters;
}

void print_result(const RewriteCommand& command, RewrittenAdapter result,
                  const std::vector<Adapter>& adapters, bool json) {
  for (const Adapter& adapter : adapters) {
    for (const Finding& warning : adapter.warnings().all()) {
      result.notes.push_back(adapter.path().string() + ": " + warning.message);
    }
  }
  if (json) {
    print_json(rewritten_json(command.output, result));
  } else {
    print(rewritten_text(command.output, result));
  }
}

int run_resize(const RewriteCommand& command, const CommonOptions& common) {
  check_rank_options(command.ranks);
  if (!command.ranks.is_given()) {
    throw_usage_error("nothing says how small the adapter is to be",
                      "--rank, --energy, --error or --budget does");
  }
  const std::vector<Adapter> adapters = open_adapters(command);
  print_result(command,
               resize_adapter(adapters.front(), command.output, options_of(command, common)),
               adapters, common.json);
  return 0;
}

int run_combine(const RewriteCommand& command, const CommonOptions& common) {
  check_rank_options(command.ranks);
  check_weights(command.weights, command.adapters.size());
  const std::vector<Adapter> adapters = open_adapters(command);
  std::vector<WeightedAdapter> weighted;
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    weighted.push_back({&adapters[i], command.weights.empty() ? 1 : command.weights[i]});
  }
  print_result(command, combine_adapters(weighted, command.output, options_of(command, common)),
               adapters, common.json);
  return 0;
}

void add_shared_options(CLI::App& app, RewriteCommand& command) {
  add_rank_options(app, command.ranks);
  add_dtype(app,
            {.name = "--dtype",
             .effect = "Write the factors as F32, F16 or BF16 (default: the widest they are in)",
             .value = "DTYPE"},
            command.dtype);
  app.add_option(
         "--base", command.base,
         "The model that the adapters are for: gives the names of its modules, which kohya's "
         "files lack")
      ->type_name("BASE");
  app.add_option("-o,--output", command.output, "Write the adapter as this folder, for PEFT")
      ->required()
      ->type_name("DIR");
}

}  // namespace

void add_lora_resize(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<RewriteCommand>();
  command->adapters.resize(1);
  CLI::App* const app =
      add_command(line,
                  {.name = "resize",
                   .summary = "An adapter of smaller ranks that loses as little as can be",
                   .examples = {"eckart lora resize adapter/ --rank 16 -o small",
                                "eckart lora resize adapter/ --energy 0.95 --max-rank 64 -o small",
                                "eckart lora resize adapter/ --budget 50MB -o small"},
                   .group = group},
                  [command, &line] { return run_resize(*command, line.common); });
  app->add_option("adapter", command->adapters.front(), "An adapter's folder or file")
      ->required()
      ->type_name("ADAPTER");
  add_shared_options(*app, *command);
}

void add_lora_combine(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<RewriteCommand>();
  CLI::App* const app =
      add_command(line,
                  {.name = "combine",
                   .summary = "Several adapters as one: their weighted sum, exact or cut to rank",
                   .examples = {"eckart lora combine style/ task/ --weights 0.7,0.3 -o both",
                                "eckart lora combine style/ task/ --rank 16 -o both"},
                   .group = group},
                  [command, &line] { return run_combine(*command, line.common); });
  app->add_option("adapters", command->adapters, "Adapter folders or files")
      ->required()
      ->type_name("ADAPTER…");
  add_weights(*app, command->weights);
  add_shared_options(*app, *command);
}

}  // namespace eckart::cli

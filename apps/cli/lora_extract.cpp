// eckart lora extract: the adapter that explains the difference of two checkpoints.
#include "eckart/io/findings.h"
#include "eckart/lora/extract.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "lora.h"
#include "lora_extract_report.h"
#include "model_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct ExtractCommand {
  std::string base;
  std::string tuned;
  std::string output;
  ExtractOptions options;
  bool dry_run = false;
};

// The bar of one stage gives way to that of the next.
class StageProgress {
 public:
  explicit StageProgress(bool quiet) : quiet_(quiet) {}

  void advance(std::string_view stage, Index done, Index all) {
    if (stage != stage_) {
      bar_.reset();
      stage_ = stage;
      bar_ = std::make_unique<Progress>(stage_, static_cast<std::uint64_t>(all), quiet_);
    }
    bar_->advance(static_cast<std::uint64_t>(done));
  }

 private:
  bool quiet_;
  std::string stage_;
  std::unique_ptr<Progress> bar_;
};

void check_command(const ExtractCommand& command) {
  const ExtractRanks& ranks = command.options.ranks;
  const bool has_rule = ranks.rank > 0 || ranks.energy > 0 || ranks.relative_error > 0 ||
                        ranks.budget_bytes || ranks.budget_parameters;
  if (!has_rule) {
    throw_usage_error("nothing says how much to keep",
                      "--rank 16, --energy 0.95, --error 0.1 or --budget 50MB");
  }
  if (command.output.empty() && !command.dry_run) {
    throw_usage_error("--output is missing",
                      "-o DIR is where the adapter is written; --dry-run "
                      "writes nothing");
  }
}

int run_extract(ExtractCommand command, const CommonOptions& common) {
  check_command(command);
  const ModelInput base = open_model_with_checkpoint(command.base);
  const ModelInput tuned = open_model_with_checkpoint(command.tuned);
  const ExtractSources sources{*base.checkpoint,
                               base.tensors,
                               *tuned.checkpoint,
                               tuned.tensors,
                               base.architecture ? &*base.architecture : nullptr,
                               base.config ? &*base.config : nullptr};
  StageProgress progress(common.quiet || common.json);
  command.options.on_progress = [&](std::string_view stage, Index done, Index all) {
    progress.advance(stage, done, all);
  };
  if (command.options.base_name.empty()) command.options.base_name = command.base;
  const ExtractReport report = command.dry_run
                                   ? preview_extract(sources, command.options)
                                   : extract_adapter(sources, command.output, command.options);
  if (common.json) {
    print(to_json(report) + "\n");
  } else if (command.dry_run) {
    print(preview_text(report));
  } else {
    print(bold(printable_path(command.output)) + "   " + extract_text(report));
  }
  return 0;
}

void add_rank_rules(CLI::App& app, ExtractRanks& ranks) {
  CLI::Option* const rank = add_number(
      app, {.name = "--rank", .effect = "Give every matrix this rank", .value = "R"}, ranks.rank);
  CLI::Option* const energy = add_decimal(
      app,
      {.name = "--energy",
       .effect = "Give each the smallest rank with this share of its squared norm: 0.95",
       .value = "SHARE"},
      Decimals::above_0_to_1, [&ranks](double share) { ranks.energy = share; });
  CLI::Option* const error = add_decimal(
      app,
      {.name = "--error",
       .effect =
           "Give each the smallest rank whose error, rounding included, is at most this share of "
           "its norm",
       .value = "E"},
      Decimals::above_0_below_1, [&ranks](double share) { ranks.relative_error = share; });
  CLI::Option* const budget = add_size_or_number(
      app,
      {.name = "--budget",
       .effect =
           "Share ranks out so that the whole adapter is no larger than this, in bytes (50MB) "
           "or numbers (10000000), by what they take off the total error",
       .value = "SIZE"},
      ranks.budget_bytes, ranks.budget_parameters);
  rank->excludes(energy)->excludes(error)->excludes(budget);
  energy->excludes(error)->excludes(budget);
  error->excludes(budget);
  add_number(app, {.name = "--max-rank", .effect = "Give no matrix a larger rank", .value = "R"},
             ranks.max_rank);
}

void add_rules(CLI::App& app, ExtractRules& rules) {
  app.add_option("--include", rules.include,
                 "Only tensors or modules of names like these; * stands for any letters")
      ->type_name("PATTERN")
      ->take_all();
  app.add_option("--exclude", rules.exclude, "None of names like these")
      ->type_name("PATTERN")
      ->take_all();
  add_choice<TableRule>(
      app,
      {.name = "--embeddings",
       .effect = "Changed embeddings and head: save them whole (default), as a LoRA, or skip them",
       .value = "save|lora|skip"},
      {{"save", TableRule::save}, {"lora", TableRule::lora}, {"skip", TableRule::skip}},
      rules.tables);
  add_choice<bool>(app,
                   {.name = "--norms",
                    .effect = "Changed norms: save them whole (default), or skip them",
                    .value = "save|skip"},
                   {{"save", true}, {"skip", false}}, rules.norms);
  add_choice<bool>(app,
                   {.name = "--biases",
                    .effect = "Changed biases: as lora_bias (default), or skip them",
                    .value = "lora|skip"},
                   {{"lora", true}, {"skip", false}}, rules.biases);
  add_choice<Consumer>(
      app,
      {.name = "--for",
       .effect = "Keep to what this program reads: LoRA of linear layers alone, one rank for all",
       .value = "vllm|llama.cpp"},
      {{"vllm", Consumer::vllm}, {"llama.cpp", Consumer::llama_cpp}}, rules.consumer);
  app.add_flag("--allow-unrelated", rules.allow_unrelated,
               "Go on although the models differ as much as unrelated ones");
}

}  // namespace

void add_lora_extract(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<ExtractCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "extract",
       .summary = "The adapter that explains what training changed, from base and tuned model",
       .examples = {"eckart lora extract base/ tuned/ --rank 16 -o adapter",
                    "eckart lora extract base/ tuned/ --budget 50MB -o adapter",
                    "eckart lora extract base/ tuned/ --rank 16 --for vllm -o adapter"},
       .group = group},
      [command, &line] { return run_extract(*command, line.common); });
  app->add_option("base", command->base, "The base: a model folder, an index or a file")
      ->required()
      ->type_name("BASE");
  app->add_option("tuned", command->tuned, "The tuned model, in any of these forms")
      ->required()
      ->type_name("TUNED");
  app->add_option("-o,--output", command->output, "Write the adapter as this folder")
      ->type_name("DIR");
  add_rank_rules(*app, command->options.ranks);
  add_rules(*app, command->options.rules);
  add_dtype(*app,
            {.name = "--dtype",
             .effect = "Of the factors: F32, F16 or BF16 (default: as the tuned model has them)",
             .value = "DTYPE"},
            command->options.dtype);
  app->add_option("--base-name", command->options.base_name,
                  "What the adapter calls its base (default: BASE as given)")
      ->type_name("NAME");
  add_seed(*app, "Of the random start (default: 0)", command->options.seed);
  app->add_flag("--dry-run", command->dry_run,
                "Say what would become of each tensor, and write nothing");
}

}  // namespace eckart::cli

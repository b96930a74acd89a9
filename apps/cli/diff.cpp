// eckart diff: what two checkpoints have in common, and how far apart the rest is.
#include "eckart/io/findings.h"
#include "eckart/model/checkpoint_difference.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>

#include "commands.h"
#include "console.h"
#include "diff_report.h"
#include "model_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct DiffCommand {
  std::string a;
  std::string b;
  CheckpointDifferenceOptions options;
  bool no_spectrum = false;
};

ComparedModel compared(const ModelInput& input) {
  return {&*input.checkpoint, &input.tensors, input.architecture ? &*input.architecture : nullptr};
}

int diff(const DiffCommand& command, const CommonOptions& common) {
  const ModelInput a = open_model_with_checkpoint(command.a);
  const ModelInput b = open_model_with_checkpoint(command.b);
  CheckpointDifferenceOptions options = command.options;
  options.with_spectrum = !command.no_spectrum;
  std::unique_ptr<Progress> progress;
  options.on_progress = [&](Index done, Index all) {
    if (!progress) {
      progress = std::make_unique<Progress>("diff", static_cast<std::uint64_t>(all),
                                            common.quiet || common.json);
    }
    progress->advance(static_cast<std::uint64_t>(done));
  };
  const CheckpointDifference found = checkpoint_difference(compared(a), compared(b), options);
  progress.reset();
  if (common.json) {
    Json json = {{"a", command.a}, {"b", command.b}};
    json.update(difference_json(found));
    print_json(json);
  } else {
    print(difference_text("a  " + printable_path(command.a) + "\nb  " + printable_path(command.b),
                          found));
  }
  const bool all_finite = std::all_of(found.tensors.begin(), found.tensors.end(),
                                      [](const auto& one) { return one.n_not_finite == 0; });
  return all_finite ? 0 : 1;
}

}  // namespace

void add_diff(CommandLine& line) {
  auto options = std::make_shared<DiffCommand>();
  CLI::App* const command = add_command(
      line,
      {.name = "diff",
       .summary = "Every tensor of two checkpoints: unchanged, changed and how, added, removed",
       .examples = {"eckart diff base/ tuned/",
                    "eckart diff base/ tuned/ --include '*mlp*' --exact",
                    "eckart diff base/ tuned/ --no-spectrum --json"}},
      [options, &line] { return diff(*options, line.common); });
  command->add_option("a", options->a, "Before: a model folder, a .safetensors file or an index")
      ->required()
      ->type_name("A");
  command->add_option("b", options->b, "After: the same")->required()->type_name("B");
  for (const auto& [name, patterns, effect] :
       {std::tuple("--include", &options->options.include,
                   "Only tensors of names like this; * stands for any letters"),
        std::tuple("--exclude", &options->options.exclude, "No tensors of names like this")}) {
    command->add_option(name, *patterns, effect)->type_name("PATTERN")->expected(1)->take_all();
  }
  CLI::Option* const none = command->add_flag("--no-spectrum", options->no_spectrum,
                                              "No singular values of the differences: faster");
  command
      ->add_flag("--exact", options->options.spectrum.exact,
                 "Compute all singular values of large matrices too, instead of estimates")
      ->excludes(none);
  add_seed(*command, "Of the random vectors of estimates (default: 0)",
           options->options.spectrum.seed);
}

}  // namespace eckart::cli

// eckart spectrum: the singular values of every matrix of a checkpoint.
#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/findings.h"
#include "eckart/model/checkpoint_spectrum.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "model_input.h"
#include "spectrum_data.h"
#include "spectrum_html.h"
#include "spectrum_report.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct SpectrumCommand {
  std::string path;
  std::string pattern = "*";
  std::optional<Index> top;
  bool exact = false;
  bool csv = false;
  std::string html;
  Index bootstrap = 0;
  std::uint64_t seed = 0;
};

CheckpointSpectrum spectra_of(const ModelInput& input, const SpectrumCommand& command, bool quiet) {
  CheckpointSpectrumOptions options{
      .pattern = command.pattern,
      .spectrum = {.exact = command.exact, .bootstrap = command.bootstrap, .seed = command.seed}};
  if (command.top) options.spectrum.top = *command.top;
  std::unique_ptr<Progress> progress;
  options.on_progress = [&](Index done, Index all) {
    if (!progress) {
      progress = std::make_unique<Progress>("spectrum", static_cast<std::uint64_t>(all), quiet);
    }
    progress->advance(static_cast<std::uint64_t>(done));
  };
  return checkpoint_spectrum(*input.checkpoint, input.tensors,
                             input.architecture ? &*input.architecture : nullptr, options);
}

std::string count_of(const CheckpointSpectrum& found) {
  const std::size_t n = found.matrices.size();
  const auto estimated = static_cast<std::uint64_t>(
      std::count_if(found.matrices.begin(), found.matrices.end(),
                    [](const MatrixSpectrum& one) { return one.spectrum.passes > 0; }));
  std::string text = n == 1 ? "1 matrix" : grouped(static_cast<std::uint64_t>(n)) + " matrices";
  if (estimated > 0) text += fmt::format(", {} of them estimated", grouped(estimated));
  return text;
}

std::string head_of(const ModelInput& input, const CheckpointSpectrum& found) {
  return input.architecture ? architecture_line(*input.architecture) + "\n" + count_of(found)
                            : count_of(found);
}

int spectrum_command(const SpectrumCommand& command, const CommonOptions& common) {
  std::optional<AtomicFile> page;
  if (!command.html.empty()) page.emplace(command.html);
  const ModelInput input = open_model_with_checkpoint(command.path);
  const CheckpointSpectrum found =
      spectra_of(input, command, common.quiet || common.json || command.csv);
  if (page) save_text(*page, spectrum_html(input.name, head_of(input, found), found));
  if (common.json) {
    print_json(spectrum_json(input.name, found));
  } else if (command.csv) {
    print(spectrum_csv(found));
  } else if (!command.html.empty()) {
    print(printable_path(command.html) + ": the spectra of " + count_of(found) + "\n");
  } else {
    print(spectrum_text(bold(input.name) + "   " + head_of(input, found), found,
                        found.matrices.size() == 1 || command.top.has_value()));
  }
  const bool all_finite =
      std::all_of(found.matrices.begin(), found.matrices.end(),
                  [](const MatrixSpectrum& one) { return one.spectrum.statistics.is_finite(); });
  return all_finite ? 0 : 1;
}

}  // namespace

void add_spectrum(CommandLine& line) {
  auto options = std::make_shared<SpectrumCommand>();
  CLI::App* const command = add_command(
      line,
      {.name = "spectrum",
       .summary = "Singular values of every matrix: norms, ranks, power law, noise edge, outliers",
       .examples = {"eckart spectrum models/all-MiniLM-L6-v2",
                    "eckart spectrum models/all-MiniLM-L6-v2 --tensor '*layer.0.*' --top 5",
                    "eckart spectrum models/all-MiniLM-L6-v2 --html spectrum.html"}},
      [options, &line] { return spectrum_command(*options, line.common); });
  command->add_option("path", options->path, "A model folder, a .safetensors file or an index")
      ->required()
      ->type_name("PATH");
  command
      ->add_option("--tensor", options->pattern,
                   "Only matrices of names like this; * stands for any letters (default: *)")
      ->type_name("PATTERN");
  add_number(*command,
             {.name = "--top",
              .effect = "List so many of the largest singular values, and draw each spectrum (10)",
              .value = "K",
              .least = 0},
             options->top);
  command->add_flag("--exact", options->exact,
                    "Compute all singular values of large matrices too, instead of estimates");
  add_number(*command,
             {.name = "--bootstrap",
              .effect = "Samples for the p-value of each power law (default: none)",
              .least = 0},
             options->bootstrap);
  add_seed(*command, "Of the random vectors and samples (default: 0)", options->seed);
  CLI::Option* const csv =
      command->add_flag("--csv", options->csv, "Print a table of comma-separated values")
          ->excludes(command->get_option("--json"));
  command->add_option("--html", options->html, "Write a report with drawn spectra to this file")
      ->type_name("FILE")
      ->excludes(csv);
}

}  // namespace eckart::cli

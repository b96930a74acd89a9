// eckart lora init: an adapter to start a training from, and what such a training left as a plain one.
#include "eckart/io/findings.h"
#include "eckart/lora/pissa.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "adapter_input.h"
#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "lora.h"
#include "model_input.h"
#include "rewritten_report.h"
#include "spectrum_report.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct InitCommand {
  std::string base;
  PissaOptions options;
  std::string trained;
  std::string initial;
  std::string output;
};

template <class Amount>
std::function<void(Amount, Amount)> progress_of(const std::string& label, bool quiet) {
  auto progress = std::make_shared<std::unique_ptr<Progress>>();
  return [progress, label, quiet](Amount done, Amount all) {
    if (!*progress) {
      *progress = std::make_unique<Progress>(label, static_cast<std::uint64_t>(all), quiet);
    }
    (*progress)->advance(static_cast<std::uint64_t>(done));
  };
}

// The share of the squared norm that the adapter has of a matrix.
double energy_of(const PissaModule& module) {
  if (module.norm == 0) return 1;
  const double left = module.residual_norm / module.norm;
  return 1 - left * left;
}

std::string pissa_text(const std::string& output, const PissaReport& report) {
  using Align = Table::Align;
  std::string text = fmt::format("{}   {} of rank {} in {}\n", bold(printable_path(output)),
                                 counted(report.modules.size(), "module"), grouped(report.rank),
                                 to_string(report.dtype));
  text += fmt::format(
      "adapter  {}\nbase     {}   {}; rounding lost {:.3g}% of what was taken out of it\n\n",
      printable_path((std::filesystem::path(output) / "adapter").string()),
      printable_path((std::filesystem::path(output) / "base").string()),
      bytes_text(report.base.bytes), 100 * report.base.total.swallowed());
  Table table({{"module"},
               {"shape", Align::right},
               {"norm", Align::right},
               {"in the adapter", Align::right},
               {"residual norm", Align::right}});
  for (const PissaModule& module : report.modules) {
    table.add({printable(module.name), fmt::format("{}x{}", module.d_out, module.d_in),
               figure(module.norm), fmt::format("{:.4g}%", 100 * energy_of(module)),
               figure(module.residual_norm)});
  }
  if (report.n_resumed > 0) {
    text += fmt::format("{} were split by a run before this one\n\n",
                        counted(static_cast<std::uint64_t>(report.n_resumed), "module"));
  }
  return text + table.text() +
         "  in the adapter: the share of the matrix's squared norm\n"
         "train the adapter on this base; `eckart lora init BASE --plain TRAINED --initial " +
         printable_path((std::filesystem::path(output) / "adapter").string()) +
         " -o DIR` then makes a\nplain adapter for the original one\n";
}

Json pissa_json(const std::string& output, const PissaReport& report) {
  Json modules = Json::array();
  for (const PissaModule& module : report.modules) {
    modules.push_back({{"name", module.name},
                       {"d_out", module.d_out},
                       {"d_in", module.d_in},
                       {"is_input_first", module.is_input_first},
                       {"norm", number_json(module.norm)},
                       {"residual_norm", number_json(module.residual_norm)},
                       {"energy", number_json(energy_of(module))}});
  }
  return {{"output", output},
          {"rank", report.rank},
          {"dtype", to_string(report.dtype)},
          {"resumed", report.n_resumed},
          {"base_bytes", report.base.bytes},
          {"lost_by_rounding", number_json(report.base.total.swallowed())},
          {"modules", modules}};
}

int run_pissa(const InitCommand& command, const CommonOptions& common) {
  const ModelInput base = open_model_with_checkpoint(command.base);
  const bool quiet = common.quiet || common.json;
  PissaOptions options = command.options;
  options.on_split = progress_of<Index>("split", quiet);
  options.on_write = progress_of<std::uint64_t>("write", quiet);
  const PissaReport report = init_pissa(
      {&*base.checkpoint, &base.tensors, base.architecture ? &*base.architecture : nullptr,
       base.config ? &*base.config : nullptr},
      command.output, options);
  if (common.json) {
    print_json(pissa_json(command.output, report));
  } else {
    print(pissa_text(command.output, report));
  }
  return 0;
}

int run_plain(const InitCommand& command, const CommonOptions& common) {
  const Adapter trained = open_adapter(command.trained);
  const Adapter initial = open_adapter(command.initial);
  // Whether it is their base. They keep their own names, which are those that PEFT loads by.
  std::vector<Adapter> checked;
  checked.push_back(open_adapter(command.trained));
  checked.push_back(open_adapter(command.initial));
  take_names_of_base(checked, command.base);
  RewriteOptions options{.dtype = command.options.dtype, .base_model = command.base};
  options.on_progress = progress_of<Index>("plain", common.quiet || common.json);
  const RewrittenAdapter result = plain_from_pissa(trained, initial, command.output, options);
  if (common.json) {
    print_json(rewritten_json(command.output, result));
  } else {
    print(rewritten_text(command.output, result));
  }
  return 0;
}

int run_init(const InitCommand& command, const CommonOptions& common) {
  const bool is_plain = !command.trained.empty();
  if (is_plain == (command.options.rank > 0)) {
    throw_usage_error(
        is_plain ? "--pissa and --plain are two things to do" : "nothing says what to make",
        "--pissa R splits a base, --plain TRAINED --initial INITIAL goes back");
  }
  if (is_plain && command.initial.empty()) {
    throw_usage_error("--plain needs --initial, the adapter that the training started from",
                      "`eckart lora init BASE --pissa R -o DIR` wrote it as DIR/adapter");
  }
  return is_plain ? run_plain(command, common) : run_pissa(command, common);
}

}  // namespace

void add_lora_init(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<InitCommand>();
  PissaOptions& options = command->options;
  CLI::App* const app = add_command(
      line,
      {.name = "init",
       .summary = "PiSSA: split a base into an adapter to train and a residual, and the way back",
       .examples = {"eckart lora init base/ --pissa 16 -o pissa",
                    "eckart lora init base/ --plain trained/ --initial pissa/adapter -o plain"},
       .group = group},
      [command, &line] { return run_init(*command, line.common); });
  app->add_option("base", command->base, "The original base: a model folder, an index or a file")
      ->required()
      ->type_name("BASE");
  CLI::Option* const pissa = add_number(
      *app,
      {.name = "--pissa",
       .effect = "Write DIR/adapter, the best approximation of this rank of each matrix, and "
                 "DIR/base, what is left",
       .value = "R"},
      options.rank);
  CLI::Option* const plain =
      app->add_option("--plain", command->trained,
                      "Make this adapter, trained on DIR/base, one for the original base")
          ->type_name("TRAINED");
  CLI::Option* const initial =
      app->add_option("--initial", command->initial,
                      "With --plain: the adapter that the training started from, DIR/adapter")
          ->type_name("INITIAL")
          ->needs(plain);
  initial->excludes(pissa);
  for (const auto& [name, patterns, effect] :
       {std::tuple("--include", &options.include,
                   "With --pissa: matrices of names like this; * stands for any letters (default: "
                   "all of the layers' attention and MLP)"),
        std::tuple("--exclude", &options.exclude,
                   "With --pissa: no matrices of names like this")}) {
    app->add_option(name, *patterns, effect)
        ->type_name("PATTERN")
        ->expected(1)
        ->take_all()
        ->needs(pissa);
  }
  add_dtype(*app,
            {.name = "--dtype",
             .effect = "Write the factors as F32, F16 or BF16 (default: as they come)",
             .value = "DTYPE"},
            options.dtype);
  add_seed(*app, "With --pissa: of the random start (default: 0)", options.seed)->needs(pissa);
  app->add_flag("--exact", options.exact,
                "With --pissa: from the whole spectrum of each matrix, instead of an approximation "
                "within 0.01% of the best")
      ->needs(pissa);
  app->add_option("-o,--output", command->output, "Write this folder")
      ->required()
      ->type_name("DIR");
}

}  // namespace eckart::cli

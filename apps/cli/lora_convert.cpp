// eckart lora convert: the same adapter under PEFT's, kohya's or MLX's names.
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/lora/convert.h"

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "adapter_input.h"
#include "console.h"
#include "json_output.h"
#include "lora.h"
#include "model_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct ConvertCommand {
  std::string adapter;
  std::string output;
  std::string to;
  std::string base;
  std::string names;
  std::optional<std::string> prefix;
  ConvertOptions options;
};

AdapterNaming parse_naming(const std::string& text) {
  if (text == "kohya") return AdapterNaming::kohya;
  return text == "mlx" ? AdapterNaming::mlx : AdapterNaming::peft;
}

// Names of modules, one a line; `.weight` at the end may stand or not.
std::vector<std::string> lines_of(const std::string& path) {
  const MappedFile file = open_mapped(path);
  std::istringstream stream(
      std::string(reinterpret_cast<const char*>(file.bytes().data()), file.size()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> known_names(const ConvertCommand& command) {
  if (!command.names.empty()) return lines_of(command.names);
  const ModelInput base = open_model_with_checkpoint(command.base);
  std::vector<std::string> names;
  for (const LogicalTensor& tensor : base.tensors) names.push_back(tensor.name);
  return names;
}

void resolve(const ConvertCommand& command, Adapter& adapter) {
  const bool has_names = !command.base.empty() || !command.names.empty();
  if (!has_names) {
    if (adapter.naming() != AdapterNaming::kohya || command.options.to == AdapterNaming::kohya) {
      return;
    }
    throw_argument_error(
        "lora convert: " + printable_path(command.adapter) +
            " has kohya's names, in which dots and underscores are one, but " +
            std::string(to_string(command.options.to)) + "'s names have both",
        "--base PATH takes the names from the model, --names FILE from a list of modules");
  }
  const auto unmatched = adapter.resolve_names(known_names(command));
  if (unmatched.empty()) return;
  const std::string& source = command.names.empty() ? command.base : command.names;
  throw_argument_error(fmt::format("lora convert: {} of the adapter's names {} none in {}:\n{}",
                                   unmatched.size(), unmatched.size() == 1 ? "has" : "have",
                                   printable_path(source), unmatched_text(unmatched)),
                       "give the model that the adapter was trained on");
}

void print_text(const ConvertCommand& command, const Adapter& adapter,
                const ConvertReport& report) {
  std::string text = fmt::format("{} ({}) -> {} ({})\n{}, {} {}\n", printable_path(command.adapter),
                                 to_string(adapter.naming()), printable_path(command.output),
                                 to_string(command.options.to),
                                 counted(static_cast<std::uint64_t>(report.n_modules), "module"),
                                 bytes_text(report.bytes), to_string(report.dtype));
  if (report.n_saved > 0) {
    text += counted(static_cast<std::uint64_t>(report.n_saved), "tensor") +
            " that replace the base's, as they were\n";
  }
  if (report.n_padded > 0) {
    text += counted(static_cast<std::uint64_t>(report.n_padded), "module") +
            " padded with zeros to the largest rank: MLX has one for all\n";
  }
  if (report.n_scaled > 0) {
    text += counted(static_cast<std::uint64_t>(report.n_scaled), "module") +
            " with the scale in lora_b, rounded once: MLX has one scale for all\n";
  }
  const std::string warnings = warnings_text(adapter);
  print(text + (warnings.empty() ? "" : "\n" + warnings));
}

int convert(ConvertCommand command, const CommonOptions& common) {
  command.options.to = parse_naming(command.to);
  if (command.prefix && command.options.to != AdapterNaming::kohya) {
    throw_usage_error(
        "--prefix is given with --to " + command.to + ", but only kohya's names have a prefix",
        "leave it out");
  }
  if (command.prefix) command.options.prefix = *command.prefix;
  Adapter adapter = open_adapter(command.adapter);
  resolve(command, adapter);
  Progress progress("converting", adapter.modules().size(), common.quiet);
  command.options.on_progress = [&](Index, Index) { progress.advance(1); };
  const ConvertReport report = convert_adapter(adapter, command.output, command.options);
  if (!common.json) {
    print_text(command, adapter, report);
    return 0;
  }
  print_json({{"output", command.output},
              {"from", to_string(adapter.naming())},
              {"to", to_string(command.options.to)},
              {"n_modules", report.n_modules},
              {"n_saved", report.n_saved},
              {"n_padded", report.n_padded},
              {"n_scaled", report.n_scaled},
              {"dtype", to_string(report.dtype)},
              {"bytes", report.bytes},
              {"resumed", report.n_resumed},
              {"warnings", warnings_json(adapter)}});
  return 0;
}

}  // namespace

void add_lora_convert(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "convert",
       .summary = "The same adapter under PEFT's, kohya's or MLX's names, its scale kept",
       .examples = {"eckart lora convert adapter/ --to kohya -o adapter.safetensors",
                    "eckart lora convert adapter.safetensors --to peft --base model/ -o adapter/",
                    "eckart lora convert adapter/ --to mlx -o mlx_adapter/"},
       .group = group},
      [command, &line] { return convert(*command, line.common); });
  app->add_option("adapter", command->adapter, std::string(adapter_help))
      ->required()
      ->type_name("ADAPTER");
  app->add_option("--to", command->to, "Whose names and files to write")
      ->required()
      ->type_name("peft|kohya|mlx")
      ->check(CLI::IsMember({"peft", "kohya", "mlx"}).description(""));
  app->add_option("-o,--output", command->output,
                  "Where to: a new folder, of kohya's a new .safetensors file")
      ->required()
      ->type_name("PATH");
  CLI::Option* const base =
      app->add_option("--base", command->base,
                      "The model whose module names to write: kohya's files need them")
          ->type_name("PATH");
  app->add_option("--names", command->names, "The same from a text file, one module's name a line")
      ->type_name("FILE")
      ->excludes(base);
  add_text(*app,
           {.name = "--prefix",
            .effect = "Before kohya's names: lora_te, lora_te1, lora_transformer (lora_unet)",
            .value = "TEXT"},
           [command](const std::string& text) { command->prefix = text; });
  add_dtype(*app,
            {.name = "--dtype",
             .effect = "Of the factors: F32, F16 or BF16 (default: as they are stored)",
             .value = "DTYPE"},
            command->options.dtype);
}

}  // namespace eckart::cli

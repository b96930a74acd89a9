// The command `eckart`: reads the command line, runs one command, turns errors into messages.
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "commands.h"
#include "console.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace eckart::cli {
namespace {

constexpr int status_error = 1;
constexpr int status_usage = 2;

// A mapped file that another process cuts short ends in this signal, which no C++ code can catch.
void on_bus_error(int) {
  constexpr char text[] =
      "eckart: error: a file became shorter while it was being read\n"
      "hint: run the command again when nothing writes to it any more\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof text - 1);
  _exit(status_error);
}

void report(const std::string& message, const std::string& hint) {
  std::fflush(stdout);
  fmt::print(stderr, "eckart: error: {}\n", message);
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
}

CLI::App* add_any_command(CommandLine& line, const CommandText& text, std::function<int()> work) {
  CLI::App* const command = line.app.add_subcommand(text.name, text.summary);
  std::string examples;
  for (const std::string& example : text.examples) examples += "  $ " + example + "\n";
  command->footer(examples);
  command->set_help_flag("-h,--help", "Show this help");
  command->parse_complete_callback([&line, work = std::move(work)] { line.run = work; });
  return command;
}

// The command that was named, or the program.
const CLI::App& named_app(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app : *given.front();
}

int run(int argc, char** argv) {
  CommandLine line;
  line.app.name("eckart");
  line.app.description(
      "The linear algebra of transformers: inspect, check and count real checkpoints");
  line.app.set_help_flag("-h,--help", "Show this help");
  line.app.set_version_flag("--version", std::string("eckart ") + ECKART_VERSION,
                            "Show the version");
  line.app.require_subcommand(1);
  for (const auto add : {add_inspect, add_check, add_count, add_shapes, add_spectrum, add_completion, add_man}) {
    add(line);
  }
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(help_text(named_app(line.app)));
    finish_output();
    return 0;
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    finish_output();
    return 0;
  } catch (const CLI::ParseError& error) {
    if (argc < 2) {
      print(help_text(line.app));
      finish_output();
      return status_usage;
    }
    const CLI::App& app = named_app(line.app);
    report(error.what(), app.get_parent() == nullptr
                             ? "eckart --help lists the commands"
                             : "eckart " + app.get_name() + " --help lists its options");
    return status_usage;
  }
  set_thread_count(line.common.threads);
  const int status = line.run();
  finish_output();
  return status;
}

}  // namespace

CLI::App* add_command(CommandLine& line, const CommandText& text, std::function<int()> work) {
  CLI::App* const command = add_any_command(line, text, std::move(work));
  command->add_flag("--json", line.common.json, "Print one JSON document instead of text");
  command->add_option("--threads", line.common.threads, "Threads to use (default: all cores)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  command->add_flag("--quiet", line.common.quiet, "No progress bar on standard error");
  return command;
}

CLI::App* add_plain_command(CommandLine& line, const CommandText& text, std::function<int()> work) {
  return add_any_command(line, text, std::move(work));
}

}  // namespace eckart::cli

int main(int argc, char** argv) {
  std::signal(SIGBUS, eckart::cli::on_bus_error);
  try {
    return eckart::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    eckart::cli::report("out of memory", "");
  } catch (const std::exception& error) {
    const auto* const text = dynamic_cast<const eckart::ErrorText*>(&error);
    eckart::cli::report(text != nullptr ? text->message() : error.what(),
                        text != nullptr ? text->hint() : "");
  }
  return eckart::cli::status_error;
}

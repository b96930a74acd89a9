// The command `eckart`: reads the command line, runs one command, turns errors into messages.
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "commands.h"
#include "console.h"
#include "hints.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fcntl.h>
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

// What the command line or a file said may stand in it: nothing of that steers the terminal. Where
// standard error can't be written the status alone tells.
void report(const std::string& message, const std::string& hint) {
  std::fflush(stdout);
  std::string text = "eckart: error: " + printable_path(message) + "\n";
  if (!hint.empty()) text += "hint: " + printable_path(hint) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// A file that is opened where a standard stream was closed would take its number, and what is meant
// for the stream would be written into the file.
void keep_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // For reading alone, so that writing to it still fails.
    if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", O_RDONLY) == -1) return;
  }
}

CLI::App* add_any_command(CommandLine& line, const CommandText& text, std::function<int()> work) {
  CLI::App& parent = text.group == nullptr ? line.app : *text.group;
  CLI::App* const command = parent.add_subcommand(text.name, text.summary);
  std::string examples;
  for (const std::string& example : text.examples) examples += "  $ " + example + "\n";
  command->footer(examples);
  command->set_help_flag("-h,--help", "Show this help");
  // The group's own parse is complete too when that of its command is.
  if (work) command->parse_complete_callback([&line, work = std::move(work)] { line.run = work; });
  return command;
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
  for (const auto add :
       {add_inspect, add_check, add_count,    add_shapes,  add_attend,     add_generate,
        add_embed,   add_trace, add_spectrum, add_diff,    add_lora,       add_pca,
        add_matmul,  add_norm,  add_cosine,   add_solve,   add_lstsq,      add_project,
        add_rank,    add_eigh,  add_svd,      add_lowrank, add_completion, add_man}) {
    add(line);
  }
  require_command(line.app, {argv + std::min(argc, 1), argv + argc});
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
    throw usage_error(line.app, error);
  }
  refuse_empty_values(line.app);
  set_thread_count(static_cast<int>(line.common.threads));
  const int status = line.run();
  finish_output();
  return status;
}

}  // namespace

CLI::App* add_command(CommandLine& line, const CommandText& text, std::function<int()> work) {
  CLI::App* const command = add_any_command(line, text, std::move(work));
  command->add_flag("--json", line.common.json, "Print one JSON document instead of text");
  add_number(*command,
             {.name = "--threads", .effect = "Threads to use (default: all cores)", .most = 4096},
             line.common.threads);
  command->add_flag("--quiet", line.common.quiet, "No progress bar on standard error");
  return command;
}

CLI::App* add_command_group(CommandLine& line, const CommandText& text) {
  CLI::App* const group = add_any_command(line, text, {});
  group->require_subcommand(1);
  return group;
}

CLI::App* add_plain_command(CommandLine& line, const CommandText& text, std::function<int()> work) {
  return add_any_command(line, text, std::move(work));
}

}  // namespace eckart::cli

int main(int argc, char** argv) {
  std::signal(SIGBUS, eckart::cli::on_bus_error);
  // A file that would pass the limit (ulimit -f) then fails to be written, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  eckart::cli::keep_standard_streams();
  try {
    return eckart::cli::run(argc, argv);
  } catch (const eckart::cli::UsageError& error) {
    eckart::cli::report(error.message(), error.hint());
    return eckart::cli::status_usage;
  } catch (const std::bad_alloc&) {
    eckart::cli::report("out of memory", "");
  } catch (const std::exception& error) {
    const auto* const text = dynamic_cast<const eckart::ErrorText*>(&error);
    if (text == nullptr) {
      eckart::cli::report(error.what(), "");
    } else {
      eckart::cli::report(eckart::cli::command_message(text->message()),
                          eckart::cli::command_hint(text->hint()));
    }
  }
  return eckart::cli::status_error;
}

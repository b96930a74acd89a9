// The commands of `eckart`. Each file adds one to the command line; everything that help, man page
// and shell completion say is taken from these definitions.
#pragma once

#include "eckart/core/shape.h"

#include <functional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace eckart::cli {

/// Options that every command has.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  Index threads = 0;
};

/// The command line while it is defined and read.
struct CommandLine {
  CLI::App app;
  CommonOptions common;
  /// The work of the command that was given; returns the exit status.
  std::function<int()> run;
};

/// What a command says of itself. Examples are shown first in its help.
struct CommandText {
  std::string name;
  std::string summary;
  std::vector<std::string> examples;
  CLI::App* group = nullptr;  // of `add_command_group`; none: a command of the program itself
};

/// Adds a command with `--json`, `--threads` and `--quiet`. `work` runs when it is the one given.
CLI::App* add_command(CommandLine& line, const CommandText& text, std::function<int()> work);
/// The same without the common options, for commands that print a file.
CLI::App* add_plain_command(CommandLine& line, const CommandText& text, std::function<int()> work);

/// Adds a command that is nothing but a name for others: `eckart NAME COMMAND …`.
CLI::App* add_command_group(CommandLine& line, const CommandText& text);

void add_check(CommandLine& line);
void add_inspect(CommandLine& line);
void add_count(CommandLine& line);
void add_shapes(CommandLine& line);
void add_matmul(CommandLine& line);
void add_lowrank(CommandLine& line);
void add_norm(CommandLine& line);
void add_cosine(CommandLine& line);
void add_solve(CommandLine& line);
void add_lstsq(CommandLine& line);
void add_project(CommandLine& line);
void add_rank(CommandLine& line);
void add_eigh(CommandLine& line);
void add_svd(CommandLine& line);
void add_pca(CommandLine& line);
void add_spectrum(CommandLine& line);
void add_diff(CommandLine& line);
void add_attend(CommandLine& line);
void add_generate(CommandLine& line);
void add_embed(CommandLine& line);
void add_trace(CommandLine& line);
void add_lora(CommandLine& line);
void add_man(CommandLine& line);
void add_completion(CommandLine& line);

/// What the exit statuses mean, for help and man page.
inline constexpr const char* exit_statuses =
    "0 success; 1 an error, or something wrong was found; 2 wrong usage.";

/// Help of the program or of one command.
std::string help_text(const CLI::App& app);

}  // namespace eckart::cli

// The commands of `eckart`. Each file adds one to the command line; everything that help, man page
// and shell completion say is taken from these definitions.
#pragma once

#include "eckart/io/dtype.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace eckart::cli {

/// Options that every command has.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  int threads = 0;
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
};

/// Adds a command with `--json`, `--threads` and `--quiet`. `work` runs when it is the one given.
CLI::App* add_command(CommandLine& line, const CommandText& text, std::function<int()> work);
/// The same without the common options, for commands that print a file.
CLI::App* add_plain_command(CommandLine& line, const CommandText& text, std::function<int()> work);

/// Option values: `24GB`, `16GiB`, `512MB`, or a plain number of bytes.
std::uint64_t parse_byte_size(const std::string& text);
/// A dtype by any of its usual names: `BF16`, `bf16`, `bfloat16`, `F8_E4M3`, …
Dtype parse_dtype_option(const std::string& option, const std::string& text);

void add_check(CommandLine& line);
void add_inspect(CommandLine& line);
void add_count(CommandLine& line);
void add_shapes(CommandLine& line);
void add_spectrum(CommandLine& line);
void add_man(CommandLine& line);
void add_completion(CommandLine& line);

/// Help of the program or of one command.
std::string help_text(const CLI::App& app);

}  // namespace eckart::cli

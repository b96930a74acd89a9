// What help, man page and completions say of a command, read off its definition.
#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace eckart::cli {

struct OptionText {
  std::string names;   // `-o, --output FILE`
  std::string effect;  // what it does, with its default
};

/// The positionals of a command, or its options.
std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional);
/// `-o`, `--output`.
std::vector<std::string> flags_of(const CLI::Option& option);
/// What help calls the value of an option; empty for a flag.
std::string value_name(const CLI::Option& option);
/// Positionals, then options.
std::vector<OptionText> option_texts(const CLI::App& app);
/// The commands that do something, those of groups included.
std::vector<const CLI::App*> working_commands_of(const CLI::App& app);
/// `eckart solve A B [OPTIONS]`.
std::string usage_of(const CLI::App& app);

}  // namespace eckart::cli

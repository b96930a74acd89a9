#include "command_texts.h"

#include <utility>

#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

OptionText text_of(const CLI::Option& option) {
  std::string names = option.get_positional()
                          ? option.get_type_name()
                          : fmt::format("{}", fmt::join(flags_of(option), ", "));
  if (!option.get_positional() && !value_name(option).empty()) names += " " + value_name(option);
  return {std::move(names), option.get_description()};
}

}  // namespace

std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() == positional) options.push_back(option);
  }
  return options;
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::string value_name(const CLI::Option& option) {
  return option.get_items_expected_max() == 0 ? "" : option.get_type_name();
}

std::vector<OptionText> option_texts(const CLI::App& app) {
  std::vector<OptionText> entries;
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : options_of(app, positional)) {
      entries.push_back(text_of(*option));
    }
  }
  return entries;
}

std::vector<const CLI::App*> working_commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> all;
  for (const CLI::App* command : commands_of(app)) {
    const std::vector<const CLI::App*> inner = working_commands_of(*command);
    if (inner.empty()) all.push_back(command);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

std::string usage_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "eckart COMMAND [OPTIONS]";
  std::string usage = "eckart " + command_name(app);
  if (!commands_of(app).empty()) return usage + " COMMAND [OPTIONS]";
  for (const CLI::Option* option : options_of(app, true)) usage += " " + option->get_type_name();
  return usage + " [OPTIONS]";
}

}  // namespace eckart::cli

#include "usage.h"

#include "eckart/core/edit_distance.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

// `; did you mean count?`, or nothing where no name is close.
std::string suggestion(std::string_view wanted, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 64;
  if (wanted.size() > longest) return {};
  std::size_t least = wanted.size() / 3 + 1;
  std::string closest;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(wanted, name);
    if (distance > least || (distance == least && !closest.empty())) continue;
    least = distance;
    closest = name;
  }
  return closest.empty() ? "" : "; did you mean " + closest + "?";
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string help_hint(const CLI::App& app) {
  const std::string name = app.get_parent() == nullptr ? "" : " " + command_name(app);
  return "eckart" + name + " --help lists " +
         (app.get_parent() == nullptr ? "the commands"
          : commands_of(app).empty()  ? "its options"
                                      : "its commands");
}

bool is_option_like(const std::string& argument) {
  return argument.size() > 1 && argument.front() == '-';
}

std::string shown_name(const CLI::Option& option) {
  return option.get_positional() ? option.get_type_name() : option.get_name();
}

// What a required option or positional is called, where it was not given.
std::string missing_name(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return shown_name(*option);
  }
  return {};
}

// Two options that rule each other out, or one without another that it needs.
std::string conflict(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    for (const CLI::Option* other : option->get_excludes()) {
      if (other->count() == 0) continue;
      return shown_name(*option) + " and " + shown_name(*other) +
             " are both given, but only one of them is taken";
    }
    for (const CLI::Option* other : option->get_needs()) {
      if (other->count() > 0) continue;
      return shown_name(*option) + " is given without " + shown_name(*other) + ", which it needs";
    }
  }
  return {};
}

// An option without a value or with two, a flag with one. CLI11 names it in its text alone.
std::string wrong_count(const CLI::App& app, const std::string& said) {
  for (const CLI::Option* option : app.get_options()) {
    const bool is_flag = option->get_items_expected_max() == 0;
    const std::size_t at = said.find(option->get_name());
    if (is_flag ? at == std::string::npos : said.rfind(option->get_name() + ":", 0) != 0) continue;
    const std::string name = shown_name(*option);
    if (is_flag) return name + " is a flag and takes no value";
    if (option->count() > 1) {
      return name + " is given " + std::to_string(option->count()) + " times, but takes one value";
    }
    return name + " takes a value, " + option->get_type_name() + ", but none follows";
  }
  return {};
}

}  // namespace

const CLI::App& named_app(const CLI::App& app) {
  const CLI::App* at = &app;
  for (auto given = at->get_subcommands(); !given.empty(); given = at->get_subcommands()) {
    at = given.front();
  }
  return *at;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string command_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return {};
  const std::string before = command_name(*app.get_parent());
  return before.empty() ? app.get_name() : before + " " + app.get_name();
}

void throw_usage_error(const std::string& message, const std::string& hint) {
  throw UsageError(message, hint);
}

UsageError usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = named_app(app);
  const std::string hint = help_hint(command);
  const std::vector<std::string> rest = app.remaining(true);
  const auto option = std::find_if(rest.begin(), rest.end(), is_option_like);
  if (option != rest.end()) {
    const std::string name = option->substr(0, option->find('='));
    return UsageError("no option " + name + suggestion(name, option_names(command)), hint);
  }
  if (const std::string missing = missing_name(command); !missing.empty()) {
    return UsageError(missing + " is missing", hint);
  }
  if (!commands_of(command).empty()) {
    return UsageError(command_name(command) + " alone does nothing, it has commands", hint);
  }
  if (!rest.empty()) return UsageError("nothing takes the argument '" + rest.front() + "'", hint);
  if (const std::string what = conflict(command); !what.empty()) return UsageError(what, hint);
  if (const std::string what = wrong_count(command, error.what()); !what.empty()) {
    return UsageError(what, hint);
  }
  return UsageError(error.what(), hint);
}

void refuse_empty_values(const CLI::App& app) {
  const CLI::App& command = named_app(app);
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    throw_usage_error(shown_name(*option) + " is empty", help_hint(command));
  }
}

void require_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  for (const std::string& name : arguments) {
    const std::vector<const CLI::App*> commands = commands_of(*at);
    if (commands.empty() || is_option_like(name)) return;
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* one) { return one->get_name() == name; });
    if (found == commands.end()) {
      std::vector<std::string> names;
      names.reserve(commands.size());
      for (const CLI::App* command : commands) names.push_back(command->get_name());
      const std::string of = at == &app ? "" : " of " + command_name(*at);
      throw_usage_error("no command '" + name + "'" + of + suggestion(name, names), help_hint(*at));
    }
    at = *found;
  }
}

}  // namespace eckart::cli

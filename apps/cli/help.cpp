// Help, man page and shell completion, all read off the same command definitions.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "console.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct OptionText {
  std::string names;   // `-o, --output FILE`
  std::string effect;  // what it does, with its default
};

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

OptionText text_of(const CLI::Option& option) {
  std::string names = option.get_positional()
                          ? option.get_type_name()
                          : fmt::format("{}", fmt::join(flags_of(option), ", "));
  if (!option.get_positional() && !value_name(option).empty()) names += " " + value_name(option);
  return {std::move(names), option.get_description()};
}

// Whether its value may be a file's name; numbers, sizes and dtypes are none.
bool takes_file(const CLI::Option& option) {
  const std::string value = value_name(option);
  const bool is_word = value.size() == 1 || value == "SIZE" || value == "NAMES";
  return !value.empty() && !is_word && choices_of(option).empty();
}

// The commands that do something, those of groups included.
std::vector<const CLI::App*> working_commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> all;
  for (const CLI::App* command : commands_of(app)) {
    const std::vector<const CLI::App*> inner = working_commands_of(*command);
    if (inner.empty()) all.push_back(command);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

std::vector<const CLI::App*> groups_of(const CLI::App& app) {
  std::vector<const CLI::App*> groups;
  for (const CLI::App* command : commands_of(app)) {
    if (!commands_of(*command).empty()) groups.push_back(command);
  }
  return groups;
}

std::string usage_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "eckart COMMAND [OPTIONS]";
  std::string usage = "eckart " + command_name(app);
  if (!commands_of(app).empty()) return usage + " COMMAND [OPTIONS]";
  for (const CLI::Option* option : options_of(app, true)) usage += " " + option->get_type_name();
  return usage + " [OPTIONS]";
}

// Words in lines of at most `width` columns, each but the first indented.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string result, line;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      result += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return result + line;
}

std::string listed(const std::vector<OptionText>& entries) {
  constexpr std::size_t indent = 2, gap = 2, width = 100, widest = 26;
  std::size_t column = 0;
  for (const OptionText& entry : entries) {
    if (entry.names.size() <= widest) column = std::max(column, entry.names.size());
  }
  std::string text;
  for (const OptionText& entry : entries) {
    const std::size_t start = indent + column + gap;
    text += std::string(indent, ' ') + entry.names;
    text += entry.names.size() > column ? "\n" + std::string(start, ' ')
                                        : std::string(column + gap - entry.names.size(), ' ');
    text += wrapped(entry.effect, start, width) + "\n";
  }
  return text;
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

std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  // A line that begins with a dot or a quote would be a request.
  if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string man_options(const CLI::App& app) {
  std::string text;
  for (const OptionText& entry : option_texts(app)) {
    text += fmt::format(".TP\n.B {}\n{}\n", roff(entry.names), roff(entry.effect));
  }
  return text;
}

std::string man_page(const CLI::App& app) {
  std::string text =
      fmt::format(".TH ECKART 1 \"\" \"eckart {}\" \"User Commands\"\n", ECKART_VERSION);
  text += fmt::format(".SH NAME\neckart \\- {}\n", roff(app.get_description()));
  text += ".SH SYNOPSIS\n.B eckart\n.I COMMAND\n[OPTIONS]\n.SH COMMANDS\n";
  for (const CLI::App* command : working_commands_of(app)) {
    text +=
        fmt::format(".SS {}\n{}.\n", roff(usage_of(*command)), roff(command->get_description()));
    text += fmt::format(".PP\nExample:\n.PP\n.nf\n{}.fi\n", roff(command->get_footer()));
    text += man_options(*command);
  }
  text += fmt::format(".SH EXIT STATUS\n{}\n", exit_statuses);
  text +=
      ".SH UNITS\nkB, MB, GB are powers of 10, KiB, MiB, GiB powers of 2. One MAC is one "
      "multiplication and one addition, two FLOPs.\n";
  return text;
}

std::string all_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : options_of(app, false)) {
    for (std::string& flag : flags_of(*option)) flags.push_back(std::move(flag));
  }
  return fmt::format("{}", fmt::join(flags, " "));
}

std::string command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return fmt::format("{}", fmt::join(names, " "));
}

// The few words that a command's positional takes, or none where it takes files.
std::string positional_choices(const CLI::App& command) {
  for (const CLI::Option* option : options_of(command, true)) {
    return fmt::format("{}", fmt::join(choices_of(*option), " "));
  }
  return {};
}

// Options with a value, as patterns of `COMMAND:OPTION`: those with few values offer them, numbers
// and sizes offer nothing, others files.
std::string bash_values(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : working_commands_of(app)) {
    for (const CLI::Option* option : options_of(*command, false)) {
      const std::string value = value_name(*option);
      if (value.empty() || takes_file(*option)) continue;
      std::vector<std::string> patterns;
      for (const std::string& flag : flags_of(*option)) {
        patterns.push_back("\"" + command_name(*command) + ":" + flag + "\"");
      }
      text += fmt::format("    {}) words=\"{}\"; is_file= ;;\n", fmt::join(patterns, "|"),
                          fmt::join(choices_of(*option), " "));
    }
  }
  return text;
}

// Offers the commands of a group, and makes two words one command.
std::string bash_groups(const CLI::App& app) {
  std::string text;
  for (const CLI::App* group : groups_of(app)) {
    text += fmt::format(
        "  if [ \"$command\" = {0} ]; then\n"
        "    if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
        "      COMPREPLY=($(compgen -W \"{1} {2}\" -- \"$current\"))\n      return\n    fi\n"
        "    command=\"{0} ${{COMP_WORDS[2]}}\"\n  fi\n",
        group->get_name(), command_names(*group), all_flags(*group));
  }
  return text;
}

std::string bash_completion(const CLI::App& app) {
  std::string text = fmt::format(
      "# bash completion of eckart, made by `eckart completion bash`\n_eckart() {{\n"
      "  local IFS=$' \\t\\n' current=\"${{COMP_WORDS[COMP_CWORD]}}\" flags=\"\" words=\"\" "
      "is_file=1\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} {}\" -- \"$current\"))\n    return\n  fi\n"
      "  local command=\"${{COMP_WORDS[1]}}\"\n{}"
      "  case \"$command\" in\n",
      command_names(app), all_flags(app), bash_groups(app));
  for (const CLI::App* command : working_commands_of(app)) {
    const std::string choices = positional_choices(*command);
    text +=
        fmt::format("    \"{}\") flags=\"{}\"{} ;;\n", command_name(*command), all_flags(*command),
                    choices.empty() ? "" : " words=\"" + choices + "\" is_file=");
  }
  text += "  esac\n  case \"$command:${COMP_WORDS[COMP_CWORD-1]}\" in\n" + bash_values(app);
  // One file a line: names may hold blanks.
  return text +
         "  esac\n  case \"$current\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$current\")); return ;;\n  esac\n"
         "  if [ -z \"$is_file\" ]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n    return\n  fi\n"
         "  compopt -o filenames 2>/dev/null\n"
         "  IFS=$'\\n'\n  COMPREPLY=($(compgen -f -- \"$current\"))\n}\n"
         "complete -F _eckart eckart\n";
}

// Text inside single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// zsh reads `:` and brackets of a description itself.
std::string zsh_text(std::string text) {
  for (const char special : {'\\', ':', '[', ']'}) {
    for (std::size_t i = text.find(special); i != std::string::npos;
         i = text.find(special, i + 2)) {
      text.insert(i, "\\");
    }
  }
  return text;
}

std::string zsh_value(const CLI::Option& option) {
  const std::string value = value_name(option);
  if (value.empty()) return {};
  const std::vector<std::string> choices = choices_of(option);
  if (!choices.empty()) return fmt::format(":value:({})", fmt::join(choices, " "));
  return ":" + value + ":" + (takes_file(option) ? "_files" : " ");
}

std::string zsh_descriptions(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : commands_of(app)) {
    text +=
        "    " + quoted(command->get_name() + ":" + zsh_text(command->get_description())) + "\n";
  }
  return text;
}

std::string zsh_completion(const CLI::App& app) {
  std::string text =
      "#compdef eckart\n# made by `eckart completion zsh`\n_eckart() {\n  local -a commands\n  "
      "commands=(\n";
  text += zsh_descriptions(app);
  text +=
      "  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  local command=$words[2]\n  shift words; (( CURRENT-- ))\n";
  for (const CLI::App* group : groups_of(app)) {
    text += "  if [[ $command == " + group->get_name() + " ]]; then\n    commands=(\n" +
            zsh_descriptions(*group) +
            "    )\n    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
            "    command=\"$command $words[2]\"\n    shift words; (( CURRENT-- ))\n  fi\n";
  }
  text += "  case $command in\n";
  for (const CLI::App* command : working_commands_of(app)) {
    text += "    \"" + command_name(*command) + "\") _arguments";
    for (const CLI::Option* option : options_of(*command, false)) {
      for (const std::string& flag : flags_of(*option)) {
        text += " " +
                quoted(flag + "[" + zsh_text(option->get_description()) + "]" + zsh_value(*option));
      }
    }
    const std::string choices = positional_choices(*command);
    text += (choices.empty() ? " '*:file:_files'" : " '1:word:(" + choices + ")'") + " ;;\n";
  }
  return text + "  esac\n}\n_eckart \"$@\"\n";
}

// When the words so far are those of this command.
std::string fish_condition(const CLI::App& command) {
  const std::string own = "__fish_seen_subcommand_from " + command.get_name();
  const CLI::App* const group = command.get_parent();
  return group->get_parent() == nullptr ? own : fish_condition(*group) + "; and " + own;
}

// How a command is offered: at first, or behind the name of its group.
std::string fish_place(const CLI::App& command) {
  const CLI::App* const group = command.get_parent();
  if (group->get_parent() == nullptr) return "__fish_use_subcommand";
  return fish_condition(*group) + "; and not __fish_seen_subcommand_from " + command_names(*group);
}

std::string fish_commands(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("complete -c eckart -n '{}' -f -a {} -d {}\n", fish_place(*command),
                        command->get_name(), quoted(command->get_description()));
    text += fish_commands(*command);
  }
  return text;
}

std::string fish_completion(const CLI::App& app) {
  std::string text = "# fish completion of eckart, made by `eckart completion fish`\n";
  text += fish_commands(app);
  for (const CLI::App* command : working_commands_of(app)) {
    if (const std::string choices = positional_choices(*command); !choices.empty()) {
      text +=
          fmt::format("complete -c eckart -n '{}' -f -a '{}'\n", fish_condition(*command), choices);
    }
    for (const CLI::Option* option : options_of(*command, false)) {
      text += fmt::format("complete -c eckart -n '{}'", fish_condition(*command));
      for (const std::string& name : option->get_snames()) text += " -s " + name;
      for (const std::string& name : option->get_lnames()) text += " -l " + name;
      if (!value_name(*option).empty()) text += takes_file(*option) ? " -r" : " -x";
      if (const auto choices = choices_of(*option); !choices.empty()) {
        text += fmt::format(" -a '{}'", fmt::join(choices, " "));
      }
      text += " -d " + quoted(option->get_description()) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string help_text(const CLI::App& app) {
  std::string text;
  if (!app.get_footer().empty()) text += "Example:\n" + app.get_footer() + "\n";
  text += app.get_description() + ".\n\nUsage: " + usage_of(app) + "\n";
  if (const auto commands = commands_of(app); !commands.empty()) {
    std::vector<OptionText> entries;
    for (const CLI::App* command : commands) {
      entries.push_back({command->get_name(), command->get_description()});
    }
    text += "\nCommands:\n" + listed(entries);
  }
  text += "\nOptions:\n" + listed(option_texts(app));
  text += std::string("\nExit status: ") + exit_statuses + "\n";
  if (app.get_parent() == nullptr) {
    text +=
        "\n`eckart COMMAND --help` tells more. GB is 10^9 bytes, GiB 2^30; one MAC is two FLOPs.\n";
  }
  return text;
}

void add_man(CommandLine& line) {
  add_plain_command(
      line,
      {.name = "man", .summary = "Print the manual page", .examples = {"eckart man | man -l -"}},
      [&line] {
        print(man_page(line.app));
        return 0;
      });
}

void add_completion(CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  CLI::App* const command = add_plain_command(
      line,
      {.name = "completion",
       .summary = "Print the completion script of a shell",
       .examples = {"eckart completion bash > ~/.local/share/bash-completion/completions/eckart"}},
      [&line, shell] {
        print(*shell == "bash"  ? bash_completion(line.app)
              : *shell == "zsh" ? zsh_completion(line.app)
                                : fish_completion(line.app));
        return 0;
      });
  command->add_option("shell", *shell, "Which shell: bash, zsh or fish")
      ->required()
      ->type_name("bash|zsh|fish")
      // Its description would stand beside the value's name.
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}).description(""));
}

}  // namespace eckart::cli

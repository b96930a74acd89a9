// eckart completion: scripts for bash, zsh and fish, made from the command definitions.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command_texts.h"
#include "commands.h"
#include "console.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

// Whether its value may be a file's name; numbers, sizes and dtypes are none.
bool takes_file(const CLI::Option& option) {
  const std::string value = value_name(option);
  const bool is_word = value.size() == 1 || value == "SIZE" || value == "NAMES";
  return !value.empty() && !is_word && choices_of(option).empty();
}

std::vector<const CLI::App*> groups_of(const CLI::App& app) {
  std::vector<const CLI::App*> groups;
  for (const CLI::App* command : commands_of(app)) {
    if (!commands_of(*command).empty()) groups.push_back(command);
  }
  return groups;
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
  add_choice(
      *command,
      {.name = "shell", .effect = "Which shell: bash, zsh or fish", .value = "bash|zsh|fish"},
      [shell](const std::string& word) { *shell = word; })
      ->required();
}

}  // namespace eckart::cli

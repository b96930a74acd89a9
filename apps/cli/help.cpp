// Help of the program and of its commands.
#include <algorithm>
#include <string>
#include <vector>

#include "command_texts.h"
#include "commands.h"
#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

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

}  // namespace eckart::cli

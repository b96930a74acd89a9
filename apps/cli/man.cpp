// eckart man: the manual page, made from the command definitions.
#include <string>

#include "command_texts.h"
#include "commands.h"
#include "console.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

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

}  // namespace

void add_man(CommandLine& line) {
  add_plain_command(
      line,
      {.name = "man", .summary = "Print the manual page", .examples = {"eckart man | man -l -"}},
      [&line] {
        print(man_page(line.app));
        return 0;
      });
}

}  // namespace eckart::cli

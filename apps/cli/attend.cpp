// eckart attend: which tokens each head of a model looks at.
#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/findings.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attend_report.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "model_input.h"
#include "text_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct AttendCommand {
  TextOptions text;
  std::optional<Index> layer;
  std::optional<Index> head;
  std::string html;
};

void check_choice(const AttendCommand& command, const Architecture& a) {
  if (command.layer && *command.layer >= a.n_layers) {
    throw_argument_error(fmt::format("attend: layer {}, but the model has those from 0 to {}",
                                     *command.layer, a.n_layers - 1));
  }
  if (command.head && *command.head >= a.n_heads) {
    throw_argument_error(fmt::format("attend: head {}, but each layer has those from 0 to {}",
                                     *command.head, a.n_heads - 1));
  }
}

// Whether any token looks at one that follows.
bool looks_ahead(TensorView<const float> weights) {
  for (Index query = 0; query < weights.size(1); ++query) {
    for (Index key = query + 1; key < weights.size(2); ++key) {
      if (weights(0, query, key) > 0) return true;
    }
  }
  return false;
}

// Whether anything shows weights, and not only what was found in them: the text those of one head.
bool shows_weights(const AttendCommand& command, const CommonOptions& common,
                   const Architecture& a) {
  const bool is_one_head = (command.layer || a.n_layers == 1) && (command.head || a.n_heads == 1);
  return common.json || !command.html.empty() || is_one_head;
}

// Runs the model, and of one layer's weights after another keeps what was asked for.
Attended attended(const TextInput& input, const AttendCommand& command, bool keeps_weights) {
  const Architecture& a = input.model.architecture();
  Attended found;
  found.name = input.name;
  found.head = architecture_line(a);
  found.ids = input.ids;
  for (const Index id : input.ids) found.labels.push_back(input.label(id));
  ForwardOptions options{.attention_weights = true, .keeps_attention = false};
  options.on_intermediate = [&](const Intermediate& one) {
    if (!one.name.ends_with("attention_weights")) return;
    if (one.layer == 0) found.is_causal = !looks_ahead(one.values);
    if (command.layer && *command.layer != one.layer) return;
    for (const HeadPattern& pattern : attention_patterns(one.values, input.ids)) {
      if (command.head && *command.head != pattern.head) continue;
      Tensor<float> weights;
      if (keeps_weights) weights = Tensor<float>(one.values.select(0, pattern.head));
      found.heads.push_back({one.layer, pattern, std::move(weights)});
    }
  };
  static_cast<void>(input.model.forward({{.ids = input.ids}}, options));
  return found;
}

int run_attend(const AttendCommand& command, const CommonOptions& common) {
  std::optional<AtomicFile> page;
  if (!command.html.empty()) page.emplace(command.html);
  const TextInput input = open_text(command.text, "attend", {}, common);
  check_choice(command, input.model.architecture());
  const Attended found =
      attended(input, command, shows_weights(command, common, input.model.architecture()));
  if (page) save_text(*page, attend_html(found));
  if (common.json) {
    print_json(attend_json(found));
  } else if (page) {
    print(fmt::format("{}: the attention of {} on {}\n", printable_path(command.html),
                      counted(found.heads.size(), "head"), counted(found.ids.size(), "token")));
  } else {
    print(attend_text(found));
  }
  return 0;
}

}  // namespace

void add_attend(CommandLine& line) {
  auto options = std::make_shared<AttendCommand>();
  CLI::App* const command = add_command(
      line,
      {.name = "attend",
       .summary = "Which tokens each head looks at: weights, entropy, strongest links, patterns",
       .examples = {"eckart attend MODEL --text \"The cat sat because the cat was tired\"",
                    "eckart attend MODEL --text \"The cat sat\" --layer 0 --head 1",
                    "eckart attend MODEL --text \"The cat sat\" --html attention.html"}},
      [options, &line] { return run_attend(*options, line.common); });
  add_text_options(*command, "--text", options->text);
  add_number(*command,
             {.name = "--layer", .effect = "Only this layer, from 0", .value = "L", .least = 0},
             options->layer);
  add_number(
      *command,
      {.name = "--head", .effect = "Only this head of a layer, from 0", .value = "H", .least = 0},
      options->head);
  command->add_option("--html", options->html, "Write a page to look around in to this file")
      ->type_name("FILE");
}

}  // namespace eckart::cli

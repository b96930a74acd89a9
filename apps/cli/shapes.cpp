// eckart shapes: what becomes of a token's numbers, step by step.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/shape_flow.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "model_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct ShapesOptions {
  std::string path;
  Index batch = 1;
  Index tokens = 0;
  Index layer = 0;
};

std::string or_dash(const std::string& text, bool there) { return there ? text : "-"; }

std::string flow_text(const ModelInput& input, const Flow& flow,
                      const std::optional<FlowConflict>& conflict) {
  using Align = Table::Align;
  std::string text =
      bold(printable(input.name)) + "   " + architecture_line(*input.architecture) + "\n";
  text +=
      fmt::format("batch {}, {} tokens, layer {} of {}, activations in {}\n\n", grouped(flow.batch),
                  grouped(flow.tokens), flow.layer, input.architecture->n_layers, flow.dtype);
  Table table({{"step"},
               {"what"},
               {"gives"},
               {"parameters", Align::right},
               {"FLOPs", Align::right},
               {"bytes", Align::right},
               {""}});
  std::optional<FlowStage> stage;
  for (std::size_t i = 0; i < flow.steps.size(); ++i) {
    const FlowStep& step = flow.steps[i];
    if (stage && stage != step.stage) table.add({});
    stage = step.stage;
    const bool wrong = conflict && conflict->step == i;
    table.add(
        {step.name, step.expression, to_string(step.output),
         or_dash(grouped(step.parameters), step.parameters > 0),
         or_dash(scaled(static_cast<double>(step.flops), ""), step.flops > 0),
         bytes_text(step.bytes),
         wrong ? red(conflict->found ? "<- contradicts the file" : "<- not in the file") : ""});
  }
  text += table.text();
  if (conflict) {
    text += "\n" + red("error  ") + " " + printable(conflict->message, 2000) + "\n";
    if (!conflict->hint.empty()) text += "hint: " + printable(conflict->hint, 2000) + "\n";
  } else if (input.checkpoint) {
    text += "\nthe stored tensors of these steps have the shapes that config.json implies\n";
  }
  return text;
}

Json shape_json(const Shape& shape) {
  Json axes = Json::array();
  for (Index axis = 0; axis < shape.rank(); ++axis) {
    axes.push_back(shape.name(axis).empty() ? Json(nullptr) : Json(shape.name(axis)));
  }
  return {{"sizes", shape.sizes()}, {"axes", std::move(axes)}};
}

Json flow_json(const ModelInput& input, const Flow& flow,
               const std::optional<FlowConflict>& conflict) {
  Json steps = Json::array();
  for (const FlowStep& step : flow.steps) {
    Json inputs = Json::array();
    for (const Shape& shape : step.inputs) inputs.push_back(shape_json(shape));
    steps.push_back({{"name", step.name},
                     {"stage", to_string(step.stage)},
                     {"expression", step.expression},
                     {"inputs", std::move(inputs)},
                     {"output", shape_json(step.output)},
                     {"parameters", step.parameters},
                     {"macs", step.macs},
                     {"flops", step.flops},
                     {"bytes", step.bytes},
                     {"weight", step.weight.empty() ? Json(nullptr) : Json(step.weight)}});
  }
  Json json = {{"name", input.name},       {"model_class", input.architecture->model_class},
               {"batch", flow.batch},      {"tokens", flow.tokens},
               {"layer", flow.layer},      {"dtype", flow.dtype},
               {"steps", std::move(steps)}};
  json["conflict"] = nullptr;
  if (conflict) {
    json["conflict"] = {{"step", conflict->step},
                        {"tensor", conflict->tensor},
                        {"expected", conflict->expected.sizes()},
                        {"found", conflict->found ? Json(conflict->found->sizes()) : Json(nullptr)},
                        {"message", conflict->message},
                        {"hint", conflict->hint.empty() ? Json(nullptr) : Json(conflict->hint)}};
  }
  return json;
}

int run_shapes(const ShapesOptions& options, const CommonOptions& common) {
  const ModelInput input = open_model(options.path);
  if (!input.architecture) {
    throw_argument_error("shapes: " + input.no_architecture, input.no_architecture_hint);
  }
  const Index n_layers = input.architecture->n_layers;
  if (options.layer >= n_layers) {
    throw_argument_error("--layer is " + std::to_string(options.layer) +
                         ", but the model has layers 0 to " + std::to_string(n_layers - 1));
  }
  const Flow flow =
      shape_flow(*input.architecture,
                 {.batch = options.batch, .tokens = options.tokens, .layer = options.layer});
  std::optional<FlowConflict> conflict;
  if (input.checkpoint) conflict = check_flow(flow, *input.architecture, input.tensors);
  if (common.json) {
    print_json(flow_json(input, flow, conflict));
  } else {
    print(flow_text(input, flow, conflict));
  }
  return conflict ? 1 : 0;
}

}  // namespace

void add_shapes(CommandLine& line) {
  auto options = std::make_shared<ShapesOptions>();
  CLI::App* const command = add_command(
      line,
      {.name = "shapes",
       .summary = "Follow the shapes through one layer, step by step, and mark what contradicts",
       .examples = {"eckart shapes models/all-MiniLM-L6-v2 --tokens 128",
                    "eckart shapes config.json --batch 4 --layer 3"}},
      [options, &line] { return run_shapes(*options, line.common); });
  command->add_option("path", options->path, "A model folder, a checkpoint file or a config.json")
      ->required()
      ->type_name("PATH");
  add_number(*command, {.name = "--batch", .effect = "Sequences at once (default: 1)"},
             options->batch);
  add_number(*command,
             {.name = "--tokens", .effect = "Tokens of a sequence (default: the context)"},
             options->tokens);
  add_number(*command,
             {.name = "--layer",
              .effect = "Which layer to follow (default: 0, the first)",
              .value = "L",
              .least = 0},
             options->layer);
}

}  // namespace eckart::cli

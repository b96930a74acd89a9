// eckart trace: every intermediate of a forward pass, and what each layer would predict.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/npz_write.h"
#include "eckart/model/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "console.h"
#include "model_input.h"
#include "text_input.h"
#include "trace_report.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct TraceCommand {
  TextOptions text;
  std::string output;
};

std::optional<NpzWriter> open_output(const std::string& path) {
  if (path.empty()) return std::nullopt;
  if (std::filesystem::path(path).extension() != ".npz") {
    throw_usage_error("trace: the intermediates can't be written to " + printable_path(path) +
                      ", but to an .npz file");
  }
  return std::make_optional<NpzWriter>(path);
}

// The likeliest tokens that the last token's state of a layer stands for.
LensRow lens_row(const TextInput& input, Index layer, TensorView<const float> logits) {
  LensRow row{.layer = layer};
  for (Index i = 0; i < logits.count(); ++i) {
    if (!std::isfinite(logits(i))) return row;
  }
  const Tensor<double> probabilities = token_probabilities(logits);
  std::vector<Index> ids(static_cast<std::size_t>(logits.count()));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Index>(i);
  const auto n = std::min<Index>(5, logits.count());
  std::partial_sort(ids.begin(), ids.begin() + n, ids.end(), [&](Index a, Index b) {
    return logits(a) > logits(b) || (logits(a) == logits(b) && a < b);
  });
  for (Index i = 0; i < n; ++i) {
    const Index id = ids[static_cast<std::size_t>(i)];
    row.likeliest.push_back(
        {id, input.label(id), static_cast<double>(logits(id)), probabilities(id)});
  }
  return row;
}

std::vector<LensRow> logit_lens(const TextInput& input, const ForwardResult& result) {
  std::vector<LensRow> rows;
  if (!input.model.has_logits()) return rows;
  for (std::size_t layer = 0; layer < result.hidden_states.size(); ++layer) {
    const Tensor<float>& states = result.hidden_states[layer];
    const Index last = states.size(0) - 1;
    const Tensor<float> logits = input.model.unembed(states.view().slice(0, {last, last + 1}));
    rows.push_back(lens_row(input, static_cast<Index>(layer), logits.view().select(0, 0)));
  }
  return rows;
}

int run_trace(const TraceCommand& command, const CommonOptions& common) {
  std::optional<NpzWriter> writer = open_output(command.output);
  const TextInput input = open_text(command.text, "trace", {}, common);
  Traced found;
  found.name = input.name;
  found.head = architecture_line(input.model.architecture());
  found.ids = input.ids;
  for (const Index id : input.ids) found.labels.push_back(input.label(id));
  ForwardOptions options{.logits = input.model.has_logits() ? Logits::all : Logits::none,
                         .hidden_states = true,
                         .attention_weights = true,
                         .keeps_attention = false};
  options.on_intermediate = [&](const Intermediate& one) {
    found.rows.push_back(trace_row(one));
    if (writer) writer->add(one.name, one.values);
  };
  const ForwardResult result = input.model.forward({{.ids = input.ids}}, options);
  found.lens = logit_lens(input, result);
  if (writer) {
    Tensor<std::int64_t> ids(Shape{static_cast<Index>(input.ids.size())});
    std::copy(input.ids.begin(), input.ids.end(), ids.data());
    writer->add("ids", ids);
    writer->commit();
  }
  if (common.json) {
    print_json(trace_json(found));
  } else {
    print(trace_text(found));
    if (writer) {
      print(fmt::format("\n{}: all {} arrays\n", printable_path(command.output),
                        found.rows.size() + 1));
    }
  }
  const bool is_finite = std::all_of(found.rows.begin(), found.rows.end(), [](const TraceRow& row) {
    return row.n_nan + row.n_infinite == 0;
  });
  return is_finite ? 0 : 1;
}

}  // namespace

void add_trace(CommandLine& line) {
  auto options = std::make_shared<TraceCommand>();
  CLI::App* const command = add_command(
      line,
      {.name = "trace",
       .summary = "Every intermediate of a forward pass: shape, size, extremes; what each layer "
                  "would predict",
       .examples = {"eckart trace MODEL --text \"The cat sat on the\"",
                    "eckart trace MODEL --text \"The cat\" -o intermediates.npz"}},
      [options, &line] { return run_trace(*options, line.common); });
  add_text_options(*command, "--text", options->text);
  command->add_option("-o,--output", options->output, "Write every intermediate to this .npz file")
      ->type_name("PATH");
}

}  // namespace eckart::cli

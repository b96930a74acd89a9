// eckart pca fit, transform, plot: principal components of the rows of a matrix.
#include "eckart/linalg/pca.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_input.h"
#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "pca_model.h"
#include "scatter_svg.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

// Rows of the table of components that a reader sees.
constexpr Index shown_components = 20;
// Axes of a plot.
constexpr Index plotted = 2;

struct FitCommand {
  std::string x;
  PcaOptions options;
  bool scale = false;
  std::string output;
};

template <class T>
Json fit_json(const Pca<T>& model) {
  return {{"mean", array_json(model.mean.view())},
          {"scale", model.scale.count() == 0 ? Json(nullptr) : array_json(model.scale.view())},
          {"components", array_json(model.components.view())},
          {"explained_variance", array_json(model.explained_variance.view())},
          {"explained_variance_ratio", array_json(model.explained_variance_ratio.view())},
          {"total_variance", number_json(model.total_variance)},
          {"n_samples", model.n_samples},
          {"whiten", model.whiten},
          {"rank", model.rank},
          {"solver", to_string(model.solver)},
          {"converged", model.converged},
          {"iterations", model.iterations},
          {"residual", number_json(model.residual)},
          {"warnings", model.warnings}};
}

template <class T>
std::string fit_text(const Pca<T>& model, const ArrayInput& input, const std::string& output) {
  using Align = Table::Align;
  const Index k = model.components.size(0);
  std::string text = fmt::format(
      "x  {}\ncomponents  {}   {} solver{}{}\n\n", shape_text(input.shape),
      shape_text(model.components.shape()), to_string(model.solver),
      model.scale.count() > 0 ? ", columns scaled" : "", model.whiten ? ", scores whitened" : "");
  Table table({{"component", Align::right},
               {"variance", Align::right},
               {"share", Align::right},
               {"all so far", Align::right}});
  double sum = 0;
  for (Index i = 0; i < k; ++i) {
    sum += model.explained_variance_ratio(i);
    if (i >= shown_components && i + 1 < k) continue;
    if (i >= shown_components && k > shown_components + 1) table.add({"…"});
    table.add({std::to_string(i + 1), fmt::format("{:.5g}", model.explained_variance(i)),
               percent(model.explained_variance_ratio(i), 1), percent(sum, 1)});
  }
  text += table.text();
  if (!model.warnings.empty()) text += "\n";
  for (const std::string& warning : model.warnings) {
    text += yellow("warning") + "  " + printable(warning, 500) + "\n";
  }
  if (!output.empty()) text += "\nwritten to " + printable_path(output) + "\n";
  return text;
}

// The first two scores of every row, for plots.
template <class T>
Tensor<T> leading_scores(const Pca<T>& model, const Tensor<T>& x) {
  const Index n = std::min(plotted, model.components.size(0));
  return Tensor<T>(transform(model, x).view().slice(1, {0, n, 1}));
}

// Variances are squares: those of the smallest doubles are 0, or have few digits.
template <class T>
void check_squares(std::string_view operation, const Tensor<T>& x) {
  constexpr double least = 1e-146;  // the root of the least double with all digits, over 2^-53
  double largest = 0;
  for (Index i = 0; i < x.count(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(x.data()[i])));
  }
  if (largest == 0 || largest >= least) return;
  throw_argument_error(
      fmt::format(
          "{}: the largest element of x is {:.4g}, whose square is below the range of double",
          operation, largest),
      "divide x by its largest element");
}

template <class T>
Pca<T> fitted(const FitCommand& command, const Tensor<T>& x, std::optional<NpzWriter>& writer) {
  check_squares("pca fit", x);
  Pca<T> model = pca(x, command.options);
  if (writer) save_pca(*writer, model, leading_scores(model, x));
  return model;
}

int fit(FitCommand command, const CommonOptions& common) {
  if (command.options.k > 0 && command.options.share > 0) {
    throw_usage_error("-k and --share are both given, but each alone says how many components",
                      "leave one of them out");
  }
  if (command.options.solver == PcaSolver::randomized && command.options.k == 0) {
    throw_usage_error("--solver randomized is given without -k, which it needs",
                      "give -k, or choose another --solver");
  }
  if (command.scale) command.options.scale = PcaScale::standard;
  std::optional<NpzWriter> writer = open_model_output(command.output, "pca fit");
  const ArrayInput input = open_array(command.x, "pca fit");
  in_precision(input.is_double, [&]<class T>(T) {
    const Pca<T> model = fitted(command, load_matrix<T>(input), writer);
    if (common.json) {
      print_json(fit_json(model));
    } else {
      print(fit_text(model, input, command.output));
    }
  });
  return 0;
}

struct TransformCommand {
  std::string model;
  std::string x;
  bool inverse = false;
  std::string output;
};

template <class T>
Tensor<T> transformed(const TransformCommand& command, const ArrayInput& input) {
  const Pca<T> model = load_pca<T>(command.model);
  const Tensor<T> x = load_matrix<T>(input);
  return command.inverse ? inverse_transform(model, x) : transform(model, x);
}

int transform_rows(const TransformCommand& command, const CommonOptions& common) {
  check_model_path(command.model);
  ArrayFile output(command.output, "pca transform");
  const ArrayInput input = open_array(command.x, "pca transform");
  const std::string label = command.inverse ? "x" : "scores";
  in_precision(input.is_double, [&]<class T>(T) {
    const Tensor<T> result = transformed<T>(command, input);
    save_array(output, result);
    if (common.json) {
      print_json({{label, array_json(result)}, {"shape", sizes_json(result.shape())}});
      return;
    }
    print(fmt::format("{}  {}\n", command.inverse ? "z" : "x", shape_text(input.shape)));
    print(array_text(label, result));
  });
  return 0;
}

struct PlotCommand {
  std::string source;
  std::string labels;
  bool scale = false;
  std::string output;
};

// What is drawn: scores (n x 2) and the shares of the variance of their components.
struct PlotPoints {
  Tensor<double> scores;
  Tensor<double> shares;
};

PlotPoints points_of(const PlotCommand& command) {
  if (is_pca_model(command.source)) {
    if (command.scale) {
      throw_usage_error("--scale is given with a model, but the model says how to scale",
                        "leave it out, or give the array that the model was fitted on");
    }
    return {load_pca_scores(command.source),
            load_pca<double>(command.source).explained_variance_ratio};
  }
  const Tensor<double> x = load_matrix<double>(open_array(command.source, "pca plot"));
  check_squares("pca plot", x);
  const Index limit = std::min(x.size(0), x.size(1));
  const Pca<double> model = pca(x, {.k = std::min(plotted, limit),
                                    .scale = command.scale ? PcaScale::standard : PcaScale::none});
  return {leading_scores(model, x), model.explained_variance_ratio};
}

// Refuses what is no regular file: a pipe would be waited for.
std::vector<std::string> lines_of(const std::string& path) {
  const MappedFile file = open_mapped(path);
  const std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

int plot(const PlotCommand& command, const CommonOptions& common) {
  if (std::filesystem::path(command.output).extension() != ".svg") {
    throw_usage_error("pca plot: the plot can't be written to " + printable_path(command.output) +
                      ", but to an .svg file");
  }
  AtomicFile file(command.output);
  const PlotPoints points = points_of(command);
  const Index n = points.scores.size(0);
  if (points.scores.rank() != 2 || points.scores.size(1) < plotted) {
    throw_argument_error("pca plot: there is 1 component, but a plot has two axes",
                         "fit at least two components, of at least two columns");
  }
  Scatter scatter;
  if (!command.labels.empty()) scatter.labels = lines_of(command.labels);
  if (!command.labels.empty() && static_cast<Index>(scatter.labels.size()) != n) {
    throw_argument_error(fmt::format(
        "pca plot: {} has {}, but there are {} to label", printable_path(command.labels),
        counted(scatter.labels.size(), "line"), counted(static_cast<std::uint64_t>(n), "row")));
  }
  const auto title = [&](Index component) {
    return fmt::format("component {} ({} of the variance)", component + 1,
                       percent(points.shares(component), 1));
  };
  scatter.title = "Principal components of " +
                  printable(std::filesystem::path(command.source).filename().string(), 60);
  scatter.x_title = title(0);
  scatter.y_title = title(1);
  save_text(file, scatter_svg(points.scores, scatter));
  if (common.json) {
    print_json(
        {{"output", command.output},
         {"n_samples", n},
         {"explained_variance_ratio", array_json(points.shares.view().slice(0, {0, plotted, 1}))}});
  } else {
    print(fmt::format("{} drawn in {}\n", counted(static_cast<std::uint64_t>(n), "row"),
                      printable_path(command.output)));
  }
  return 0;
}

void add_fit(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<FitCommand>();
  CLI::App* const app =
      add_command(line,
                  {.name = "fit",
                   .summary = "Find the directions in which the rows of a matrix differ most",
                   .examples = {"eckart pca fit embeddings.npy -k 50 -o model.npz",
                                "eckart pca fit table.csv --share 0.9 --scale"},
                   .group = group},
                  [command, &line] { return fit(*command, line.common); });
  app->add_option("x", command->x, std::string(array_help))->required()->type_name("X");
  add_number(*app, {.name = "-k", .effect = "Number of components (default: all)"},
             command->options.k);
  add_decimal(*app,
              {.name = "--share",
               .effect = "As many components as hold this share of the variance, such as 0.9",
               .value = "S"},
              Decimals::above_0_to_1, [command](double share) { command->options.share = share; });
  app->add_flag("--scale", command->scale,
                "Divide columns by their standard deviations first: where units differ");
  app->add_flag("--whiten", command->options.whiten, "Give every score the variance 1");
  add_choice<PcaSolver>(*app,
                        {.name = "--solver",
                         .effect = "How to find them (default: by the shape)",
                         .value = "automatic|covariance|svd|randomized"},
                        {{"automatic", PcaSolver::automatic},
                         {"covariance", PcaSolver::covariance},
                         {"svd", PcaSolver::svd},
                         {"randomized", PcaSolver::randomized}},
                        command->options.solver);
  add_seed(*app, "Of the randomized solver (default: 0)", command->options.seed);
  app->add_option("-o,--output", command->output, "Write the model to this .npz file")
      ->type_name("PATH");
}

void add_transform(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<TransformCommand>();
  CLI::App* const app =
      add_command(line,
                  {.name = "transform",
                   .summary = "Express rows by the components of a model, or back",
                   .examples = {"eckart pca transform model.npz x.npy -o scores.npy",
                                "eckart pca transform --inverse model.npz scores.npy -o x.npy"},
                   .group = group},
                  [command, &line] { return transform_rows(*command, line.common); });
  app->add_option("model", command->model, "The .npz file that `eckart pca fit` wrote")
      ->required()
      ->type_name("MODEL");
  app->add_option("x", command->x, std::string(array_help))->required()->type_name("X");
  app->add_flag("--inverse", command->inverse, "X are scores: give the rows that have them");
  app->add_option("-o,--output", command->output, std::string(output_help))->type_name("PATH");
}

void add_plot(CommandLine& line, CLI::App* group) {
  auto command = std::make_shared<PlotCommand>();
  CLI::App* const app =
      add_command(line,
                  {.name = "plot",
                   .summary = "Draw rows by their first two components",
                   .examples = {"eckart pca plot embeddings.npy --labels words.txt -o plot.svg",
                                "eckart pca plot model.npz -o plot.svg"},
                   .group = group},
                  [command, &line] { return plot(*command, line.common); });
  app->add_option(
         "source", command->source,
         "A model that `eckart pca fit` wrote, drawn with the rows it was fitted on, or an "
         "array")
      ->required()
      ->type_name("SOURCE");
  app->add_option("--labels", command->labels,
                  "A text file with one label a line, one for each row")
      ->type_name("PATH");
  app->add_flag("--scale", command->scale, "Divide the columns of X by their standard deviations");
  app->add_option("-o,--output", command->output, "Write the plot to this .svg file")
      ->required()
      ->type_name("PATH");
}

}  // namespace

void add_pca(CommandLine& line) {
  CLI::App* const group =
      add_command_group(line, {.name = "pca",
                               .summary = "Principal components: fit, apply and draw them",
                               .examples = {"eckart pca fit x.npy -k 50 -o model.npz",
                                            "eckart pca plot model.npz -o plot.svg"}});
  add_fit(line, group);
  add_transform(line, group);
  add_plot(line, group);
}

}  // namespace eckart::cli

// eckart lstsq: the x that brings a x closest to b.
#include "eckart/linalg/lstsq.h"

#include "eckart/linalg/ridge.h"

#include <memory>
#include <optional>
#include <string>

#include "array_input.h"
#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct LstsqCommand {
  std::string a;
  std::string b;
  std::optional<double> ridge;  // its strength
  bool ridge_loo = false;
  std::string output;
};

// What all three ways have in common, and what is said of the way.
template <class T>
struct Fit {
  Tensor<T> x;
  T residual_norm;
  Index rank;
  T condition_number;
  std::string how;
  Json more;
};

void take_ridge(LstsqCommand& command, const std::string& text) {
  command.ridge_loo = text == "loo";
  if (command.ridge_loo) return;
  const bool is_number = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (!is_number) {
    throw_usage_error("--ridge is '" + text + "', but must be a number or loo",
                      "loo chooses a strength by leaving out each row in turn");
  }
  command.ridge = parse_decimal("--ridge", text, Decimals::from_0);
}

template <class T>
Fit<T> fitted(const LstsqCommand& command, const Tensor<T>& a, const Tensor<T>& b) {
  if (!command.ridge && !command.ridge_loo) {
    LeastSquares<T> fit = lstsq(a, b);
    const std::string method(to_string(fit.method));
    return {std::move(fit.x),     fit.residual_norm, fit.rank,
            fit.condition_number, "by " + method,    {{"method", method}}};
  }
  if (command.ridge) {
    Ridge<T> fit = ridge(a, b, *command.ridge);
    return {std::move(fit.x),
            fit.residual_norm,
            fit.rank,
            fit.condition_number,
            "ridge of strength " + number_text(fit.strength),
            {{"strength", fit.strength}}};
  }
  RidgeCv<T> fit = ridge_cv(a, b);
  Json errors = Json::array();
  for (const double error : fit.loo_errors) errors.push_back(number_json(error));
  return {std::move(fit.x),
          fit.residual_norm,
          fit.rank,
          fit.condition_number,
          fmt::format("ridge of strength {}, chosen of {} by leaving out each row",
                      number_text(fit.strength), fit.strengths.size()),
          {{"strength", fit.strength},
           {"strengths", fit.strengths},
           {"loo_errors", std::move(errors)}}};
}

template <class T>
void print_fit(const Fit<T>& fit, const ArrayInput& a, const ArrayInput& b, bool json) {
  const double condition = static_cast<double>(fit.condition_number);
  const double residual = static_cast<double>(fit.residual_norm);
  if (json) {
    Json result = {{"x", array_json(fit.x)},
                   {"residual_norm", number_json(residual)},
                   {"rank", fit.rank},
                   {"condition_number", number_json(condition)}};
    result.update(fit.more);
    print_json(result);
    return;
  }
  print(shapes_text({{"a", a.shape}, {"b", b.shape}}));
  print(array_text("x", fit.x));
  print(fmt::format("residual_norm  {}   rank  {}   condition_number  {}   {}\n",
                    number_text(residual), fit.rank, number_text(condition), fit.how));
}

int run_lstsq(const LstsqCommand& command, const CommonOptions& common) {
  ArrayFile output(command.output, "lstsq");
  const ArrayInput a = open_array(command.a, "lstsq");
  const ArrayInput b = open_array(command.b, "lstsq");
  in_precision(a.is_double || b.is_double, [&]<class T>(T) {
    const Fit<T> fit =
        fitted(command, a.is_table ? load_matrix<T>(a) : load_array<T>(a), load_array<T>(b));
    save_array(output, fit.x);
    print_fit(fit, a, b, common.json);
  });
  return 0;
}

}  // namespace

void add_lstsq(CommandLine& line) {
  auto command = std::make_shared<LstsqCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "lstsq",
       .summary = "Least squares: the x that brings a x closest to b",
       .examples = {"eckart lstsq \"[[0,1],[1,1],[2,1]]\" \"[1,2,2]\"",
                    "eckart lstsq features.npy targets.npy --ridge loo -o weights.npy"}},
      [command, &line] { return run_lstsq(*command, line.common); });
  app->add_option("a", command->a, "A matrix: " + std::string(array_help))
      ->required()
      ->type_name("A");
  app->add_option("b", command->b, "A vector, or a matrix with a right-hand side in each column")
      ->required()
      ->type_name("B");
  add_text(*app,
           {.name = "--ridge",
            .effect = "Add this times ||x||^2 to what is made small, or choose it (loo) by leaving "
                      "out each row in turn",
            .value = "S|loo"},
           [command](const std::string& text) { take_ridge(*command, text); });
  app->add_option("-o,--output", command->output, "Write x to this .npy file")->type_name("PATH");
}

}  // namespace eckart::cli

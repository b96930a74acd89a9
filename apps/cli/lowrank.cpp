// eckart lowrank: the best approximation of a matrix by one of low rank.
#include "eckart/io/findings.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/linalg/matmul.h"

#include <memory>
#include <set>
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

struct LowRankCommand {
  std::string a;
  LowRankOptions options;
  std::string output;
  std::string b_output;
  std::string a_output;
};

template <class T>
Tensor<T> product_of(const LowRankFactors<T>& factors) {
  return matmul(factors.b, factors.a);
}

template <class T>
void print_text(const ArrayInput& input, const LowRank<T>& found) {
  print(shapes_text({{"a", input.shape}}));
  print(fmt::format("rank            {}\n", found.rank));
  print(fmt::format("relative_error  {:.6g}   ||a - b a||_F = {:.6g} of {:.6g}\n",
                    found.relative_error, found.frobenius_error, found.frobenius_norm));
  print(fmt::format("method          {}, {} over the matrix\n", found.method,
                    found.passes == 1 ? "1 pass" : fmt::format("{} passes", found.passes)));
  print(array_text("singular values", found.s));
}

template <class T>
void run(const LowRankCommand& command, const ArrayInput& input, bool json) {
  const LowRank<T> found = low_rank(load_matrix<T>(input), command.options);
  const LowRankFactors<T> pair = factors(found);
  if (!command.output.empty()) write_array(command.output, product_of(pair));
  write_array(command.b_output, pair.b);
  write_array(command.a_output, pair.a);
  if (!json) return print_text(input, found);
  print_json({{"rank", found.rank},
              {"relative_error", found.relative_error},
              {"frobenius_error", found.frobenius_error},
              {"frobenius_norm", found.frobenius_norm},
              {"s", array_json(found.s)},
              {"b", array_json(pair.b)},
              {"a", array_json(pair.a)},
              {"method", found.method},
              {"passes", found.passes},
              {"converged", found.converged}});
}

CLI::Validator above_0_below_1() {
  return CLI::Validator(
      [](const std::string& text) {
        double share = 0;
        const bool is_one = CLI::detail::lexical_cast(text, share) && share > 0 && share < 1;
        return is_one ? std::string() : "'" + text + "' must be a number above 0 and below 1";
      },
      "");
}

int run_lowrank(const LowRankCommand& command, const CommonOptions& common) {
  std::set<std::string> paths;
  for (const std::string* path : {&command.output, &command.b_output, &command.a_output}) {
    check_output(*path, "lowrank");
    if (!path->empty() && !paths.insert(*path).second) {
      throw_usage_error("two results can't be written to one file: " + printable_path(*path));
    }
  }
  const ArrayInput input = open_array(command.a, "lowrank");
  input.is_double ? run<double>(command, input, common.json)
                  : run<float>(command, input, common.json);
  return 0;
}

}  // namespace

void add_lowrank(CommandLine& line) {
  auto command = std::make_shared<LowRankCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "lowrank",
       .summary = "The best approximation of a matrix by a product b a of low rank",
       .examples = {"eckart lowrank \"[[2,1],[1,2]]\" --rank 1",
                    "eckart lowrank w.npy --energy 0.9 --b b.npy --a a.npy",
                    "eckart lowrank model/:layers.0.mlp.up_proj.weight --error 0.1 -o w_low.npy"}},
      [command, &line] { return run_lowrank(*command, line.common); });
  app->add_option("a", command->a, "A matrix: " + std::string(array_help))
      ->required()
      ->type_name("A");
  CLI::Option* const rank = add_number(
      *app, {.name = "--rank", .effect = "Keep this rank", .value = "R"}, command->options.rank);
  CLI::Option* const energy =
      app->add_option("--energy", command->options.energy,
                      "Keep the smallest rank with this share of the squared norm: 0.9")
          ->type_name("SHARE")
          ->check(above_0_below_1());
  CLI::Option* const error =
      app->add_option("--error", command->options.relative_error,
                      "Keep the smallest rank whose error is at most this share of the norm: 0.1")
          ->type_name("E")
          ->check(above_0_below_1());
  rank->excludes(energy)->excludes(error);
  energy->excludes(error);
  app->add_option("--tolerance", command->options.tolerance,
                  "End when another step would lower the error by less than this share (default: "
                  "0.0001)")
      ->type_name("T");
  app->add_option("--seed", command->options.seed, "Of the random start (default: 0)")
      ->type_name("N");
  app->add_flag("--exact", command->options.exact, "From the whole spectrum, whatever the sizes");
  app->add_option("-o,--output", command->output, "Write the product b a to this .npy file")
      ->type_name("PATH");
  app->add_option("--b", command->b_output, "Write b, rows x rank, to this .npy file")
      ->type_name("PATH");
  app->add_option("--a", command->a_output, "Write a, rank x columns, to this .npy file")
      ->type_name("PATH");
}

}  // namespace eckart::cli

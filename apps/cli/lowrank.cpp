// eckart lowrank: the best approximation of a matrix by one of low rank.
#include "eckart/io/findings.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/linalg/matmul.h"

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

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

// The files of a result, which appear together or not at all.
struct ResultFiles {
  ArrayFile product, b, a;
};

// Two files of one name: which of the results would it hold?
void check_different(const std::vector<std::string>& paths) {
  std::set<std::filesystem::path> seen;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    std::error_code ignored;
    const std::filesystem::path absolute = std::filesystem::absolute(path, ignored);
    if (seen.insert(std::filesystem::weakly_canonical(absolute, ignored)).second) continue;
    throw_usage_error("two results can't be written to one file: " + printable_path(path));
  }
}

ResultFiles open_files(const LowRankCommand& command) {
  check_different({command.output, command.b_output, command.a_output});
  return {ArrayFile(command.output, "lowrank"), ArrayFile(command.b_output, "lowrank"),
          ArrayFile(command.a_output, "lowrank")};
}

template <class T>
void save(const LowRankCommand& command, const LowRankFactors<T>& pair, ResultFiles& files) {
  if (!command.output.empty()) files.product.write(product_of(pair));
  files.b.write(pair.b);
  files.a.write(pair.a);
  for (ArrayFile* const file : {&files.product, &files.b, &files.a}) file->sync();
  for (ArrayFile* const file : {&files.product, &files.b, &files.a}) file->commit();
}

template <class T>
void run(const LowRankCommand& command, const ArrayInput& input, ResultFiles& files, bool json) {
  const LowRank<T> found = low_rank(load_matrix<T>(input), command.options);
  const LowRankFactors<T> pair = factors(found);
  save(command, pair, files);
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

int run_lowrank(const LowRankCommand& command, const CommonOptions& common) {
  const LowRankOptions& options = command.options;
  if (options.rank == 0 && options.energy == 0 && options.relative_error == 0) {
    throw_usage_error("nothing says how much to keep, but one of --rank, --energy and --error must",
                      "--error 0.1 keeps the smallest rank whose error is 10% of the norm");
  }
  ResultFiles files = open_files(command);
  const ArrayInput input = open_array(command.a, "lowrank");
  in_precision(input.is_double, [&]<class T>(T) { run<T>(command, input, files, common.json); });
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
  CLI::Option* const energy = add_decimal(
      *app,
      {.name = "--energy",
       .effect = "Keep the smallest rank with this share of the squared norm: 0.9",
       .value = "S"},
      Decimals::above_0_below_1, [command](double share) { command->options.energy = share; });
  CLI::Option* const error = add_decimal(
      *app,
      {.name = "--error",
       .effect = "Keep the smallest rank whose error is at most this share of the norm: 0.1",
       .value = "E"},
      Decimals::above_0_below_1,
      [command](double share) { command->options.relative_error = share; });
  rank->excludes(energy)->excludes(error);
  energy->excludes(error);
  add_decimal(
      *app,
      {.name = "--tolerance",
       .effect = "End when another step would lower the error by less than this share (default: "
                 "0.0001)",
       .value = "T"},
      Decimals::above_0_below_1,
      [command](double tolerance) { command->options.tolerance = tolerance; });
  add_seed(*app, "Of the random start (default: 0)", command->options.seed);
  app->add_flag("--exact", command->options.exact, "From the whole spectrum, whatever the sizes");
  app->add_option("-o,--output", command->output, "Write the product b a to this .npy file")
      ->type_name("PATH");
  app->add_option("--b", command->b_output, "Write b, rows x rank, to this .npy file")
      ->type_name("PATH");
  app->add_option("--a", command->a_output, "Write a, rank x columns, to this .npy file")
      ->type_name("PATH");
}

}  // namespace eckart::cli

// eckart rank: how many rows or columns of a matrix are independent.
#include "eckart/linalg/rank.h"

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

struct RankCommand {
  std::string a;
  std::optional<double> tolerance;
};

int run_rank(const RankCommand& command, const CommonOptions& common) {
  const ArrayInput a = open_array(command.a, "rank");
  const RankOptions options{.tolerance = command.tolerance};
  const Index rank = a.is_double ? matrix_rank(load_matrix<double>(a), options)
                                 : matrix_rank(load_matrix<float>(a), options);
  if (common.json) {
    print_json({{"rank", rank}});
  } else {
    print(shapes_text({{"a", a.shape}}));
    print(fmt::format("rank  {}\n", rank));
  }
  return 0;
}

}  // namespace

void add_rank(CommandLine& line) {
  auto command = std::make_shared<RankCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "rank",
       .summary = "Rank of a matrix: the number of singular values above a tolerance",
       .examples = {"eckart rank \"[[1,2],[2,4]]\"", "eckart rank weight.npy --tolerance 1e-3"}},
      [command, &line] { return run_rank(*command, line.common); });
  app->add_option("a", command->a, "A matrix: " + std::string(array_help))
      ->required()
      ->type_name("A");
  add_decimal(*app,
              {.name = "--tolerance",
               .effect = "Singular values up to it count as 0 (default: max(m, n) eps times the "
                         "largest)",
               .value = "X"},
              Decimals::from_0, [command](double tolerance) { command->tolerance = tolerance; });
}

}  // namespace eckart::cli

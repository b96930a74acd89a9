// eckart solve: the x for which a x = b.
#include "eckart/linalg/solve.h"

#include <memory>
#include <string>

#include "array_input.h"
#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct SolveCommand {
  std::string a;
  std::string b;
  MatrixKind kind = MatrixKind::general;
  std::string output;
};

int run_solve(const SolveCommand& command, const CommonOptions& common) {
  ArrayFile output(command.output, "solve");
  const ArrayInput a = open_array(command.a, "solve");
  const ArrayInput b = open_array(command.b, "solve");
  in_precision(a.is_double || b.is_double, [&]<class T>(T) {
    const Tensor<T> x = solve(a.is_table ? load_matrix<T>(a) : load_array<T>(a), load_array<T>(b),
                              {.kind = command.kind});
    save_array(output, x);
    if (common.json) {
      print_json({{"x", array_json(x)}});
    } else {
      print(shapes_text({{"a", a.shape}, {"b", b.shape}}));
      print(array_text("x", x));
    }
  });
  return 0;
}

}  // namespace

void add_solve(CommandLine& line) {
  auto command = std::make_shared<SolveCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "solve",
       .summary = "Solve a x = b for a square matrix and one right-hand side or many",
       .examples = {"eckart solve \"[[2,1],[1,-1]]\" \"[5,1]\"",
                    "eckart solve covariance.npy b.npy --kind positive-definite -o x.npy"}},
      [command, &line] { return run_solve(*command, line.common); });
  app->add_option("a", command->a, "A square matrix: " + std::string(array_help))
      ->required()
      ->type_name("A");
  app->add_option("b", command->b, "A vector, or a matrix with a right-hand side in each column")
      ->required()
      ->type_name("B");
  add_choice<MatrixKind>(
      *app,
      {.name = "--kind",
       .effect = "What is known of A: general (default), positive-definite, lower or upper (a "
                 "triangle, whose other half is not used)",
       .value = "general|positive-definite|lower|upper"},
      {{"general", MatrixKind::general},
       {"positive-definite", MatrixKind::positive_definite},
       {"lower", MatrixKind::lower_triangular},
       {"upper", MatrixKind::upper_triangular}},
      command->kind);
  app->add_option("-o,--output", command->output, std::string(output_help))->type_name("PATH");
}

}  // namespace eckart::cli

// eckart eigh: eigenvalues and vectors of a symmetric matrix.
#include "eckart/linalg/eigh.h"

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

namespace eckart::cli {
namespace {

struct EighCommand {
  std::string a;
  std::optional<Index> k;
  Which which = Which::largest;
};

template <class T>
void print_pairs(const EighCommand& command, const ArrayInput& a, bool json) {
  const Eigh<T> found = eigh(load_matrix<T>(a), {.k = command.k, .which = command.which});
  if (json) {
    print_json({{"values", array_json(found.values)}, {"vectors", array_json(found.vectors)}});
  } else {
    print(shapes_text({{"a", a.shape}}));
    print(array_text("values", found.values));
    print(array_text("vectors", found.vectors));
  }
}

int run_eigh(const EighCommand& command, const CommonOptions& common) {
  const ArrayInput a = open_array(command.a, "eigh");
  if (a.is_double) {
    print_pairs<double>(command, a, common.json);
  } else {
    print_pairs<float>(command, a, common.json);
  }
  return 0;
}

}  // namespace

void add_eigh(CommandLine& line) {
  auto command = std::make_shared<EighCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "eigh",
       .summary = "Eigenvalues, ascending, and eigenvectors, in columns, of a symmetric matrix",
       .examples = {"eckart eigh \"[[2,1],[1,2]]\"", "eckart eigh covariance.npy --k 10 --json"}},
      [command, &line] { return run_eigh(*command, line.common); });
  app->add_option("a", command->a, "A symmetric matrix: " + std::string(array_help))
      ->required()
      ->type_name("A");
  add_number(*app,
             {.name = "--k", .effect = "How many values (default: all)", .value = "K", .least = 0},
             command->k);
  add_choice<Which>(*app,
                    {.name = "--which",
                     .effect = "Which K: largest (default) or smallest",
                     .value = "largest|smallest"},
                    {{"largest", Which::largest}, {"smallest", Which::smallest}}, command->which);
}

}  // namespace eckart::cli

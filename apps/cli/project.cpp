// eckart project: the part of a vector that lies along another, or in the space of columns.
#include "eckart/linalg/project.h"

#include <memory>
#include <string>

#include "array_input.h"
#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct ProjectCommand {
  std::string a;
  std::string onto;
  std::string output;
};

template <class T>
Json projection_json(const Projection<T>& found) {
  Json result = {{"projection", array_json(found.projection)},
                 {"residual", array_json(found.residual)},
                 {"coefficients", array_json(found.coefficients)}};
  if (found.coefficient_on_unit) {
    result["coefficient_on_unit"] = number_json(static_cast<double>(*found.coefficient_on_unit));
  }
  return result;
}

int run_project(const ProjectCommand& command, const CommonOptions& common) {
  ArrayFile output(command.output, "project");
  const ArrayInput a = open_array(command.a, "project");
  const ArrayInput onto = open_array(command.onto, "project");
  in_precision(a.is_double || onto.is_double, [&]<class T>(T) {
    const Projection<T> found =
        project(a.is_table ? load_vector<T>(a) : load_array<T>(a), load_array<T>(onto));
    save_array(output, found.projection);
    if (common.json) return print_json(projection_json(found));
    print(shapes_text({{"a", a.shape}, {"onto", onto.shape}}));
    print(array_text("projection", found.projection));
    print(array_text("residual", found.residual));
    print(array_text("coefficients", found.coefficients));
  });
  return 0;
}

}  // namespace

void add_project(CommandLine& line) {
  auto command = std::make_shared<ProjectCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "project",
       .summary = "Project a vector onto another, or onto the space of a matrix's columns",
       .examples = {"eckart project \"[3,4]\" \"[2,2]\"",
                    "eckart project hidden.npy directions.npy -o inside.npy"}},
      [command, &line] { return run_project(*command, line.common); });
  app->add_option("a", command->a, "A vector: " + std::string(array_help))
      ->required()
      ->type_name("A");
  app->add_option("onto", command->onto, "A vector, or a matrix whose columns span the space")
      ->required()
      ->type_name("ONTO");
  app->add_option("-o,--output", command->output, "Write the projection to this .npy file")
      ->type_name("PATH");
}

}  // namespace eckart::cli

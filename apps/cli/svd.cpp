// eckart svd: singular values and vectors.
#include "eckart/linalg/svd.h"

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

struct SvdCommand {
  std::string a;
  bool values = false;
  std::string output;
};

template <class T>
void print_values(const ArrayInput& a, ArrayFile& output, bool json) {
  const Tensor<T> s = svd_values(load_matrix<T>(a));
  save_array(output, s);
  if (json) {
    print_json({{"s", array_json(s)}});
  } else {
    print(shapes_text({{"a", a.shape}}));
    print(array_text("s", s));
  }
}

template <class T>
void print_factors(const ArrayInput& a, bool json) {
  const Svd<T> factors = svd(load_matrix<T>(a));
  if (json) {
    print_json({{"u", array_json(factors.u)},
                {"s", array_json(factors.s)},
                {"vt", array_json(factors.vt)}});
    return;
  }
  print(shapes_text({{"a", a.shape}}));
  print(array_text("u", factors.u));
  print(array_text("s", factors.s));
  print(array_text("vt", factors.vt));
}

int run_svd(const SvdCommand& command, const CommonOptions& common) {
  ArrayFile output(command.output, "svd");
  const ArrayInput a = open_array(command.a, "svd");
  in_precision(a.is_double, [&]<class T>(T) {
    command.values ? print_values<T>(a, output, common.json) : print_factors<T>(a, common.json);
  });
  return 0;
}

}  // namespace

void add_svd(CommandLine& line) {
  auto command = std::make_shared<SvdCommand>();
  CLI::App* const app =
      add_command(line,
                  {.name = "svd",
                   .summary = "Singular value decomposition: a = u diag(s) vt",
                   .examples = {"eckart svd \"[[2,1],[1,2]]\"",
                                "eckart svd model/:layers.0.mlp.up_proj.weight --values -o s.npy"}},
                  [command, &line] { return run_svd(*command, line.common); });
  app->add_option("a", command->a, "A matrix: " + std::string(array_help))
      ->required()
      ->type_name("A");
  CLI::Option* const values =
      app->add_flag("--values", command->values, "The singular values alone, which is faster");
  app->add_option("-o,--output", command->output,
                  "Write the singular values to this .npy file (with --values)")
      ->type_name("PATH")
      ->needs(values);
}

}  // namespace eckart::cli

// eckart matmul: the product of two arrays.
#include "eckart/linalg/matmul.h"

#include <memory>
#include <string>
#include <string_view>

#include "array_input.h"
#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct MatmulCommand {
  std::string a;
  std::string b;
  std::string output;
};

int run_matmul(const MatmulCommand& command, const CommonOptions& common) {
  ArrayFile output(command.output, "matmul");
  const ArrayInput a = open_array(command.a, "matmul");
  const ArrayInput b = open_array(command.b, "matmul");
  in_precision(a.is_double || b.is_double, [&]<class T>(T) {
    const Tensor<T> product = matmul(load_array<T>(a), load_array<T>(b));
    save_array(output, product);
    if (common.json) {
      print_json({{"values", array_json(product)}, {"shape", sizes_json(product.shape())}});
    } else {
      print(shapes_text({{"a", a.shape}, {"b", b.shape}}));
      print(array_text("a b", product));
    }
  });
  return 0;
}

}  // namespace

void add_matmul(CommandLine& line) {
  auto command = std::make_shared<MatmulCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "matmul",
       .summary = "Multiply two arrays: matrices, vectors, batches of matrices",
       .examples = {"eckart matmul \"[[1,2],[3,4]]\" \"[1,-1]\"",
                    "eckart matmul x.npy model.safetensors:lm_head.weight -o logits.npy"}},
      [command, &line] { return run_matmul(*command, line.common); });
  app->add_option("a", command->a, "Left: " + std::string(array_help))->required()->type_name("A");
  app->add_option("b", command->b, "Right: the same")->required()->type_name("B");
  app->add_option("-o,--output", command->output, std::string(output_help))->type_name("PATH");
}

}  // namespace eckart::cli

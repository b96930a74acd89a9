// eckart cosine: the cosine of two vectors, or of all pairs of rows of two matrices.
#include "eckart/core/errors.h"
#include "eckart/linalg/vectors.h"

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

struct CosineCommand {
  std::string a;
  std::string b;
  std::string zero = "error";
  std::string output;
};

ZeroVector policy_of(const std::string& name) {
  if (name == "zero") return ZeroVector::zero;
  return name == "nan" ? ZeroVector::nan : ZeroVector::error;
}

template <class T>
void print_cosine(const CosineCommand& command, const ArrayInput& a, const ArrayInput& b,
                  bool json) {
  const DirectionOptions options{.zero_vector = policy_of(command.zero)};
  const Tensor<T> left = load_array<T>(a);
  const Tensor<T> right = load_array<T>(b);
  const auto print_result = [&](const auto& result) {
    write_array(command.output, result);
    if (json) {
      print_json({{"cosine", array_json(result)}});
    } else {
      print(shapes_text({{"a", a.shape}, {"b", b.shape}}));
      print(array_text("cosine", result));
    }
  };
  if (a.shape.rank() == 2) {
    print_result(cosine_similarities(left, right, options));
  } else {
    print_result(Tensor<double>(Shape{}, cosine_similarity(left, right, options)));
  }
}

int run_cosine(const CosineCommand& command, const CommonOptions& common) {
  check_output(command.output, "cosine");
  const ArrayInput a = open_array(command.a, "cosine");
  const ArrayInput b = open_array(command.b, "cosine");
  const bool are_vectors = a.shape.rank() == 1 && b.shape.rank() == 1;
  const bool are_matrices = a.shape.rank() == 2 && b.shape.rank() == 2;
  if (!are_vectors && !are_matrices) {
    throw_shape_error("cosine: a is " + to_string(a.shape) + " and b is " + to_string(b.shape) +
                      ", but both must be vectors, or matrices with a vector in each row");
  }
  if (a.is_double || b.is_double) {
    print_cosine<double>(command, a, b, common.json);
  } else {
    print_cosine<float>(command, a, b, common.json);
  }
  return 0;
}

}  // namespace

void add_cosine(CommandLine& line) {
  auto command = std::make_shared<CosineCommand>();
  CLI::App* const app = add_command(
      line,
      {.name = "cosine",
       .summary = "Cosine similarity of two vectors, or of all pairs of rows of two matrices",
       .examples = {"eckart cosine \"[3,4]\" \"[4,3]\"",
                    "eckart cosine queries.npy items.npy --zero zero -o cosines.npy"}},
      [command, &line] { return run_cosine(*command, line.common); });
  app->add_option("a", command->a, "Left: " + std::string(array_help))->required()->type_name("A");
  app->add_option("b", command->b, "Right: the same")->required()->type_name("B");
  app->add_option("--zero", command->zero,
                  "What a zero vector, which has no direction, gives: error (default), zero or nan")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"error", "zero", "nan"}).description(""));
  app->add_option("-o,--output", command->output, std::string(output_help))->type_name("PATH");
}

}  // namespace eckart::cli

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
#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct CosineCommand {
  std::string a;
  std::string b;
  ZeroVector zero = ZeroVector::error;
  std::string output;
};

std::string fit_text(const std::string& how, const Shape& a, const Shape& b) {
  return how + " it fits: " + to_string(a) + " and " + to_string(b) + " gives " +
         std::to_string(a.size(0)) + "x" + std::to_string(b.size(0));
}

// Rows of a and b in one matrix each: a vector beside a matrix may be its only row.
std::string arrangement(const Shape& a, const Shape& b) {
  if (a.rank() == 1 && b.rank() == 2 && a.size(0) == b.size(1)) {
    return fit_text("with a as one row", Shape{1, a.size(0)}, b);
  }
  if (a.rank() == 2 && b.rank() == 1 && b.size(0) == a.size(1)) {
    return fit_text("with b as one row", a, Shape{1, b.size(0)});
  }
  return {};
}

void check_ranks(const Shape& a, const Shape& b) {
  if (a.rank() == b.rank() && (a.rank() == 1 || a.rank() == 2)) return;
  throw_shape_error("cosine: a is " + to_string(a) + " and b is " + to_string(b) +
                        ", but both must be vectors, or matrices with a vector in each row",
                    arrangement(a, b));
}

int run_cosine(const CosineCommand& command, const CommonOptions& common) {
  ArrayFile output(command.output, "cosine");
  const ArrayInput a = open_array(command.a, "cosine");
  const ArrayInput b = open_array(command.b, "cosine");
  check_ranks(a.shape, b.shape);
  const DirectionOptions options{.zero_vector = command.zero};
  const auto give = [&](const auto& cosines) {
    save_array(output, cosines);
    if (common.json) {
      print_json({{"cosine", array_json(cosines)}});
    } else {
      print(shapes_text({{"a", a.shape}, {"b", b.shape}}));
      print(array_text("cosine", cosines));
    }
  };
  in_precision(a.is_double || b.is_double, [&]<class T>(T) {
    const Tensor<T> left = load_array<T>(a);
    const Tensor<T> right = load_array<T>(b);
    if (left.rank() == 2) return give(cosine_similarities(left, right, options));
    give(Tensor<double>(Shape{}, cosine_similarity(left, right, options)));
  });
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
  add_choice<ZeroVector>(
      *app,
      {.name = "--zero",
       .effect = "What a zero vector, which has no direction, gives: error (default), zero or nan",
       .value = "error|zero|nan"},
      {{"error", ZeroVector::error}, {"zero", ZeroVector::zero}, {"nan", ZeroVector::nan}},
      command->zero);
  app->add_option("-o,--output", command->output, std::string(output_help))->type_name("PATH");
}

}  // namespace eckart::cli

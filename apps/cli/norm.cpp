// eckart norm: how large an array is.
#include "eckart/core/errors.h"
#include "eckart/linalg/norms.h"

#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include "array_input.h"
#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct NormCommand {
  std::string a;
  std::string ord;
  std::string axis;
  std::string output;
};

// `-1` is a place, `token` a name.
Axis parse_axis(const std::string& text) {
  Index position = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, position);
  return error == std::errc{} && stop == end ? Axis(position) : Axis(text);
}

// What a norm is called where its number is printed.
std::string label_of(const Shape& shape, const std::optional<Norm>& kind) {
  const Norm chosen = kind.value_or(shape.rank() == 1 ? Norm::two : Norm::frobenius);
  return "norm " + std::string(to_string(chosen));
}

template <class T>
void print_norm(const NormCommand& command, const ArrayInput& input,
                const std::optional<Norm>& kind, bool json) {
  const Tensor<T> a = load_array<T>(input);
  Tensor<double> result;
  if (command.axis.empty()) {
    result = Tensor<double>(Shape{}, norm(a, kind));
  } else {
    const Tensor<T> norms = vector_norms(a, parse_axis(command.axis), kind.value_or(Norm::two));
    result = Tensor<double>::uninitialized(norms.shape());
    for_each_element([](double& to, const T& from) { to = static_cast<double>(from); },
                     result.view(), norms.view());
  }
  write_array(command.output, result);
  if (json) {
    print_json({{"norm", array_json(result)}});
    return;
  }
  print(shapes_text({{"a", input.shape}}));
  const Shape vector{1};
  print(array_text(label_of(command.axis.empty() ? input.shape : vector, kind), result));
}

int run_norm(const NormCommand& command, const CommonOptions& common) {
  check_output(command.output, "norm");
  const std::optional<Norm> kind = command.ord.empty() ? std::nullopt : parse_norm(command.ord);
  const ArrayInput input = open_array(command.a, "norm");
  if (input.is_double) {
    print_norm<double>(command, input, kind, common.json);
  } else {
    print_norm<float>(command, input, kind, common.json);
  }
  return 0;
}

}  // namespace

void add_norm(CommandLine& line) {
  auto command = std::make_shared<NormCommand>();
  CLI::App* const app =
      add_command(line,
                  {.name = "norm",
                   .summary = "Measure an array: lengths of vectors, norms of matrices",
                   .examples = {"eckart norm \"[3,4]\"", "eckart norm w.npy --ord spectral",
                                "eckart norm embeddings.npy --axis 1 -o lengths.npy"}},
                  [command, &line] { return run_norm(*command, line.common); });
  app->add_option("a", command->a, std::string(array_help))->required()->type_name("A");
  app->add_option("--ord", command->ord,
                  "1, 2 or inf; of a matrix also fro, nuc, spectral (default: 2 of a vector, fro "
                  "of anything else)")
      ->type_name("ORD")
      ->check(CLI::IsMember({"1", "2", "inf", "fro", "nuc", "spectral"}).description(""));
  app->add_option("--axis", command->axis,
                  "One norm for each vector along this axis, by number or name")
      ->type_name("AXIS");
  app->add_option("-o,--output", command->output, std::string(output_help))->type_name("PATH");
}

}  // namespace eckart::cli

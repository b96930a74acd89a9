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
#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct NormCommand {
  std::string a;
  std::optional<Norm> kind;
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
Tensor<double> norms_of(const NormCommand& command, const Tensor<T>& a) {
  if (command.axis.empty()) return Tensor<double>(Shape{}, norm(a, command.kind));
  const Tensor<T> norms =
      vector_norms(a, parse_axis(command.axis), command.kind.value_or(Norm::two));
  Tensor<double> result = Tensor<double>::uninitialized(norms.shape());
  for_each_element([](double& to, const T& from) { to = static_cast<double>(from); }, result.view(),
                   norms.view());
  return result;
}

int run_norm(const NormCommand& command, const CommonOptions& common) {
  ArrayFile output(command.output, "norm");
  const ArrayInput input = open_array(command.a, "norm");
  const Tensor<double> result = input.is_double ? norms_of(command, load_array<double>(input))
                                                : norms_of(command, load_array<float>(input));
  save_array(output, result);
  if (common.json) {
    print_json({{"norm", array_json(result)}});
  } else {
    print(shapes_text({{"a", input.shape}}));
    const Shape measured = command.axis.empty() ? input.shape : Shape{1};
    print(array_text(label_of(measured, command.kind), result));
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
  add_choice(*app,
             {.name = "--ord",
              .effect = "1, 2 or inf; of a matrix also fro, nuc, spectral (default: 2 of a vector, "
                        "fro of anything else)",
              .value = "1|2|inf|fro|nuc|spectral"},
             [command](const std::string& word) { command->kind = parse_norm(word); });
  app->add_option("--axis", command->axis,
                  "One norm for each vector along this axis, by number or name")
      ->type_name("AXIS");
  app->add_option("-o,--output", command->output, std::string(output_help))->type_name("PATH");
}

}  // namespace eckart::cli

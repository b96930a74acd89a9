// MLX's names: `<module>.lora_a` of d_in x r and `<module>.lora_b` of r x d_out, and one scale.
#include "eckart/core/errors.h"
#include "eckart/lora/adapter_parts.h"
#include "eckart/model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace eckart::detail {
namespace {

constexpr std::string_view config_name = "adapter_config.json";

// lora_a of a table has the form of a matrix's: only the name tells them apart.
bool is_table_name(std::string_view name) {
  constexpr std::array<std::string_view, 8> tables = {
      "embed_tokens",   "wte",       "word_embeddings", "embed_in", "embeddings",
      "tok_embeddings", "embedding", "shared"};
  const std::size_t dot = name.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
  return std::find(tables.begin(), tables.end(), last) != tables.end();
}

double read_scale(const Config& config) {
  const std::string type = config.text({"fine_tune_type"}).value_or("lora");
  if (type != "lora" && type != "dora") {
    throw_format_error(config.source(), std::nullopt,
                       config.source() + ": fine_tune_type is \"" + printable(type, 60) +
                           "\", but an adapter's is \"lora\" or \"dora\"");
  }
  const std::optional<Config> parameters = config.section("lora_parameters");
  const std::optional<double> scale =
      parameters ? parameters->number({"scale"}) : std::optional<double>();
  if (!scale || !std::isfinite(*scale)) {
    throw_format_error(config.source(), std::nullopt,
                       config.source() +
                           ": lora_parameters has no scale, but MLX multiplies by it "
                           "and saves it nowhere else");
  }
  return *scale;
}

// The sizes of factors that stand the other way round than PEFT's.
void set_mlx_sizes(const SafetensorsFile& file, AdapterModule& module) {
  const Shape& a = module.a->shape;
  const Shape& b = module.b->shape;
  const bool is_experts = a.rank() == 3;
  const std::string shapes = sizes_to_string(a) + " and lora_b is " + sizes_to_string(b);
  if ((a.rank() != 2 && !is_experts) || b.rank() != a.rank() || a.count() == 0 || b.count() == 0) {
    throw_tensor_error(file, *module.a,
                       "it is " + shapes + ", but factors are matrices, or one matrix an expert");
  }
  module.rank = a.size(1);
  module.d_in = is_experts ? a.size(2) : a.size(0);
  module.d_out = b.size(1);
  module.n_experts = is_experts ? a.size(0) : 1;
  const bool fits = is_experts ? b.size(2) == module.rank && b.size(0) == module.n_experts
                               : b.size(0) == module.rank;
  if (!fits) {
    throw_tensor_error(file, *module.a,
                       "it is " + shapes + ", but they must agree in the rank" +
                           (is_experts ? " and the number of experts" : ""));
  }
  if (is_experts) module.kind = AdapterKind::experts;
  if (!is_experts && is_table_name(module.name)) {
    module.kind = AdapterKind::embedding;
    std::swap(module.d_out, module.d_in);
  }
}

void check_magnitude(const SafetensorsFile& file, const AdapterModule& module) {
  if (module.magnitude == nullptr) return;
  if (module.kind == AdapterKind::linear && module.magnitude->shape.count() == module.d_out) return;
  throw_tensor_error(file, *module.magnitude,
                     "it is " + sizes_to_string(module.magnitude->shape) +
                         ", but DoRA's magnitude has one element for each output of a matrix");
}

}  // namespace

AdapterParts read_mlx(const SafetensorsFile& file, const std::filesystem::path& config_path) {
  std::error_code ignored;
  if (!std::filesystem::exists(config_path, ignored)) {
    throw_file_error(config_path.string(),
                     printable_path(config_path.string()) +
                         ": the file is missing, but an adapter of MLX has its scale there",
                     "put " + std::string(config_name) + " beside " + printable_path(file.path()));
  }
  const double scale = read_scale(load_config(config_path));
  std::map<std::string, ModuleTensors> modules;
  for (const StoredTensor& tensor : file.tensors()) {
    const std::string_view suffix = suffix_of(tensor.name, {".lora_a", ".lora_b", ".m"});
    if (suffix.empty()) {
      throw_tensor_error(file, tensor,
                         "it is neither lora_a, lora_b nor m, but an adapter of MLX has no other "
                         "tensors");
    }
    modules[tensor.name.substr(0, tensor.name.size() - suffix.size())][suffix] = &tensor;
  }
  AdapterParts parts;
  for (const auto& [name, tensors] : modules) {
    AdapterModule module;
    module.name = name;
    module.a = find_tensor(tensors, ".lora_a");
    module.b = find_tensor(tensors, ".lora_b");
    module.magnitude = find_tensor(tensors, ".m");
    if (module.a == nullptr || module.b == nullptr) {
      throw_tensor_error(file, *tensors.begin()->second,
                         std::string("its module has no ") +
                             (module.a == nullptr ? "lora_a" : "lora_b") +
                             ", but a module has both factors");
    }
    set_mlx_sizes(file, module);
    check_magnitude(file, module);
    if (module.magnitude != nullptr) parts.config.use_dora = true;
    module.scale = scale;
    module.alpha = scale * static_cast<double>(module.rank);
    parts.modules.push_back(std::move(module));
  }
  describe_modules(parts.config, ranks_of(parts.modules));
  return parts;
}

}  // namespace eckart::detail

#include "eckart/lora/adapter.h"

#include "eckart/core/errors.h"
#include "eckart/io/open_shards.h"
#include "eckart/io/scan.h"
#include "eckart/io/widen.h"
#include "eckart/lora/adapter_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;

constexpr const char* config_name = "adapter_config.json";
constexpr const char* peft_name = "adapter_model.safetensors";
constexpr const char* mlx_name = "adapters.safetensors";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The file with an adapter's tensors.
fs::path weights_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (path.filename() != config_name) return path;
    return weights_of(path.parent_path().empty() ? fs::path(".") : path.parent_path());
  }
  const bool has_peft = is_there(path / peft_name);
  const bool has_mlx = is_there(path / mlx_name);
  const std::string who = printable_path(path.string());
  if (has_peft && has_mlx) {
    throw_file_error(
        path.string(),
        who + ": holds both " + peft_name + " and " + mlx_name + ", but an adapter is one of them",
        "give the file that is meant");
  }
  if (has_peft) return path / peft_name;
  if (has_mlx) return path / mlx_name;
  if (is_there(path / "adapter_model.bin")) {
    throw_file_error(path.string(),
                     who +
                         ": holds adapter_model.bin, a pickle, but Eckart reads safetensors: a "
                         "pickle is a program",
                     "load the adapter with PEFT and save it again: save_pretrained writes "
                     "safetensors");
  }
  throw_file_error(path.string(),
                   who + ": holds neither " + peft_name + " (PEFT) nor " + mlx_name +
                       " (MLX), but an adapter's folder has one of them",
                   "give the .safetensors file itself when it has another name");
}

AdapterNaming naming_of(const SafetensorsFile& file) {
  for (const StoredTensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (name.find(".lora_A.") != std::string_view::npos ||
        name.find(".lora_embedding_") != std::string_view::npos) {
      return AdapterNaming::peft;
    }
    if (name.ends_with(".lora_a") || name.ends_with(".lora_b")) return AdapterNaming::mlx;
    const std::vector<std::string_view> kohya = {
        ".lora_down.weight", ".lora_up.weight", ".hada_w1_a", ".lokr_w1",   ".lokr_w1_a",
        ".oft_blocks",       ".diff",           ".diff_b",    ".set_weight"};
    if (!detail::suffix_of(name, kohya).empty()) return AdapterNaming::kohya;
  }
  // It may hold nothing but tensors that replace the base's.
  if (fs::path(file.path()).filename() == peft_name) return AdapterNaming::peft;
  throw_format_error(file.path(), std::nullopt,
                     printable_path(file.path()) +
                         ": holds no factors of an adapter: no lora_A (PEFT), lora_down (kohya) or "
                         "lora_a (MLX)",
                     "for a model's own checkpoint there is `eckart inspect`");
}

// Initialisations that also changed the base: the factors go with that one.
void warn_of_changed_base(const AdapterConfig& config, const std::string& path,
                          Findings& warnings) {
  for (const std::string_view kind : {"pissa", "olora", "corda", "loftq", "lora_ga"}) {
    if (config.init_lora_weights.find(kind) == std::string::npos) continue;
    warnings.add({.severity = Severity::warning,
                  .file = path,
                  .rule = "changed_base",
                  .message = "init_lora_weights is " + printable(config.init_lora_weights, 60) +
                             ": the factors go with the base that was changed at the start, not "
                             "with the original one"});
  }
}

// A matrix of a tensor's elements as float, rows x (all other axes).
Tensor<float> load_matrix(const SafetensorsFile& file, const StoredTensor& stored) {
  const Index rows = stored.shape.size(0);
  Tensor<float> matrix =
      Tensor<float>::uninitialized(Shape{rows, rows == 0 ? 0 : stored.shape.count() / rows});
  widen(stored.dtype, file.bytes(stored),
        std::span<float>(matrix.data(), static_cast<std::size_t>(matrix.count())));
  return matrix;
}

Tensor<float> transposed(const Tensor<float>& matrix) {
  return Tensor<float>(matrix.view().transpose());
}

// Elements [first, first + n) of a tensor as rows x columns.
Tensor<float> load_part(const SafetensorsFile& file, const StoredTensor& stored, Index first,
                        const Shape& shape) {
  const auto element = static_cast<std::size_t>(bits(stored.dtype)) / 8;
  const auto n = static_cast<std::size_t>(shape.count());
  Tensor<float> part = Tensor<float>::uninitialized(shape);
  widen(stored.dtype,
        file.bytes(stored).subspan(static_cast<std::size_t>(first) * element, n * element),
        std::span<float>(part.data(), n));
  return part;
}

// The experts are the slowest in A's rows and the fastest in B's columns.
AdapterFactors peft_experts(const Adapter& adapter, const AdapterModule& module, Index expert) {
  const SafetensorsFile& file = adapter.file();
  const Index rank = module.rank;
  Tensor<float> a =
      load_part(file, *module.a, expert * rank * module.d_in, Shape{rank, module.d_in});
  // B's elements of one expert are gathered before they are widened.
  const std::span<const std::byte> all = file.bytes(*module.b);
  const auto element = static_cast<std::size_t>(bits(module.b->dtype)) / 8;
  Tensor<float> b = Tensor<float>::uninitialized(Shape{module.d_out, rank});
  std::vector<std::byte> gathered(static_cast<std::size_t>(b.count()) * element);
  for (Index i = 0; i < b.count(); ++i) {
    const auto from = static_cast<std::size_t>(i * module.n_experts + expert) * element;
    std::copy_n(all.data() + from, element,
                gathered.data() + static_cast<std::size_t>(i) * element);
  }
  widen(module.b->dtype, gathered, std::span<float>(b.data(), static_cast<std::size_t>(b.count())));
  return {std::move(b), std::move(a), module.scale};
}

std::string where(const StoredTensor& tensor, std::uint64_t element) {
  std::string text;
  for (Index axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
    const auto size = static_cast<std::uint64_t>(tensor.shape.size(axis));
    text = std::to_string(element % size) + (text.empty() ? "" : ", ") + text;
    element /= size;
  }
  return "(" + text + ")";
}

// Numbers of F64 that no float holds, but floats are what is computed with.
void check_range(const Adapter& adapter, const StoredTensor& tensor) {
  const std::span<const std::byte> bytes = adapter.file().bytes(tensor);
  std::vector<double> numbers(bytes.size() / sizeof(double));
  widen(tensor.dtype, bytes, std::span<double>(numbers));
  const auto found = std::find_if(numbers.begin(), numbers.end(),
                                  [](double x) { return !std::isfinite(static_cast<float>(x)); });
  if (found == numbers.end()) return;
  throw_argument_error(
      "lora: tensor \"" + printable(tensor.name) + "\" of " +
          printable_path(adapter.file().path()) + " has " + fmt::format("{:g}", *found) + " at " +
          where(tensor, static_cast<std::uint64_t>(found - numbers.begin())) +
          ", but an adapter's numbers must be within the range of F32, up to 3.4e38",
      "Eckart computes with F32; such a number comes from a training that went astray");
}

}  // namespace

std::string_view to_string(AdapterNaming naming) {
  switch (naming) {
    case AdapterNaming::peft:
      return "PEFT";
    case AdapterNaming::kohya:
      return "kohya";
    case AdapterNaming::mlx:
      return "MLX";
  }
  return {};
}

std::string_view to_string(AdapterKind kind) {
  switch (kind) {
    case AdapterKind::linear:
      return "linear";
    case AdapterKind::embedding:
      return "embedding";
    case AdapterKind::convolution:
      return "convolution";
    case AdapterKind::experts:
      return "experts";
  }
  return {};
}

Adapter open_adapter(const std::filesystem::path& path) {
  const fs::path weights = weights_of(path);
  Adapter adapter(path, open_safetensors(weights));
  const SafetensorsFile& file = adapter.file_;
  const fs::path config_path = weights.parent_path() / config_name;
  adapter.naming_ = naming_of(file);
  detail::AdapterParts parts;
  if (adapter.naming_ == AdapterNaming::kohya) {
    parts = detail::read_kohya(file);
  } else if (adapter.naming_ == AdapterNaming::mlx) {
    parts = detail::read_mlx(file, config_path);
  } else if (is_there(config_path) || weights.filename() == peft_name) {
    parts = detail::read_peft(file, read_adapter_config(config_path));
  } else {
    parts = detail::read_peft(file, std::nullopt);
  }
  adapter.config_ = std::move(parts.config);
  adapter.modules_ = std::move(parts.modules);
  adapter.saved_ = std::move(parts.saved);
  adapter.warnings_ = std::move(parts.warnings);
  warn_of_changed_base(adapter.config_, file.path(), adapter.warnings_);
  adapter.sort_names();
  return adapter;
}

void Adapter::sort_names() {
  const auto in_order = [](const auto& a, const auto& b) {
    return compare_naturally(a.name, b.name) < 0;
  };
  std::stable_sort(modules_.begin(), modules_.end(), in_order);
  std::stable_sort(saved_.begin(), saved_.end(), in_order);
}

Dtype Adapter::dtype() const {
  std::array<Index, n_dtypes> counts{};
  for (const AdapterModule& module : modules_) {
    for (const StoredTensor* factor : {module.a, module.b}) {
      counts[static_cast<std::size_t>(factor->dtype)] += factor->shape.count();
    }
  }
  const auto* const most = std::max_element(counts.begin(), counts.end());
  return *most == 0 ? Dtype::f32 : static_cast<Dtype>(most - counts.begin());
}

AdapterFactors load_factors(const Adapter& adapter, const AdapterModule& module, Index expert) {
  if (expert < 0 || expert >= module.n_experts) {
    throw_argument_error("lora: expert " + std::to_string(expert) + " of " +
                         printable(module.name) + " is asked for, but it has " +
                         std::to_string(module.n_experts));
  }
  const SafetensorsFile& file = adapter.file();
  const bool is_mlx = adapter.naming() == AdapterNaming::mlx;
  if (module.kind == AdapterKind::experts && !is_mlx) return peft_experts(adapter, module, expert);
  if (module.kind == AdapterKind::experts) {
    const Shape of_b{module.d_out, module.rank}, of_a{module.rank, module.d_in};
    return {load_part(file, *module.b, expert * of_b.count(), of_b),
            load_part(file, *module.a, expert * of_a.count(), of_a), module.scale};
  }
  Tensor<float> a = load_matrix(file, *module.a);
  Tensor<float> b = load_matrix(file, *module.b);
  // MLX's factors are the transposed ones, but of a table, whose lora_a has a row for each entry.
  // PEFT's are the transposed ones of a table alone.
  const bool is_table = module.kind == AdapterKind::embedding;
  if (is_mlx && is_table) return {std::move(a), std::move(b), module.scale};
  if (is_mlx) return {transposed(b), transposed(a), module.scale};
  if (is_table) return {transposed(a), transposed(b), module.scale};
  return {std::move(b), std::move(a), module.scale};
}

void check_finite(const Adapter& adapter) {
  std::vector<const StoredTensor*> tensors;
  for (const AdapterModule& module : adapter.modules()) {
    for (const StoredTensor* tensor : {module.a, module.b, module.bias, module.magnitude}) {
      if (tensor != nullptr) tensors.push_back(tensor);
    }
  }
  std::vector<const StoredTensor*> saved;
  for (const SavedTensor& one : adapter.saved()) saved.push_back(one.stored);
  tensors.insert(tensors.end(), saved.begin(), saved.end());
  for (const StoredTensor* tensor : tensors) {
    const ValueScan scan =
        scan_file_values(adapter.file().file(), tensor->dtype, tensor->begin, tensor->end);
    if (!scan.first_nan && !scan.first_infinite) {
      const bool is_computed_with = std::find(saved.begin(), saved.end(), tensor) == saved.end();
      if (tensor->dtype == Dtype::f64 && is_computed_with) check_range(adapter, *tensor);
      continue;
    }
    const bool is_nan = scan.first_nan.has_value();
    throw_argument_error(
        "lora: tensor \"" + printable(tensor->name) + "\" of " +
            printable_path(adapter.file().path()) + " has " + (is_nan ? "a NaN" : "an infinity") +
            " at " + where(*tensor, is_nan ? *scan.first_nan : *scan.first_infinite) +
            ", but an adapter's numbers must be finite",
        "it comes from the training, or from a dtype that was too narrow: save the "
        "adapter again from a sound checkpoint");
  }
}

}  // namespace eckart

#include "eckart/lora/convert.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/findings.h"
#include "eckart/io/narrow.h"
#include "eckart/io/scan.h"
#include "eckart/io/widen.h"
#include "eckart/lora/adapter_fingerprint.h"
#include "eckart/lora/adapter_parts.h"
#include "eckart/lora/adapter_writer.h"
#include "eckart/lora/convert_names.h"
#include "eckart/lora/output_folder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

namespace fs = std::filesystem;

bool is_written(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

Dtype dtype_for(const Adapter& adapter, const ConvertOptions& options) {
  if (options.dtype && !is_written(*options.dtype)) {
    throw_argument_error("lora convert: the dtype is " + std::string(to_string(*options.dtype)) +
                         ", but factors are written as F32, F16 or BF16");
  }
  if (options.dtype) return *options.dtype;
  const Dtype first = adapter.dtype();
  for (const AdapterModule& module : adapter.modules()) {
    if (module.a->dtype != first || module.b->dtype != first) return Dtype::f32;
  }
  return is_written(first) ? first : Dtype::f32;
}

// alpha where the scale is alpha / rank.
double plain_alpha(const Adapter& adapter, const AdapterModule& module) {
  if (!adapter.config().use_rslora) return module.alpha;
  return module.scale * static_cast<double>(module.rank);
}

Tensor<float> load_vector(const Adapter& adapter, const StoredTensor& stored) {
  Tensor<float> values = Tensor<float>::uninitialized(Shape{stored.shape.count()});
  widen(stored.dtype, adapter.file().bytes(stored),
        std::span<float>(values.data(), static_cast<std::size_t>(values.count())));
  return values;
}

std::vector<std::byte> narrowed(const Tensor<float>& values, Dtype dtype, const std::string& name) {
  std::vector<std::byte> bytes(stored_bytes(dtype, values.count()).value_or(0));
  narrow(dtype, {values.data(), static_cast<std::size_t>(values.count())}, bytes);
  if (scan_values(dtype, bytes).n_infinite == 0) return bytes;
  throw_argument_error("lora convert: a number of \"" + printable(name) + "\" is too large for " +
                           std::string(to_string(dtype)),
                       "BF16 and F32 hold larger ones");
}

// A module whole, with its scale left to alpha.
NewModule load_module(const Adapter& adapter, const AdapterModule& module) {
  NewModule result;
  result.name = module.name;
  result.kind = module.kind;
  result.alpha = plain_alpha(adapter, module);
  for (Index expert = 0; expert < module.n_experts; ++expert) {
    AdapterFactors factors = load_factors(adapter, module, expert);
    result.b.push_back(std::move(factors.b));
    result.a.push_back(std::move(factors.a));
  }
  if (module.bias != nullptr) result.bias = load_vector(adapter, *module.bias);
  if (module.magnitude != nullptr) result.magnitude = load_vector(adapter, *module.magnitude);
  if (module.kind == AdapterKind::convolution) {
    const std::vector<Index>& sizes = module.a->shape.sizes();
    result.kernel.assign(sizes.begin() + 2, sizes.end());
  }
  return result;
}

void check_fits(const NewModule& module, Dtype dtype) {
  for (const auto* factors : {&module.b, &module.a}) {
    for (const Tensor<float>& factor : *factors) {
      static_cast<void>(narrowed(factor, dtype, module.name));
    }
  }
}

// The module as messages name it.
[[noreturn]] void refuse(const std::string& name, const std::string& what,
                         const std::string& hint) {
  throw_argument_error("lora convert: " + printable(name) + " " + what, hint);
}

void refuse_for_kohya(const Adapter& adapter) {
  for (const AdapterModule& module : adapter.modules()) {
    if (module.magnitude != nullptr) {
      refuse(module.name,
             "has DoRA's magnitude for each output, but kohya's dora_scale has one for each input",
             "`eckart lora merge` folds it into a base");
    }
    if (module.bias != nullptr) {
      refuse(module.name, "has a bias (lora_bias), but kohya's files have no place for it", "");
    }
    if (module.kind == AdapterKind::embedding || module.kind == AdapterKind::experts) {
      refuse(module.name,
             "is of kind " + std::string(to_string(module.kind)) +
                 ", but kohya's files hold matrices and convolutions",
             "");
    }
  }
}

void refuse_for_mlx(const Adapter& adapter) {
  const auto has_magnitude = [](const AdapterModule& m) { return m.magnitude != nullptr; };
  const auto& modules = adapter.modules();
  const bool any = std::any_of(modules.begin(), modules.end(), has_magnitude);
  for (const AdapterModule& module : modules) {
    if (module.bias != nullptr) {
      refuse(module.name, "has a bias (lora_bias), but MLX's adapters have no place for it", "");
    }
    if (module.kind == AdapterKind::convolution) {
      refuse(module.name, "is a convolution, but MLX's adapters hold matrices", "");
    }
    if (any && !has_magnitude(module)) {
      refuse(module.name, "has no magnitude, but MLX has DoRA in all modules or in none", "");
    }
  }
}

void refuse_saved(const Adapter& adapter) {
  if (adapter.saved().empty()) return;
  refuse(adapter.saved().front().name,
         "replaces the base's tensor (modules_to_save), but only PEFT's adapters hold such",
         "`eckart lora merge` puts it into a base");
}

void refuse_existing(const fs::path& target) {
  std::error_code ignored;
  if (fs::symlink_status(target, ignored).type() == fs::file_type::not_found) return;
  throw_file_error(target.string(),
                   printable_path(target.string()) +
                       ": is there already, but a result is never "
                       "written over another",
                   "choose another name, or remove it");
}

Fingerprint fingerprint_of(const Adapter& adapter, const ConvertOptions& options, Dtype dtype) {
  Fingerprint fingerprint;
  fingerprint.add("lora convert");
  detail::add_adapter(fingerprint, adapter);
  fingerprint.add(std::string(to_string(options.to)) + " " + std::string(to_string(dtype)));
  return fingerprint;
}

// Steps of the progress that a caller sees.
class Steps {
 public:
  Steps(const ConvertOptions& options, std::size_t all)
      : on_progress_(options.on_progress), all_(static_cast<Index>(all)) {}
  void advance() {
    ++done_;
    if (on_progress_) on_progress_(done_, all_);
  }

 private:
  std::function<void(Index, Index)> on_progress_;
  Index all_;
  Index done_ = 0;
};

void write_peft_parts(const Adapter& adapter, AdapterWriter& writer, const ConvertOptions& options,
                      ConvertReport& report) {
  Steps steps(options, adapter.modules().size());
  for (const AdapterModule& stored : adapter.modules()) {
    if (writer.has(stored.name)) {
      ++report.n_resumed;
    } else {
      const NewModule module = load_module(adapter, stored);
      check_fits(module, report.dtype);
      writer.add(module);
    }
    steps.advance();
  }
  for (const SavedTensor& saved : adapter.saved()) {
    if (writer.has_saved(saved.name)) continue;
    writer.add_saved(saved.name, saved.stored->dtype, saved.stored->shape,
                     adapter.file().bytes(*saved.stored));
  }
}

void write_peft(const Adapter& adapter, const fs::path& target, const ConvertOptions& options,
                ConvertReport& report) {
  OutputFolder folder(target, fingerprint_of(adapter, options, report.dtype));
  folder.fill([&] {
    AdapterWriter writer(folder, report.dtype);
    write_peft_parts(adapter, writer, options, report);
    AdapterConfig config;
    if (adapter.naming() == AdapterNaming::peft) config = adapter.config();
    writer.finish(std::move(config));
    report.bytes = fs::file_size(folder.result_path("adapter_model.safetensors"));
  });
  folder.commit();
}

// kohya's alpha: F64 only where a float would change it.
struct AlphaBytes {
  Dtype dtype = Dtype::f32;
  std::vector<std::byte> bytes;
};
AlphaBytes alpha_bytes(double alpha) {
  const auto rounded = static_cast<float>(alpha);
  const bool is_exact = static_cast<double>(rounded) == alpha;
  const auto bytes =
      is_exact ? std::as_bytes(std::span(&rounded, 1)) : std::as_bytes(std::span(&alpha, 1));
  return {is_exact ? Dtype::f32 : Dtype::f64, {bytes.begin(), bytes.end()}};
}

// kohya takes an alpha of 0 for the rank: a module without effect has factors of zeros instead.
double kohya_alpha(const Adapter& adapter, const AdapterModule& module) {
  return module.scale == 0 ? static_cast<double>(module.rank) : plain_alpha(adapter, module);
}

void write_kohya(const Adapter& adapter, const fs::path& target, const ConvertOptions& options,
                 ConvertReport& report) {
  refuse_existing(target);
  const Fingerprint fingerprint = fingerprint_of(adapter, options, report.dtype);
  std::vector<TensorPlan> plans;
  std::map<std::string, std::string> names;  // by the module's, which may be kohya's own already
  std::map<std::string, std::string> taken;
  for (const AdapterModule& module : adapter.modules()) {
    const bool is_kohya =
        adapter.naming() == AdapterNaming::kohya && module.name.find('.') == std::string::npos;
    const std::string name =
        is_kohya ? module.name : detail::kohya_name(module.name, options.prefix);
    const auto [other, is_new] = taken.emplace(name, module.name);
    if (!is_new) {
      refuse(module.name,
             "and " + printable(other->second) + " are both " + printable(name) +
                 " in kohya's names, but names are of one module",
             "");
    }
    names[module.name] = name;
    plans.push_back(
        {name + ".lora_down.weight", report.dtype, detail::down_shape(adapter, module)});
    plans.push_back({name + ".lora_up.weight", report.dtype, detail::up_shape(adapter, module)});
    plans.push_back({name + ".alpha", alpha_bytes(kohya_alpha(adapter, module)).dtype, Shape()});
  }
  Index largest = 0;
  for (const AdapterModule& module : adapter.modules()) largest = std::max(largest, module.rank);
  SafetensorsWriter writer(target, std::move(plans),
                           {{"ss_network_module", "networks.lora"},
                            {"ss_network_dim", std::to_string(largest)},
                            {"ss_network_alpha", "Dynamic"}});
  Steps steps(options, adapter.modules().size());
  for (const AdapterModule& module : adapter.modules()) {
    const std::string& name = names.at(module.name);
    AdapterFactors factors = load_factors(adapter, module);
    if (module.scale == 0) std::fill_n(factors.b.data(), factors.b.count(), 0.0F);
    writer.write(name + ".lora_down.weight", narrowed(factors.a, report.dtype, module.name));
    writer.write(name + ".lora_up.weight", narrowed(factors.b, report.dtype, module.name));
    writer.write(name + ".alpha", alpha_bytes(kohya_alpha(adapter, module)).bytes);
    steps.advance();
  }
  writer.finish();
  fingerprint.check_unchanged();
  writer.commit_new();
  report.bytes = fs::file_size(target);
}

// The scale of most modules: MLX has one.
double commonest_scale(const Adapter& adapter) {
  std::map<double, Index> counts;
  for (const AdapterModule& module : adapter.modules()) ++counts[module.scale];
  double commonest = 1;
  Index most = 0;
  for (const auto& [scale, count] : counts) {
    if (count > most && scale != 0) {
      commonest = scale;
      most = count;
    }
  }
  return commonest;
}

void write_mlx_module(const Adapter& adapter, const AdapterModule& module,
                      const detail::MlxPlan& plan, SafetensorsWriter& writer) {
  const double factor = module.scale / plan.scale;
  std::uint64_t a_at = 0;
  std::uint64_t b_at = 0;
  for (Index expert = 0; expert < module.n_experts; ++expert) {
    AdapterFactors factors = load_factors(adapter, module, expert);
    if (factor != 1) {
      float* const b = factors.b.data();
      std::transform(b, b + factors.b.count(), b,
                     [&](float x) { return static_cast<float>(static_cast<double>(x) * factor); });
    }
    const detail::MlxFactors arranged = detail::mlx_factors(factors, module.kind, plan.rank);
    const auto a = narrowed(arranged.a, plan.dtype, module.name);
    const auto b = narrowed(arranged.b, plan.dtype, module.name);
    writer.write(module.name + ".lora_a", a, a_at);
    writer.write(module.name + ".lora_b", b, b_at);
    a_at += a.size();
    b_at += b.size();
  }
  if (module.magnitude != nullptr) {
    const Tensor<float> magnitude = load_vector(adapter, *module.magnitude);
    writer.write(module.name + ".m", narrowed(magnitude, Dtype::f32, module.name));
  }
}

void write_mlx(const Adapter& adapter, const fs::path& target, const ConvertOptions& options,
               ConvertReport& report) {
  OutputFolder folder(target, fingerprint_of(adapter, options, report.dtype));
  detail::MlxPlan plan{.dtype = report.dtype, .scale = commonest_scale(adapter)};
  for (const AdapterModule& module : adapter.modules()) {
    plan.rank = std::max(plan.rank, module.rank);
  }
  for (const AdapterModule& module : adapter.modules()) {
    report.n_padded += module.rank < plan.rank ? 1 : 0;
    report.n_scaled += module.scale != plan.scale ? 1 : 0;
  }
  folder.fill([&] {
    const fs::path file = folder.result_path("adapters.safetensors");
    SafetensorsWriter writer(file, detail::mlx_tensors(adapter, plan), {{"format", "mlx"}});
    Steps steps(options, adapter.modules().size());
    for (const AdapterModule& module : adapter.modules()) {
      write_mlx_module(adapter, module, plan, writer);
      steps.advance();
    }
    writer.commit();
    save_text(folder.result_path("adapter_config.json"), detail::mlx_config(adapter, plan));
    report.bytes = fs::file_size(file);
  });
  folder.commit();
}

}  // namespace

ConvertReport convert_adapter(const Adapter& adapter, const fs::path& target,
                              const ConvertOptions& options) {
  check_finite(adapter);
  ConvertReport report{.n_modules = static_cast<Index>(adapter.modules().size()),
                       .n_saved = static_cast<Index>(adapter.saved().size()),
                       .dtype = dtype_for(adapter, options)};
  if (options.to != AdapterNaming::peft) refuse_saved(adapter);
  switch (options.to) {
    case AdapterNaming::peft:
      write_peft(adapter, target, options, report);
      break;
    case AdapterNaming::kohya:
      refuse_for_kohya(adapter);
      write_kohya(adapter, target, options, report);
      break;
    case AdapterNaming::mlx:
      refuse_for_mlx(adapter);
      write_mlx(adapter, target, options, report);
      break;
  }
  return report;
}

}  // namespace eckart

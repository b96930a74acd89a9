#include "eckart/lora/pissa.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/hash.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/scan.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/lora/adapter_writer.h"
#include "eckart/lora/combine.h"
#include "eckart/lora/output_folder.h"
#include "eckart/lora/pissa_targets.h"
#include "eckart/model/weights.h"

#include <cstddef>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using detail::PissaTarget;

// Parts of the outer folder, whose result is two folders, each made by a run of its own that can be
// gone on with. The first says so: what lies in the result then stays when a run is cut off.
constexpr const char* folders_part = "folders";
constexpr const char* adapter_part = "adapter";
constexpr const char* adapter_name = "adapter";
constexpr const char* base_name = "base";

void check_values(const PissaBase& base, const std::vector<PissaTarget>& targets) {
  for (const PissaTarget& target : targets) {
    const StoredTensor& stored = *base.checkpoint->tensors()[target.tensor->values].stored;
    const ValueScan scan = scan_values(stored.dtype, base.checkpoint->bytes(stored.name));
    if (scan.n_nan + scan.n_infinite == 0) continue;
    const auto at = static_cast<Index>(scan.n_nan > 0 ? *scan.first_nan : *scan.first_infinite);
    const Index columns = target.tensor->shape.size(1);
    throw_argument_error(fmt::format(
        "pissa: {} has {} at ({}, {}), but every weight must be finite", printable(stored.name),
        scan.n_nan > 0 ? "a NaN" : "an infinity", at / columns, at % columns));
  }
}

Dtype factor_dtype(const std::vector<PissaTarget>& targets, const PissaOptions& options) {
  if (options.dtype) return *options.dtype;
  const Dtype dtype = targets.front().tensor->dtype;
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) return dtype;
  return bits(dtype) < 16 ? Dtype::bf16 : Dtype::f32;
}

Fingerprint fingerprint_of(const PissaBase& base, const std::vector<PissaTarget>& targets,
                           const PissaOptions& options) {
  Fingerprint print;
  print.add(fmt::format("pissa {} {} {}", options.rank, options.seed, options.exact));
  print.add(to_string(factor_dtype(targets, options)));
  for (const PissaTarget& target : targets) print.add(target.module);
  for (const SafetensorsFile& shard : base.checkpoint->shards()) print.add_file(shard.path());
  const fs::path config = base.checkpoint->folder() / "config.json";
  std::error_code ignored;
  if (fs::exists(config, ignored)) print.add_file(config);
  return print;
}

Json to_json(const PissaModule& module) {
  return {{"norm", module.norm}, {"residual_norm", module.residual_norm}};
}

PissaModule described(const PissaTarget& target) {
  PissaModule module;
  module.name = target.module;
  module.d_out = target.d_out;
  module.d_in = target.d_in;
  module.is_input_first = target.is_input_first;
  return module;
}

void read_json(const std::string& text, PissaModule& module) {
  const Json json = Json::parse(text);
  module.norm = json.at("norm").get<double>();
  module.residual_norm = json.at("residual_norm").get<double>();
}

// The principal part of one matrix.
void split(const PissaBase& base, const PissaTarget& target, const PissaOptions& options,
           AdapterWriter& writer) {
  const Tensor<float> stored = load_weight(*base.checkpoint, *target.tensor);
  const TensorView<const float> w =
      target.is_input_first ? stored.view().transpose() : stored.view();
  const LowRank<float> found =
      low_rank(w, {.rank = options.rank, .seed = options.seed, .exact = options.exact});
  auto [b, a] = factors(found);
  NewModule module;
  module.name = target.module;
  module.b.push_back(std::move(b));
  module.a.push_back(std::move(a));
  PissaModule report = described(target);
  report.norm = found.frobenius_norm;
  report.residual_norm = found.frobenius_error;
  writer.add(module, to_json(report).dump());
}

AdapterConfig config_of(const PissaBase& base, const std::vector<PissaTarget>& targets,
                        const fs::path& target) {
  AdapterConfig config;
  config.base_model = (target / base_name).string();
  if (base.architecture != nullptr && base.architecture->is_decoder) config.task_type = "CAUSAL_LM";
  for (const PissaTarget& one : targets) {
    if (one.is_input_first) config.fan_in_fan_out = true;
  }
  return config;
}

// The adapter is noted before it takes its name: a run cut off between the two finds its parts, and
// one cut off later the folder.
void write_adapter(const PissaBase& base, const std::vector<PissaTarget>& targets,
                   const PissaOptions& options, const fs::path& target, OutputFolder& outer,
                   PissaReport& report) {
  OutputFolder folder(outer.result_path(adapter_name), fingerprint_of(base, targets, options));
  folder.fill([&] {
    AdapterWriter writer(folder, factor_dtype(targets, options));
    Index elements = 0;
    for (const PissaTarget& one : targets) elements += one.tensor->shape.count();
    Json reports = Json::object();
    for (const PissaTarget& one : targets) {
      if (writer.has(one.module)) {
        ++report.n_resumed;
      } else {
        split(base, one, options, writer);
      }
      reports[one.module] = writer.reports().at(one.module);
      if (options.on_split) options.on_split(one.tensor->shape.count(), elements);
    }
    writer.finish(config_of(base, targets, target));
    const std::string hash =
        hash_of(open_mapped(folder.result_path("adapter_model.safetensors")).bytes());
    outer.note_part(adapter_part, Json{{"hash", hash}, {"reports", reports}}.dump());
  });
  folder.commit();
}

// Whether a run that was cut off has written the adapter, and it is as it was written.
bool has_adapter(const OutputFolder& outer) {
  if (!outer.has_part(adapter_part)) return false;
  const fs::path folder = outer.result_path(adapter_name);
  std::error_code ignored;
  for (const char* file : {"adapter_config.json", "adapter_model.safetensors"}) {
    if (!fs::is_regular_file(folder / file, ignored)) return false;
  }
  return hash_of(open_mapped(folder / "adapter_model.safetensors").bytes()) ==
         Json::parse(outer.part_note(adapter_part)).at("hash").get<std::string>();
}

MergeReport write_base(const PissaBase& base, const PissaOptions& options, OutputFolder& outer) {
  const std::vector<Adapter> adapters = [&] {
    std::vector<Adapter> list;
    list.push_back(open_adapter(outer.result_path(adapter_name)));
    list.back().resolve_names(
        mergeable_names(*base.checkpoint, *base.tensors, base.architecture, base.config));
    return list;
  }();
  const MergeSources sources{*base.checkpoint, *base.tensors, base.architecture, base.config,
                             adapters};
  // A base that was whole when the run was cut off is written again: its report went with it.
  std::error_code ignored;
  fs::remove_all(outer.result_path(base_name), ignored);
  return merge_adapters(sources, outer.result_path(base_name),
                        {.rules = {.weights = {-1}}, .on_progress = options.on_write});
}

}  // namespace

PissaReport init_pissa(const PissaBase& base, const fs::path& target, const PissaOptions& options) {
  if (options.rank < 1) {
    throw_argument_error("pissa: rank is " + std::to_string(options.rank) +
                         ", but it must be at least 1");
  }
  const std::vector<PissaTarget> targets = detail::pissa_targets(base, options);
  check_values(base, targets);
  PissaReport report;
  report.rank = options.rank;
  report.dtype = factor_dtype(targets, options);
  OutputFolder outer(target, fingerprint_of(base, targets, options));
  outer.fill([&] {
    if (!outer.has_part(folders_part)) outer.note_part(folders_part, "adapter and base");
    if (has_adapter(outer)) {
      report.n_resumed = static_cast<Index>(targets.size());
    } else {
      // What was made of another adapter goes with it.
      std::error_code ignored;
      fs::remove_all(outer.result_path(adapter_name), ignored);
      fs::remove_all(outer.result_path(std::string(base_name) + ".partial"), ignored);
      write_adapter(base, targets, options, target, outer, report);
    }
    const Json reports = Json::parse(outer.part_note(adapter_part)).at("reports");
    for (const PissaTarget& one : targets) {
      PissaModule module = described(one);
      read_json(reports.at(one.module).get<std::string>(), module);
      report.modules.push_back(std::move(module));
    }
    report.base = write_base(base, options, outer);
  });
  outer.commit();
  return report;
}

RewrittenAdapter plain_from_pissa(const Adapter& trained, const Adapter& initial,
                                  const fs::path& target, const RewriteOptions& options) {
  std::set<std::string> before;
  for (const AdapterModule& module : initial.modules()) before.insert(module.name);
  for (const AdapterModule& module : trained.modules()) {
    if (before.erase(module.name) > 0) continue;
    throw_argument_error(
        fmt::format("pissa: {} has {}, but {} has not: it is not what the training "
                    "started from",
                    printable_path(trained.path().string()), printable(module.name),
                    printable_path(initial.path().string())));
  }
  if (!before.empty()) {
    throw_argument_error(
        fmt::format("pissa: {} has {}, but {} has not: it is not what the training "
                    "started from",
                    printable_path(initial.path().string()), printable(*before.begin()),
                    printable_path(trained.path().string())));
  }
  return combine_adapters({{&trained, 1}, {&initial, -1}}, target, options);
}

}  // namespace eckart

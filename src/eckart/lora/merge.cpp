#include "eckart/lora/merge.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/lora/adapter_fingerprint.h"
#include "eckart/lora/carried_files.h"
#include "eckart/lora/output_folder.h"
#include "eckart/lora/shard_merge.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>

namespace eckart {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view config_name = "config.json";

Fingerprint fingerprint_of(const MergeSources& sources, const MergeRules& rules) {
  Fingerprint fingerprint;
  fingerprint.add("merge 2");
  for (const SafetensorsFile& shard : sources.base.shards()) fingerprint.add_file(shard.path());
  std::error_code ignored;
  const fs::path config = sources.base.folder() / config_name;
  if (fs::is_regular_file(config, ignored)) fingerprint.add_file(config);
  for (std::size_t i = 0; i < sources.adapters.size(); ++i) {
    detail::add_adapter(fingerprint, sources.adapters[i]);
    fingerprint.add(detail::exact_text(rules.weights.empty() ? 1 : rules.weights[i]));
  }
  fingerprint.add(rules.dtype ? to_string(*rules.dtype) : "as stored");
  fingerprint.add(rules.fold_tied ? "fold" : "separate");
  return fingerprint;
}

std::set<fs::path> planned_files(const MergeSources& sources, const MergePlan& plan,
                                 const CarriedFiles& files) {
  std::set<fs::path> planned(plan.shards.begin(), plan.shards.end());
  for (const CarriedFile& file : files.carried) planned.insert(file.name);
  if (sources.base.index()) {
    planned.insert(fs::path(sources.base.index()->path).filename());
  }
  return planned;
}

bool changes_tensors(const MergeSources& sources, const MergePlan& plan) {
  if (plan.tensors.size() != sources.base.tensors().size()) return true;
  return std::any_of(plan.tensors.begin(), plan.tensors.end(), [&](const PlannedTensor& tensor) {
    const StoredTensor* const stored = sources.base.find(tensor.name);
    return stored == nullptr || stored->dtype != tensor.dtype ||
           !same_sizes(stored->shape, tensor.shape);
  });
}

// The config with its changes, if the base has one.
EditedConfig config_of(const CarriedFiles& files, const MergePlan& plan) {
  for (const CarriedFile& file : files.carried) {
    if (file.name == config_name) return edited_config(file.from, plan);
  }
  return {};
}

// Config, index and the other files.
void write_files(const MergeSources& sources, const MergePlan& plan, const CarriedFiles& files,
                 OutputFolder& folder) {
  const EditedConfig config = config_of(files, plan);
  for (const CarriedFile& file : files.carried) {
    const fs::path to = folder.result_path(file.name.string());
    if (file.name == config_name && !config.changes.empty()) {
      save_text(to, config.json);
    } else {
      copy_carried(file, to);
    }
  }
  if (!sources.base.index()) return;
  const fs::path index = sources.base.index()->path;
  const fs::path to = folder.result_path(index.filename().string());
  if (changes_tensors(sources, plan)) {
    save_text(to, edited_index(index, plan));
  } else {
    copy_carried({index, index.filename()}, to);
  }
}

// What is known of the files before anything is written.
MergeReport report_of(const CarriedFiles& files, const MergePlan& plan) {
  MergeReport report;
  report.config_changes = config_of(files, plan).changes;
  for (const CarriedFile& file : files.carried) report.carried.push_back(file.name.string());
  report.left_out = files.left_out;
  return report;
}

void check_something_changed(const MergeReport& report) {
  bool is_delta_alone = true;
  for (const MergedTensor& tensor : report.tensors) {
    is_delta_alone = is_delta_alone && (tensor.fate == TensorFate::merged);
  }
  const DeltaStatistics& total = report.total;
  if (!is_delta_alone || total.n_unchanged < total.n_wanted) return;
  throw_argument_error(
      "merge: the result would be the base, because every delta is smaller than the stored dtype "
      "can tell: of " +
          std::to_string(total.n_wanted) + " entries that change none is rounded to another value",
      "`--dtype F32` keeps smaller deltas");
}

}  // namespace

MergeReport merge_adapters(const MergeSources& sources, const fs::path& target,
                           const MergeOptions& options) {
  const MergePlan plan = plan_merge(sources, options.rules);
  const CarriedFiles files = carried_files(sources, plan, target);
  MergeReport report = report_of(files, plan);
  OutputFolder folder(target, fingerprint_of(sources, options.rules));
  std::vector<std::unique_ptr<ShardMerge>> shards;
  folder.fill([&] {
    folder.keep_only(planned_files(sources, plan, files));
    // All files first: whether there is room is known before anything is computed.
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
      shards.push_back(std::make_unique<ShardMerge>(sources, plan, i, folder));
      report.bytes += shards.back()->tensor_bytes();
    }
    for (const auto& shard : shards) {
      shard->run(report, [&](std::uint64_t bytes) {
        if (options.on_progress) options.on_progress(bytes, report.bytes);
      });
    }
    std::sort(
        report.tensors.begin(), report.tensors.end(),
        [](const MergedTensor& a, const MergedTensor& b) { return natural_less(a.name, b.name); });
    for (const MergedTensor& tensor : report.tensors) report.total.add(tensor.statistics);
    check_something_changed(report);
    write_files(sources, plan, files, folder);
  });
  folder.commit(options.is_synced);
  return report;
}

}  // namespace eckart

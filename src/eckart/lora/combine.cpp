#include "eckart/lora/combine.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/lora/adapter_fingerprint.h"
#include "eckart/lora/adapter_parts.h"
#include "eckart/lora/adapter_writer.h"
#include "eckart/lora/output_folder.h"
#include "eckart/lora/rewrite_plan.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* weights_name = "adapter_model.safetensors";
constexpr const char* config_name = "adapter_config.json";

fs::path config_path(const Adapter& adapter) {
  return fs::path(adapter.file().path()).parent_path() / config_name;
}

Fingerprint fingerprint_of(std::string_view operation, const std::vector<WeightedAdapter>& adapters,
                           const RewriteOptions& options) {
  Fingerprint print;
  const RankRule rule = options.rule.value_or(RankRule{});
  print.add(fmt::format("{} {} {} {} {} {} {} {} {}", operation, options.rule.has_value(),
                        rule.rank, rule.energy, rule.error, rule.budget.value_or(0), rule.max_rank,
                        options.budget_bytes.value_or(0), options.max_rank));
  print.add(options.base_model);
  print.add(options.dtype ? to_string(*options.dtype) : "");
  for (const auto& [adapter, weight] : adapters) {
    print.add(exact_text(weight));
    add_adapter(print, *adapter);
  }
  return print;
}

// Whether nothing would change but the names of the files.
bool is_identity(const std::vector<WeightedAdapter>& adapters, const RewriteOptions& options) {
  const Adapter& adapter = *adapters.front().adapter;
  std::error_code ignored;
  return adapters.size() == 1 && adapters.front().weight == 1 && !options.rule &&
         !options.budget_bytes && options.base_model.empty() &&
         (!options.dtype || *options.dtype == adapter.dtype()) &&
         adapter.naming() == AdapterNaming::peft && fs::exists(config_path(adapter), ignored);
}

void copy_whole(const fs::path& from, const fs::path& to) {
  const MappedFile file = open_mapped(from);
  AtomicFile copy(to);
  copy.write(file.bytes());
  copy.commit();
}

RewrittenAdapter copy_adapter(const Adapter& adapter, OutputFolder& folder) {
  copy_whole(adapter.file().path(), folder.result_path(weights_name));
  copy_whole(config_path(adapter), folder.result_path(config_name));
  folder.commit();
  RewrittenAdapter result;
  result.is_copy = true;
  result.dtype = adapter.dtype();
  result.n_saved = static_cast<Index>(adapter.saved().size());
  for (const AdapterModule& module : adapter.modules()) {
    RewrittenModule one{.name = module.name,
                        .kind = module.kind,
                        .d_out = module.d_out,
                        .d_in = module.d_in,
                        .n_experts = module.n_experts,
                        .rank_before = module.rank,
                        .rank_after = module.rank};
    const Index parameters = module.rank * module.n_experts * (module.d_out + module.d_in);
    result.parameters_before += parameters;
    result.parameters_after += parameters;
    result.modules.push_back(std::move(one));
  }
  return result;
}

// What the file's header takes at most.
std::uint64_t header_bytes(const RewritePlan& plan) {
  std::vector<std::pair<std::string, Shape>> tensors;
  for (const DeltaSource& source : plan.sources) {
    const RewrittenModule& sizes = source.sizes;
    const Index rank = std::max<Index>(1, sizes.rank_before) * sizes.n_experts;
    const std::string inner = sizes.kind == AdapterKind::experts ? ".base_layer" : "";
    tensors.emplace_back(sizes.name + inner + ".lora_embedding_A", Shape{rank, sizes.d_in});
    tensors.emplace_back(sizes.name + inner + ".lora_embedding_B", Shape{sizes.d_out, rank});
    if (plan.has_biases) tensors.emplace_back(sizes.name + ".lora_B.bias", Shape{sizes.d_out});
  }
  for (const auto& [adapter, saved] : plan.carried) {
    tensors.emplace_back(saved->name + ".base_layer", saved->stored->shape);
  }
  return most_header_bytes(tensors);
}

// The rule with a budget of bytes as one of parameters.
std::optional<RankRule> rule_of(std::string_view operation, const RewritePlan& plan,
                                const RewriteOptions& options) {
  if (!options.budget_bytes) return options.rule;
  const auto element = static_cast<std::uint64_t>(bits(plan.dtype)) / 8;
  const std::uint64_t header = header_bytes(plan);
  if (*options.budget_bytes < plan.carried_bytes + header + element) {
    throw_argument_error(fmt::format(
        "{}: the budget is {} bytes, but the biases and saved tensors, which are carried as they "
        "are, take {} and the file's header up to {}",
        operation, *options.budget_bytes, plan.carried_bytes, header));
  }
  const std::uint64_t parameters = (*options.budget_bytes - plan.carried_bytes - header) / element;
  return RankRule{.budget = static_cast<Index>(parameters), .max_rank = options.max_rank};
}

void write_all(std::string_view operation, const RewritePlan& plan, const RewriteOptions& options,
               OutputFolder& folder, RewrittenAdapter& result) {
  AdapterWriter writer(folder, plan.dtype);
  write_deltas(operation, plan.sources, options, writer, result);
  for (const auto& [adapter, saved] : plan.carried) {
    if (writer.has_saved(saved->name)) continue;
    writer.add_saved(saved->name, saved->stored->dtype, saved->stored->shape,
                     adapter->file().bytes(*saved->stored));
  }
  writer.finish(plan.config);
}

}  // namespace

RewrittenAdapter rewrite_adapters(std::string_view operation,
                                  const std::vector<WeightedAdapter>& adapters,
                                  const fs::path& target, const RewriteOptions& options) {
  if (adapters.empty()) {
    throw_argument_error(std::string(operation) +
                         ": there is no adapter, but at least one is needed");
  }
  if (options.rule) check_rank_rule(operation, *options.rule);
  const bool is_copy = is_identity(adapters, options);
  RewritePlan plan;
  RewriteOptions settled = options;
  if (is_copy) {
    check_finite(*adapters.front().adapter);
  } else {
    plan = plan_rewrite(operation, adapters, options);
    settled.rule = rule_of(operation, plan, options);
  }
  OutputFolder folder(target, fingerprint_of(operation, adapters, options));
  if (is_copy) return copy_adapter(*adapters.front().adapter, folder);
  RewrittenAdapter result;
  result.dtype = plan.dtype;
  result.notes = plan.notes;
  result.n_saved = static_cast<Index>(plan.carried.size());
  folder.fill([&] { write_all(operation, plan, settled, folder, result); });
  folder.commit();
  return result;
}

}  // namespace detail

RewrittenAdapter combine_adapters(const std::vector<WeightedAdapter>& adapters,
                                  const std::filesystem::path& target,
                                  const RewriteOptions& options) {
  return detail::rewrite_adapters("combine", adapters, target, options);
}

}  // namespace eckart

#include "eckart/lora/extract.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/findings.h"
#include "eckart/io/narrow.h"
#include "eckart/io/widen.h"
#include "eckart/linalg/norms.h"
#include "eckart/lora/adapter_writer.h"
#include "eckart/lora/decomposition.h"
#include "eckart/lora/extract_ranks.h"
#include "eckart/lora/extract_report.h"
#include "eckart/lora/output_folder.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace eckart {
namespace {

constexpr const char* report_name = "eckart_report.json";

void add_checkpoint(const Checkpoint& checkpoint, Fingerprint& fingerprint) {
  for (const SafetensorsFile& shard : checkpoint.shards()) fingerprint.add_file(shard.path());
  std::error_code ignored;
  const std::filesystem::path config = checkpoint.folder() / "config.json";
  if (std::filesystem::is_regular_file(config, ignored)) fingerprint.add_file(config);
}

class Extraction {
 public:
  Extraction(const ExtractSources& sources, const ExtractOptions& options,
             const std::filesystem::path& target)
      : sources_(sources),
        options_(options),
        folder_(target, fingerprint()),
        plan_(
            plan_extract(sources, options.rules,
                         [&](Index done, Index all) { report_progress("comparing", done, all); })),
        dtype_(options.dtype.value_or(plan_.dtype)),
        writer_(folder_, dtype_) {
    for (const PlannedExtract& tensor : plan_.tensors) {
      if (is_decomposed(tensor)) elements_ += tensor.shape.count();
      if (tensor.fate == ExtractFate::bias) biases_[tensor.module] = &tensor;
    }
  }

  ExtractReport run() {
    report_ = empty_report(plan_, options_);
    report_.dtype = dtype_;
    try {
      choose_ranks();
      for (const PlannedExtract& tensor : plan_.tensors) write(tensor);
      // Under a budget a module comes after its decomposition, which is the work.
      if (store_) report_.n_resumed = std::max(report_.n_resumed, store_->n_resumed());
    } catch (const std::invalid_argument&) {
      folder_.discard();  // no later run of these inputs would end better
      throw;
    }
    complete(report_);
    AdapterConfig config = adapter_config();
    writer_.finish(config);
    save_text(folder_.result_path(report_name), to_json(report_) + "\n");
    folder_.commit();
    return report_;
  }

 private:
  void report_progress(std::string_view stage, Index done, Index all) const {
    if (options_.on_progress) options_.on_progress(stage, done, all);
  }

  Fingerprint fingerprint() const {
    Fingerprint result;
    result.add("eckart lora extract 3");
    add_checkpoint(sources_.base, result);
    add_checkpoint(sources_.tuned, result);
    result.add(options_text(options_));
    return result;
  }

  // Ranks that depend on all spectra are chosen when all factors are found.
  void choose_ranks() {
    ExtractRanks& ranks = options_.ranks;
    const bool is_uniform = options_.rules.consumer != Consumer::any;
    FactorStore store(plan_, folder_);
    const auto on_done = [&](const PlannedExtract& tensor) {
      report_progress("decomposing", tensor.shape.count(), elements_);
    };
    if (ranks.budget_bytes || ranks.budget_parameters) {
      const Index budget = factor_budget(ranks, fixed_size(plan_, dtype_), dtype_);
      if (!is_uniform) {
        ranks_ = store.share(ranks, budget, options_.seed, on_done);
        for (const PlannedExtract& tensor : plan_.tensors) {
          if (tensor.is_stacked && is_decomposed(tensor)) stacked_ = ranks_.at(tensor.name);
        }
        store_.emplace(std::move(store));
        return;
      }
      const Index rank = uniform_rank(plan_, budget);
      ranks = {.rank = ranks.max_rank > 0 ? std::min(rank, ranks.max_rank) : rank};
    }
    for (const PlannedExtract& tensor : plan_.tensors) {
      if (!is_decomposed(tensor) || !(is_uniform || tensor.is_stacked)) continue;
      Index& common = is_uniform ? uniform_ : stacked_;
      const LowRankOptions asked =
          low_rank_options(options_, dtype_, TensorMatrices(tensor).limit());
      if (ranks.rank > 0) {
        common = std::max(common, asked.rank);
        continue;
      }
      store.add(tensor, asked);
      const Index rank = rank_kept(options_, dtype_, store.load(tensor));
      ranks_[tensor.name] = rank;
      common = std::max(common, rank);
      on_done(tensor);
    }
    if (!ranks_.empty()) store_.emplace(std::move(store));
  }

  // The rank that a module has at least, filled with zeros.
  Index common_rank(const PlannedExtract& tensor) const {
    return tensor.is_stacked ? stacked_ : uniform_;
  }

  void write(const PlannedExtract& tensor) {
    ExtractedTensor& entry =
        report_.tensors[static_cast<std::size_t>(&tensor - plan_.tensors.data())];
    if (tensor.is_zero) return write_zeros_of_stack(tensor, entry);
    switch (tensor.fate) {
      case ExtractFate::low_rank:
        return write_module(tensor, entry);
      case ExtractFate::full:
        return write_whole(tensor, entry);
      case ExtractFate::bias:
        entry.error = bias_error(tensor);
        return;
      case ExtractFate::unchanged:
      case ExtractFate::skipped:
        return;
    }
  }

  void write_module(const PlannedExtract& tensor, ExtractedTensor& entry) {
    const std::string name = tensor.kind == AdapterKind::experts ? tensor.name : tensor.module;
    const bool has_twin = !tensor.tied_module.empty();
    if (writer_.has(name) && (!has_twin || writer_.has(tensor.tied_module))) {
      read_entry(writer_.reports().at(name), entry);
      ++report_.n_resumed;
    } else if (is_decomposed(tensor)) {
      decompose_and_write(tensor, entry);
    } else {
      add_zero_module(tensor, entry);
    }
    if (is_decomposed(tensor) && !(store_ && store_->has(tensor))) {
      report_progress("decomposing", tensor.shape.count(), elements_);
    }
  }

  // What is stacked with these has no rank where the budget gives none to all of them.
  void write_zeros_of_stack(const PlannedExtract& tensor, ExtractedTensor& entry) {
    if (stacked_ > 0) return write_module(tensor, entry);
    if (entry.fate != ExtractFate::low_rank) return;
    entry.fate = ExtractFate::unchanged;
    entry.reason.clear();
  }

  Decomposition found_for(const PlannedExtract& tensor, TensorMatrices& matrices) {
    Decomposition found;
    if (store_ && store_->has(tensor)) {
      found = store_->load(tensor);
      cut(found, ranks_.at(tensor.name));
    } else {
      found = decompose(matrices, low_rank_options(options_, dtype_, matrices.limit()));
      cut(found, rank_kept(options_, dtype_, found));
    }
    return found;
  }

  void decompose_and_write(const PlannedExtract& tensor, ExtractedTensor& entry) {
    TensorMatrices matrices(tensor);
    Decomposition found = found_for(tensor, matrices);
    const bool has_bias = biases_.count(tensor.module) != 0;
    if (found.rank() == 0 && !has_bias && common_rank(tensor) == 0) {
      entry.fate = ExtractFate::skipped;
      entry.reason = "the budget gives it no rank";
      return;
    }
    entry.certified_error = found.error;
    entry.method = found.method;
    const Index rank = std::max({common_rank(tensor), found.rank(), Index{1}});
    NewModule module = module_of(tensor, std::move(found), rank);
    module.bias = bias_of(tensor);
    const NewModule stored = rounded(module, dtype_);
    check_range(stored, tensor);
    entry.rank = module.a.front().size(0);
    entry.error = distance(matrices, tensor, stored);
    if (options_.ranks.rank > matrices.limit() && common_rank(tensor) == 0) {
      entry.reason = "rank " + std::to_string(matrices.limit()) + " is all that it can have";
    }
    add(module, tensor, entry);
  }

  void add_zero_module(const PlannedExtract& tensor, ExtractedTensor& entry) {
    Decomposition none;
    none.b.emplace_back(Shape{tensor.pair.rows(), 0});
    none.a.emplace_back(Shape{0, tensor.pair.columns()});
    entry.rank = std::max(common_rank(tensor), Index{1});
    NewModule module = module_of(tensor, std::move(none), entry.rank);
    module.bias = bias_of(tensor);
    add(module, tensor, entry);
  }

  void add(NewModule& module, const PlannedExtract& tensor, const ExtractedTensor& entry) {
    writer_.add(module, entry_text(entry));
    if (tensor.tied_module.empty()) return;
    module.name = tensor.tied_module;
    module.kind = AdapterKind::linear;
    writer_.add(module, entry_text(entry));
  }

  // With lora_bias every layer that has a bias has one: a zero where it has not changed.
  std::optional<Tensor<float>> bias_of(const PlannedExtract& tensor) const {
    if (biases_.empty()) return std::nullopt;
    const auto found = biases_.find(tensor.module);
    if (found != biases_.end()) return bias_difference(*found->second);
    for (const PlannedExtract& other : plan_.tensors) {
      if (other.module == tensor.module && other.parameter == "bias") {
        return Tensor<float>({other.shape.count()});
      }
    }
    return std::nullopt;
  }

  static Tensor<float> bias_difference(const PlannedExtract& bias) {
    return load_difference(bias.pair, 0, bias.pair.rows()).reshaped({bias.shape.count()});
  }

  double bias_error(const PlannedExtract& bias) const {
    NewModule module;
    module.bias = bias_difference(bias);
    const Tensor<float> stored = *rounded(module, dtype_).bias;
    for (Index i = 0; i < stored.count(); ++i) (*module.bias)(i) -= stored(i);
    return norm(module.bias->view());
  }

  void check_range(const NewModule& stored, const PlannedExtract& tensor) const {
    std::vector<const Tensor<float>*> all;
    for (const Tensor<float>& b : stored.b) all.push_back(&b);
    for (const Tensor<float>& a : stored.a) all.push_back(&a);
    if (stored.bias) all.push_back(&*stored.bias);
    for (const Tensor<float>* one : all) {
      if (std::isfinite(norm(one->view()))) continue;
      throw_argument_error("extract: the factors of " + printable(tensor.name) +
                               " have numbers that are too large for " +
                               std::string(to_string(dtype_)),
                           "--dtype BF16 or F32 has room for them");
    }
  }

  void write_whole(const PlannedExtract& tensor, ExtractedTensor& entry) {
    const CheckpointTensor& place = sources_.tuned.tensors()[tensor.pair.tuned->values];
    const bool is_scaled = tensor.pair.tuned->is_quantized;
    std::vector<std::byte> made;
    if (is_scaled) made = widened_bytes(tensor, entry);
    const std::span<const std::byte> bytes =
        is_scaled ? std::span<const std::byte>(made) : sources_.tuned.bytes(place.stored->name);
    for (const auto& [module, name] : saved_names(tensor)) {
      modules_to_save_.insert(module);
      if (writer_.has_saved(name)) continue;
      writer_.add_saved(name, is_scaled ? dtype_ : place.stored->dtype, tensor.shape, bytes);
    }
    release_weight_rows(sources_.tuned, *tensor.pair.tuned, 0, tensor.pair.rows());
  }

  // F8 with its scales multiplied in, in the adapter's dtype.
  std::vector<std::byte> widened_bytes(const PlannedExtract& tensor, ExtractedTensor& entry) const {
    Tensor<float> values = load_weight(sources_.tuned, *tensor.pair.tuned);
    const auto n = static_cast<std::size_t>(values.count());
    std::vector<std::byte> bytes(stored_bytes(dtype_, values.count()).value_or(0));
    narrow(dtype_, {values.data(), n}, bytes);
    std::vector<float> stored(n);
    widen<float>(dtype_, bytes, stored);
    for (std::size_t i = 0; i < n; ++i) values.data()[i] -= stored[i];
    entry.error = norm(values.view(), Norm::frobenius);
    return bytes;
  }

  AdapterConfig adapter_config() const {
    AdapterConfig config;
    config.base_model =
        options_.base_name.empty() ? sources_.base.folder().string() : options_.base_name;
    config.task_type = plan_.task_type;
    config.modules_to_save.assign(modules_to_save_.begin(), modules_to_save_.end());
    config.lora_bias = !biases_.empty();
    for (const PlannedExtract& tensor : plan_.tensors) {
      config.fan_in_fan_out =
          config.fan_in_fan_out || (tensor.is_input_first && tensor.kind == AdapterKind::linear &&
                                    tensor.fate == ExtractFate::low_rank);
      if (tensor.kind == AdapterKind::experts && tensor.fate == ExtractFate::low_rank) {
        set_new_experts(config);
      }
    }
    return config;
  }

  void complete(ExtractReport& report) const {
    const Index element = bits(dtype_) / 8;
    for (std::size_t i = 0; i < report.tensors.size(); ++i) {
      const ExtractedTensor& entry = report.tensors[i];
      const PlannedExtract& tensor = plan_.tensors[i];
      report.rank = std::max(report.rank, entry.rank);
      if (entry.rank == 0 || !(is_decomposed(tensor) || tensor.is_stacked)) continue;
      const Index numbers = entry.rank * TensorMatrices(tensor).cost();
      report.parameters += numbers;
      report.bytes += static_cast<std::uint64_t>(numbers * element);
    }
    const FixedSize fixed = fixed_size(plan_, dtype_);
    report.parameters += fixed.parameters;
    report.bytes += fixed.bytes;
    total_errors(report);
    note_missed_error(options_.ranks, report);
  }

  const ExtractSources& sources_;
  ExtractOptions options_;
  OutputFolder folder_;  // first, so that a target that can't be written is known before any work
  ExtractPlan plan_;
  Dtype dtype_;
  AdapterWriter writer_;
  ExtractReport report_;
  Index elements_ = 0;
  Index uniform_ = 0;                                    // one rank for all; 0: each its own
  Index stacked_ = 0;                                    // of all that PEFT stacks
  std::map<std::string, const PlannedExtract*> biases_;  // by module
  std::map<std::string, Index> ranks_;
  std::optional<FactorStore> store_;
  std::set<std::string> modules_to_save_;
};

}  // namespace

ExtractReport preview_extract(const ExtractSources& sources, const ExtractOptions& options) {
  check_ranks(options.ranks);
  const ExtractPlan plan = plan_extract(sources, options.rules, [&](Index done, Index all) {
    if (options.on_progress) options.on_progress("comparing", done, all);
  });
  ExtractReport report = empty_report(plan, options);
  report.dtype = options.dtype.value_or(plan.dtype);
  return report;
}

ExtractReport extract_adapter(const ExtractSources& sources, const std::filesystem::path& target,
                              const ExtractOptions& options) {
  check_ranks(options.ranks);
  return Extraction(sources, options, target).run();
}

}  // namespace eckart

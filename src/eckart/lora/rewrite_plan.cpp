#include "eckart/lora/rewrite_plan.h"

#include "eckart/core/errors.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace eckart::detail {
namespace {

struct Part {
  const Adapter* adapter = nullptr;
  const AdapterModule* module = nullptr;
  double weight = 1;
};

struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
};
using Parts = std::map<std::string, std::vector<Part>, NaturalOrder>;

std::string path_of(const Adapter& adapter) { return printable_path(adapter.path().string()); }

std::string shape_text(const AdapterModule& module) {
  std::string text = fmt::format("{} {}x{}", to_string(module.kind), module.d_out, module.d_in);
  return module.n_experts > 1 ? fmt::format("{} of {} experts", text, module.n_experts) : text;
}

bool has_bias(const std::vector<Part>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.module->bias != nullptr; });
}

bool takes_bias(AdapterKind kind) {
  return kind == AdapterKind::linear || kind == AdapterKind::convolution;
}

class Planner {
 public:
  Planner(std::string_view operation, const std::vector<WeightedAdapter>& adapters,
          const RewriteOptions& options)
      : operation_(operation), adapters_(adapters), options_(options) {}

  RewritePlan run() {
    for (const WeightedAdapter& one : adapters_) check(one);
    plan_.dtype = options_.dtype ? *options_.dtype : widest_dtype();
    add_modules();
    add_saved();
    plan_.config = merged_config();
    return std::move(plan_);
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
    throw_argument_error(std::string(operation_) + ": " + message, hint);
  }

  void check(const WeightedAdapter& one) const {
    const Adapter& adapter = *one.adapter;
    if (!std::isfinite(one.weight)) {
      fail(fmt::format("the weight of {} is {}, but it must be a finite number", path_of(adapter),
                       one.weight));
    }
    check_finite(adapter);
    for (const AdapterModule& module : adapter.modules()) {
      if (adapter.config().use_dora || module.magnitude != nullptr) {
        fail(fmt::format("{} is DoRA: {} scales each row of base and delta together, so that its "
                         "delta is none of low rank and adds to no other",
                         path_of(adapter), printable(module.name)),
             "merge it into its base (`eckart lora merge`) and take the difference from there "
             "(`eckart lora extract`)");
      }
      if (adapter.naming() == AdapterNaming::kohya && module.name.find('.') == std::string::npos) {
        fail(fmt::format("{} has kohya's names, dots as underscores, and {} does not say where the "
                         "dots are, but PEFT's names have them",
                         path_of(adapter), printable(module.name)),
             "--base BASE takes the names from the model");
      }
    }
  }

  // Where two 16-bit formats meet, neither holds the other.
  Dtype widest_dtype() const {
    std::set<Dtype> found;
    for (const WeightedAdapter& one : adapters_) {
      const Dtype dtype = one.adapter->dtype();
      if (dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f32) {
        found.insert(dtype);
      } else {
        found.insert(bits(dtype) < 16 ? Dtype::bf16 : Dtype::f32);
      }
    }
    return found.size() == 1 ? *found.begin() : Dtype::f32;
  }

  void add_modules() {
    for (const WeightedAdapter& one : adapters_) {
      if (one.weight == 0) continue;  // nothing of it is left
      for (const AdapterModule& module : one.adapter->modules()) {
        parts_[module.name].push_back({one.adapter, &module, one.weight});
      }
    }
    check_any();
    const bool any_bias = std::any_of(parts_.begin(), parts_.end(),
                                      [](const auto& entry) { return has_bias(entry.second); });
    plan_.has_biases = any_bias;
    for (const auto& entry : parts_) {
      const std::string& name = entry.first;
      const std::vector<Part>& parts = entry.second;
      check_alike(name, parts);
      const AdapterModule& first = *parts.front().module;
      RewrittenModule sizes{.name = name,
                            .kind = first.kind,
                            .d_out = first.d_out,
                            .d_in = first.d_in,
                            .n_experts = first.n_experts};
      for (const Part& part : parts) sizes.rank_before += part.module->rank;
      // lora_bias is one flag for all: a module without a bias would be one with a missing tensor.
      const bool with_bias = any_bias && takes_bias(first.kind);
      if (with_bias) {
        plan_.carried_bytes += stored_bytes(plan_.dtype, first.d_out).value_or(0);
      }
      plan_.sources.push_back({sizes, [parts, with_bias] { return load(parts, with_bias); }});
    }
  }

  void check_any() const {
    if (!parts_.empty()) return;
    const bool any_module =
        std::any_of(adapters_.begin(), adapters_.end(),
                    [](const WeightedAdapter& one) { return !one.adapter->modules().empty(); });
    if (any_module) fail("nothing is left: every weight is 0");
    const WeightedAdapter& first = adapters_.front();
    fail(fmt::format("{} has no factors, only tensors that it saves whole (modules_to_save), and "
                     "those are carried as they are",
                     path_of(*first.adapter)),
         "`eckart lora merge` puts them into a base");
  }

  static ModuleDelta load(const std::vector<Part>& parts, bool with_bias) {
    std::vector<ModuleDelta> deltas;
    for (const Part& part : parts) {
      ModuleDelta delta = load_delta(*part.adapter, *part.module);
      const bool is_alone = parts.size() == 1 && part.weight == 1;
      deltas.push_back(is_alone ? std::move(delta) : scaled(std::move(delta), part.weight));
    }
    ModuleDelta sum = concatenated(std::move(deltas));
    if (with_bias && !sum.bias) sum.bias = Tensor<float>(Shape{parts.front().module->d_out});
    return sum;
  }

  void check_alike(const std::string& name, const std::vector<Part>& parts) const {
    const Part& first = parts.front();
    for (const Part& part : parts) {
      const AdapterModule &a = *first.module, &b = *part.module;
      const bool same_kernel = a.kind != AdapterKind::convolution ||
                               std::equal(a.a->shape.sizes().begin() + 1, a.a->shape.sizes().end(),
                                          b.a->shape.sizes().begin() + 1, b.a->shape.sizes().end());
      if (a.kind == b.kind && a.d_out == b.d_out && a.d_in == b.d_in &&
          a.n_experts == b.n_experts && same_kernel) {
        continue;
      }
      fail(fmt::format("{} is {} in {} and {} in {}, but what is added must have one shape",
                       printable(name), shape_text(a), path_of(*first.adapter), shape_text(b),
                       path_of(*part.adapter)),
           "the adapters are for different models");
    }
  }

  void add_saved() {
    std::map<std::string, CarriedTensor, NaturalOrder> carried;
    for (const WeightedAdapter& one : adapters_) {
      for (const SavedTensor& saved : one.adapter->saved()) {
        const auto [at, is_new] =
            carried.try_emplace(saved.name, CarriedTensor{one.adapter, &saved});
        if (!is_new) check_same(at->second, {one.adapter, &saved});
        const std::string module = saved.name.substr(0, saved.name.rfind('.'));
        for (const std::string& name : {module, saved.name}) {
          const auto changed = parts_.find(name);
          if (changed == parts_.end() || saved.name.ends_with(".bias")) continue;
          fail(
              fmt::format("{} saves {} whole and {} adds a delta to it, but only one of the two "
                          "can hold",
                          path_of(*one.adapter), printable(saved.name),
                          path_of(*changed->second.front().adapter)));
        }
      }
      if (one.weight != 1 && !one.adapter->saved().empty()) {
        plan_.notes.push_back(fmt::format(
            "the tensors that {} saves whole are carried as they are: its weight {} does not count "
            "for them",
            path_of(*one.adapter), one.weight));
      }
    }
    for (const auto& [name, tensor] : carried) {
      plan_.carried.push_back(tensor);
      plan_.carried_bytes += tensor.saved->stored->bytes();
    }
  }

  void check_same(const CarriedTensor& a, const CarriedTensor& b) const {
    const StoredTensor &x = *a.saved->stored, &y = *b.saved->stored;
    const auto of_x = a.adapter->file().bytes(x), of_y = b.adapter->file().bytes(y);
    if (x.dtype == y.dtype && same_sizes(x.shape, y.shape) &&
        std::equal(of_x.begin(), of_x.end(), of_y.begin(), of_y.end())) {
      return;
    }
    fail(fmt::format("{} and {} both save {} whole (modules_to_save), with different values, but "
                     "only one of them can hold",
                     path_of(*a.adapter), path_of(*b.adapter), printable(a.saved->name)),
         "merge one of the adapters into the base instead");
  }

  // Square experts of two conventions add up wrongly, and nothing else tells them apart.
  void check_expert_layouts(const Adapter& a, const Adapter& b) const {
    const auto has_square = [](const AdapterModule& module) {
      return module.kind == AdapterKind::experts && module.d_out == module.d_in;
    };
    const auto lies = [](const Adapter& adapter) {
      return has_old_experts(adapter.config()).value_or(false);
    };
    if (lies(a) == lies(b)) return;
    for (const Adapter* adapter : {&a, &b}) {
      const auto found =
          std::find_if(adapter->modules().begin(), adapter->modules().end(), has_square);
      if (found == adapter->modules().end()) continue;
      fail(fmt::format(
               "{} has square experts, and one of {} and {} was saved by PEFT before 0.19.1, "
               "which had their factors the other way round than later ones",
               printable(found->name), path_of(a), path_of(b)),
           "merge them into the base one after the other");
    }
  }

  AdapterConfig merged_config() {
    AdapterConfig config = adapters_.front().adapter->config();
    for (const WeightedAdapter& one : adapters_) {
      const AdapterConfig& other = one.adapter->config();
      if (config.fan_in_fan_out != other.fan_in_fan_out) {
        fail(fmt::format("fan_in_fan_out is {} in {} and {} in {}, but one adapter has one",
                         config.fan_in_fan_out, path_of(*adapters_.front().adapter),
                         other.fan_in_fan_out, path_of(*one.adapter)),
             "the adapters are for models of different layouts");
      }
      check_expert_layouts(*adapters_.front().adapter, *one.adapter);
      if (config.bias == "none") config.bias = other.bias;
      if (other.bias != "none" && other.bias != config.bias) config.bias = "all";
      for (const std::string& module : other.modules_to_save) {
        const auto end = config.modules_to_save.end();
        if (std::find(config.modules_to_save.begin(), end, module) == end) {
          config.modules_to_save.push_back(module);
        }
      }
      if (config.task_type.empty()) config.task_type = other.task_type;
      if (config.base_model.empty()) config.base_model = other.base_model;
      if (options_.base_model.empty() && !other.base_model.empty() &&
          other.base_model != config.base_model) {
        plan_.notes.push_back(fmt::format("{} was trained on {}, not on {}", path_of(*one.adapter),
                                          printable(other.base_model),
                                          printable(config.base_model)));
      }
      std::erase_if(config.others, [&](const auto& field) {
        return std::find(other.others.begin(), other.others.end(), field) == other.others.end();
      });
    }
    if (!options_.base_model.empty()) config.base_model = options_.base_model;
    // Every module is named whole: nothing is left to be excluded.
    config.exclude_modules.clear();
    config.exclude_pattern.clear();
    return config;
  }

  std::string_view operation_;
  const std::vector<WeightedAdapter>& adapters_;
  const RewriteOptions& options_;
  Parts parts_;
  RewritePlan plan_;
};

}  // namespace

RewritePlan plan_rewrite(std::string_view operation, const std::vector<WeightedAdapter>& adapters,
                         const RewriteOptions& options) {
  return Planner(operation, adapters, options).run();
}

}  // namespace eckart::detail

// PEFT's names: `base_model.model.<module>.lora_A.weight`.
#include "eckart/core/errors.h"
#include "eckart/lora/adapter_parts.h"
#include "eckart/lora/name_regex.h"

#include <algorithm>
#include <utility>

namespace eckart::detail {
namespace {

constexpr std::string_view peft_prefix = "base_model.model.";
constexpr std::string_view base_layer = ".base_layer";

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::string_view parent_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

bool is_below(std::string_view module, std::string_view parent) {
  return parent.empty() || module == parent ||
         (module.size() > parent.size() && module.ends_with(parent) &&
          module[module.size() - parent.size() - 1] == '.');
}

class PeftReader {
 public:
  PeftReader(const SafetensorsFile& file, const std::optional<AdapterConfig>& config)
      : file_(file), has_config_(config) {
    if (config) parts_.config = *config;
    std::vector<std::string> keys;
    for (const auto& entry : parts_.config.rank_pattern) keys.push_back(entry.first);
    ranks_ = NamePatterns(keys);
    keys.clear();
    for (const auto& entry : parts_.config.alpha_pattern) keys.push_back(entry.first);
    alphas_ = NamePatterns(keys);
    // PEFT takes every module whose name ends so: `norm` is `input_layernorm` too.
    for (const std::string& name : parts_.config.modules_to_save) {
      saved_.emplace_back(".*" + name + "($|\\..*)");
    }
  }

  AdapterParts read() {
    for (const StoredTensor& tensor : file_.tensors()) sort_in(tensor);
    check_saved();
    for (const auto& [name, tensors] : modules_) add_module(name, tensors);
    check_one_or_other();
    if (!has_config_) describe_modules(parts_.config, ranks_of(parts_.modules));
    return std::move(parts_);
  }

 private:
  void sort_in(const StoredTensor& tensor) {
    std::string_view name = tensor.name;
    if (name.starts_with(peft_prefix)) name.remove_prefix(peft_prefix.size());
    static const std::vector<std::string_view> factors = {".lora_A.weight",
                                                          ".lora_B.weight",
                                                          ".lora_B.bias",
                                                          ".lora_embedding_A",
                                                          ".lora_embedding_B",
                                                          ".lora_magnitude_vector",
                                                          ".lora_magnitude_vector.weight"};
    std::string_view suffix = suffix_of(name, factors);
    if (suffix.empty() && !has_config_) suffix = suffix_of(name, {".alpha"});
    if (suffix.empty()) return sort_in_other(tensor, name);
    name.remove_suffix(suffix.size());
    if (suffix == ".lora_magnitude_vector.weight") suffix = ".lora_magnitude_vector";
    const auto [other, is_new] = modules_[std::string(name)].emplace(suffix, &tensor);
    if (!is_new) refuse_two(*other->second, tensor);
  }

  // With and without PEFT's prefix, say.
  [[noreturn]] void refuse_two(const StoredTensor& one, const StoredTensor& other) const {
    throw_tensor_error(file_, one,
                       "it and \"" + printable(other.name) +
                           "\" are two names of the same, but only one of them can hold",
                       "the file was put together of two: save the adapter again");
  }

  void check_saved() const {
    std::map<std::string_view, const StoredTensor*> by_name;
    for (const SavedTensor& saved : parts_.saved) {
      const auto [other, is_new] = by_name.emplace(saved.name, saved.stored);
      if (!is_new) refuse_two(*other->second, *saved.stored);
    }
  }

  void sort_in_other(const StoredTensor& tensor, std::string_view name) {
    const AdapterConfig& config = parts_.config;
    if (name.find("token_adapter.") != std::string_view::npos) {
      throw_tensor_error(file_, tensor,
                         "it holds rows of a table that were trained by themselves "
                         "(trainable_token_indices), but Eckart does not read those",
                         "merge the adapter with PEFT");
    }
    const std::string_view parent = parent_of(name);
    if (parent.ends_with(base_layer)) {
      std::string plain(parent.substr(0, parent.size() - base_layer.size()));
      plain += '.';
      plain += last_part(name);
      if (last_part(name) == "bias" && config.bias != "none") return save(tensor, plain);
      return warn_of_tensor(parts_.warnings, file_, tensor,
                            {.rule = "base_copy",
                             .message = "it is a copy of the base's own tensor and is left out"});
    }
    const bool is_saved = std::any_of(saved_.begin(), saved_.end(), [&](const NameRegex& regex) {
      return regex.matches(name) || regex.matches(parent);
    });
    if (is_saved || (last_part(name) == "bias" && config.bias != "none")) {
      return save(tensor, std::string(name));
    }
    if (last_part(parent) == "embed_tokens" || last_part(parent) == "lm_head") {
      // PEFT saves both tables when the vocabulary's size was changed.
      warn_of_tensor(parts_.warnings, file_, tensor,
                     {.rule = "saved_table",
                      .message = "it replaces the base's tensor, though modules_to_save does not "
                                 "name it"});
      return save(tensor, std::string(name));
    }
    throw_tensor_error(file_, tensor,
                       "it belongs to no module of the adapter and no entry of modules_to_save "
                       "names it, but every tensor of an adapter does something");
  }

  void save(const StoredTensor& tensor, const std::string& name) {
    parts_.saved.push_back({name, &tensor});
  }

  // A trained bias may stand beside factors; a matrix that is saved takes their place.
  void check_one_or_other() const {
    for (const SavedTensor& saved : parts_.saved) {
      if (last_part(saved.name) != "weight") continue;
      const std::string_view parent = parent_of(saved.name);
      const bool has_factors =
          std::any_of(parts_.modules.begin(), parts_.modules.end(),
                      [&](const AdapterModule& module) { return module.name == parent; });
      if (!has_factors) continue;
      throw_tensor_error(file_, *saved.stored,
                         "it saves its module whole, and there are factors of the same module, but "
                         "only one of the two can hold",
                         "PEFT takes what is saved and passes over the factors: take one of them "
                         "out, and its entry of modules_to_save or target_modules");
    }
  }

  // Levels of `.base_layer` at the end of a name, which are taken off.
  static std::size_t levels_of(std::string_view& name) {
    std::size_t levels = 0;
    while (name.ends_with(base_layer)) {
      name.remove_suffix(base_layer.size());
      ++levels;
    }
    return levels;
  }

  // The parameters of one module that target_parameters names, the innermost wrapper's first.
  std::vector<std::string> parameters_of(std::string_view module) const {
    std::vector<std::string> names;
    for (const std::string& target : parts_.config.target_parameters) {
      const std::string name(last_part(target));
      if (is_below(module, parent_of(target)) &&
          std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
    sort_as_wrapped(names);
    return names;
  }

  std::size_t wrappers_of(std::string_view module) const {
    std::size_t n = 0;
    for (std::string name(module); modules_.contains(name); name += base_layer) ++n;
    return n;
  }

  void add_module(const std::string& full_name, const ModuleTensors& tensors) {
    std::string_view name = full_name;
    const std::size_t level = levels_of(name);
    AdapterModule module;
    module.name = name;
    const bool is_table = find_tensor(tensors, ".lora_embedding_A") != nullptr ||
                          find_tensor(tensors, ".lora_embedding_B") != nullptr;
    module.a = find_tensor(tensors, is_table ? ".lora_embedding_A" : ".lora_A.weight");
    module.b = find_tensor(tensors, is_table ? ".lora_embedding_B" : ".lora_B.weight");
    const StoredTensor& any = *tensors.begin()->second;
    if (module.a == nullptr || module.b == nullptr) {
      const std::string partner = is_table ? "lora_embedding_" : "lora_";
      throw_tensor_error(file_, any,
                         "its module has no " + partner + (module.a == nullptr ? "A" : "B") +
                             ", but a module has both factors",
                         "the file was cut or merged by hand: save the adapter again");
    }
    module.bias = find_tensor(tensors, ".lora_B.bias");
    module.magnitude = find_tensor(tensors, ".lora_magnitude_vector");
    set_sizes(file_, module);
    const std::vector<std::string> parameters = parameters_of(name);
    if (is_table) {
      read_table(module);
    } else if (level > 0 || !parameters.empty()) {
      read_parameter(module, parameters, level);
    }
    read_extras(module);
    set_scale(module, find_tensor(tensors, ".alpha"));
    parts_.modules.push_back(std::move(module));
  }

  // lora_embedding_A is r x vocabulary and B d x r: the table's update is their product transposed.
  static void read_table(AdapterModule& module) {
    module.kind = AdapterKind::embedding;
    std::swap(module.d_out, module.d_in);
  }

  void read_parameter(AdapterModule& module, const std::vector<std::string>& parameters,
                      std::size_t level) {
    const std::size_t wrappers = wrappers_of(module.name);
    if (parameters.size() != wrappers) {
      throw_tensor_error(file_, *module.a,
                         "its module has " + std::to_string(wrappers) +
                             " pairs of factors, but target_parameters "
                             "names " +
                             std::to_string(parameters.size()) + " of its parameters");
    }
    if (level >= wrappers) {
      throw_tensor_error(
          file_, *module.a,
          "its name has .base_layer, as the inner of several pairs of factors of one "
          "module, but there is no outer one");
    }
    const std::string& parameter = parameters[wrappers - 1 - level];
    const std::string name = module.name + "." + parameter;
    const Index rank = rank_in_config(name);
    if (module.rank % rank != 0) {
      throw_tensor_error(file_, *module.a,
                         "it has " + std::to_string(module.rank) +
                             " rows, but of experts of rank " + std::to_string(rank) +
                             " they are a multiple of it");
    }
    module.n_experts = module.rank / rank;
    module.rank = rank;
    if (parameter == "weight" && module.n_experts == 1) return;  // as any matrix
    module.kind = AdapterKind::experts;
    module.name = name;
  }

  void read_extras(AdapterModule& module) {
    const AdapterConfig& config = parts_.config;
    if (module.bias != nullptr && has_config_ && !config.lora_bias) {
      warn_of_tensor(
          parts_.warnings, file_, *module.bias,
          {.rule = "unused_bias",
           .message = "it is left out, as PEFT does, since lora_bias is not set",
           .hint = "set lora_bias to true in adapter_config.json if it is meant to count"});
      module.bias = nullptr;
    }
    if (module.bias != nullptr) check_vector(*module.bias, module, "lora_B.bias");
    if (has_config_ && (module.magnitude != nullptr) != config.use_dora &&
        module.kind != AdapterKind::experts) {
      throw_tensor_error(file_, module.magnitude != nullptr ? *module.magnitude : *module.a,
                         config.use_dora
                             ? "use_dora is set, but its module has no lora_magnitude_vector"
                             : "it is a magnitude of DoRA, but use_dora is not set");
    }
    if (module.magnitude == nullptr) return;
    if (module.kind == AdapterKind::embedding) {
      throw_tensor_error(file_, *module.magnitude,
                         "it is DoRA's of an embedding, but Eckart reads DoRA of matrices and "
                         "convolutions");
    }
    check_vector(*module.magnitude, module, "lora_magnitude_vector");
  }

  void check_vector(const StoredTensor& tensor, const AdapterModule& module, const char* what) {
    if (tensor.shape.count() == module.d_out) return;
    throw_tensor_error(file_, tensor,
                       "it is " + sizes_to_string(tensor.shape) + ", but " + what +
                           " has one element for each of the " + std::to_string(module.d_out) +
                           " outputs of its module");
  }

  Index rank_in_config(std::string_view name) const {
    const auto found = ranks_.find(name);
    return found ? parts_.config.rank_pattern[*found].second : parts_.config.r;
  }

  void set_scale(AdapterModule& module, const StoredTensor* alpha) {
    const AdapterConfig& config = parts_.config;
    if (!has_config_) {
      module.alpha = alpha == nullptr ? 0 : number_in(file_, *alpha);
      if (module.alpha == 0) module.alpha = static_cast<double>(module.rank);
    } else {
      if (const Index rank = rank_in_config(module.name); rank != module.rank) {
        throw_tensor_error(file_, *module.a,
                           "its rank is " + std::to_string(module.rank) +
                               ", but adapter_config.json gives its module rank " +
                               std::to_string(rank),
                           "correct r or rank_pattern there");
      }
      const auto found = alphas_.find(module.name);
      module.alpha = found ? config.alpha_pattern[*found].second : config.lora_alpha;
    }
    module.scale = scale_of(config, module.rank, module.alpha);
  }

  const SafetensorsFile& file_;
  bool has_config_;
  AdapterParts parts_;
  NamePatterns ranks_;
  NamePatterns alphas_;
  std::vector<NameRegex> saved_;
  std::map<std::string, ModuleTensors> modules_;
};

}  // namespace

AdapterParts read_peft(const SafetensorsFile& file, const std::optional<AdapterConfig>& config) {
  return PeftReader(file, config).read();
}

}  // namespace eckart::detail

#include "eckart/lora/adapter_parts.h"

#include "eckart/core/errors.h"
#include "eckart/io/widen.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace eckart::detail {

const StoredTensor* find_tensor(const ModuleTensors& tensors, std::string_view suffix) {
  const auto found = tensors.find(suffix);
  return found == tensors.end() ? nullptr : found->second;
}

std::string_view suffix_of(std::string_view name, const std::vector<std::string_view>& suffixes) {
  for (const std::string_view suffix : suffixes) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) return suffix;
  }
  return {};
}

void throw_tensor_error(const SafetensorsFile& file, const StoredTensor& tensor,
                        const std::string& message, const std::string& hint) {
  throw_format_error(
      file.path(), tensor.begin,
      printable_path(file.path()) + ": tensor \"" + printable(tensor.name) + "\": " + message,
      hint);
}

void warn_of_tensor(Findings& warnings, const SafetensorsFile& file, const StoredTensor& tensor,
                    Finding finding) {
  finding.severity = Severity::warning;
  finding.file = file.path();
  finding.tensor = tensor.name;
  warnings.add(std::move(finding));
}

void set_sizes(const SafetensorsFile& file, AdapterModule& module) {
  const StoredTensor& a = *module.a;
  const StoredTensor& b = *module.b;
  for (const StoredTensor* tensor : {module.a, module.b, module.bias, module.magnitude}) {
    if (tensor != nullptr && (!is_floating(tensor->dtype) || !is_widenable(tensor->dtype))) {
      throw_tensor_error(file, *tensor,
                         "it is " + std::string(to_string(tensor->dtype)) +
                             ", but factors are F64, F32, F16, BF16 or F8");
    }
  }
  const std::string shapes = sizes_to_string(a.shape) + " and its partner \"" + printable(b.name) +
                             "\" is " + sizes_to_string(b.shape);
  if (a.shape.rank() < 2 || b.shape.rank() < 2 || a.shape.count() == 0 || b.shape.count() == 0) {
    throw_tensor_error(file, a, "it is " + shapes + ", but factors are matrices with elements");
  }
  module.rank = a.shape.size(0);
  module.d_in = a.shape.count() / module.rank;
  module.d_out = b.shape.size(0);
  if (b.shape.size(1) != module.rank || b.shape.count() != module.d_out * module.rank) {
    throw_tensor_error(file, a,
                       "it is " + shapes +
                           ", but the first's rows and the second's columns are the "
                           "rank, which is one number");
  }
  if (a.shape.rank() > 2) module.kind = AdapterKind::convolution;
}

double number_in(const SafetensorsFile& file, const StoredTensor& tensor) {
  if (tensor.shape.count() != 1 || !is_widenable(tensor.dtype)) {
    throw_tensor_error(file, tensor,
                       "it is " + sizes_to_string(tensor.shape) + " of " +
                           std::string(to_string(tensor.dtype)) + ", but alpha is one number");
  }
  double number = 0;
  widen(tensor.dtype, file.bytes(tensor), std::span<double>(&number, 1));
  if (!std::isfinite(number)) {
    throw_tensor_error(file, tensor, "it is not finite, but alpha is a number");
  }
  return number;
}

std::vector<ModuleRank> ranks_of(const std::vector<AdapterModule>& modules) {
  std::vector<ModuleRank> ranks;
  ranks.reserve(modules.size());
  for (const AdapterModule& module : modules) {
    ranks.push_back({module.name, module.kind, module.rank, module.alpha});
  }
  return ranks;
}

void describe_modules(AdapterConfig& config, const std::vector<ModuleRank>& modules) {
  config.target_modules.clear();
  config.target_pattern.clear();
  config.target_parameters.clear();
  config.rank_pattern.clear();
  config.alpha_pattern.clear();
  config.layers_to_transform.clear();
  config.layers_pattern.clear();
  std::map<std::pair<Index, double>, Index> counts;
  for (const ModuleRank& module : modules) ++counts[{module.rank, module.alpha}];
  // Readers that know no patterns take r for the room they need.
  std::pair<Index, double> commonest{config.r, config.lora_alpha};
  Index most = 0;
  for (auto entry = counts.rbegin(); entry != counts.rend(); ++entry) {
    if (entry->first.first == counts.rbegin()->first.first && entry->second > most) {
      commonest = entry->first;
      most = entry->second;
    }
  }
  const auto expert = std::find_if(modules.begin(), modules.end(), [](const ModuleRank& module) {
    return !expert_stack(module.name).empty() || module.name.ends_with(".gate");
  });
  if (expert != modules.end()) commonest = {expert->rank, expert->alpha};
  config.r = commonest.first;
  config.lora_alpha = commonest.second;
  for (const ModuleRank& module : modules) {
    (module.kind == AdapterKind::experts ? config.target_parameters : config.target_modules)
        .push_back(module.name);
    const std::string key = escaped_pattern(module.name);
    if (module.rank != config.r) config.rank_pattern.emplace_back(key, module.rank);
    if (module.alpha != config.lora_alpha) config.alpha_pattern.emplace_back(key, module.alpha);
  }
}

std::string peft_key(std::string_view name) {
  std::string key = "base_model.model.";
  key += name;
  return key;
}

std::map<std::string, std::string> peft_keys(const std::vector<ModuleRank>& modules) {
  std::map<std::string, std::string> keys;
  std::map<std::string, std::vector<std::string>> parameters;  // by their module
  for (const ModuleRank& module : modules) {
    const std::size_t dot = module.name.rfind('.');
    if (module.kind != AdapterKind::experts || dot == std::string::npos) {
      keys[module.name] = peft_key(module.name);
    } else {
      parameters[module.name.substr(0, dot)].push_back(module.name.substr(dot + 1));
    }
  }
  for (auto& [parent, names] : parameters) {
    sort_as_wrapped(names);
    std::string key = peft_key(parent);
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      keys[parent + "." + *name] = key;
      key += ".base_layer";
    }
  }
  return keys;
}

void sort_as_wrapped(std::vector<std::string>& parameters) {
  std::stable_sort(parameters.begin(), parameters.end(),
                   [](const std::string& a, const std::string& b) {
                     return !a.starts_with("down") && b.starts_with("down");
                   });
}

std::string_view expert_stack(std::string_view name) {
  constexpr std::string_view experts = ".experts.";
  const std::size_t found = name.rfind(experts);
  if (found == std::string_view::npos) return {};
  const std::size_t number = found + experts.size();
  const std::size_t end = name.find_first_not_of("0123456789", number);
  if (end == std::string_view::npos || end == number || name[end] != '.') return {};
  return name.substr(0, number - 1);
}

std::uint64_t most_header_bytes(const std::vector<std::pair<std::string, Shape>>& tensors) {
  // The length, {"__metadata__":{"format":"pt"}, and spaces up to a multiple of 8.
  std::uint64_t bytes = 8 + 40 + 8;
  std::uint64_t end = 0;
  for (const auto& [name, shape] : tensors) {
    end += 4 * static_cast<std::uint64_t>(std::max<Index>(shape.count(), 1));
  }
  const std::size_t offset = std::to_string(end).size();
  // "":{"dtype":"BF16","shape":[],"data_offsets":[,]}, and the axes of convolutions.
  constexpr std::size_t fixed = 49 + 24;
  for (const auto& [name, shape] : tensors) {
    bytes += peft_key(name).size() + fixed + 2 * offset;
    for (Index axis = 0; axis < shape.rank(); ++axis) {
      bytes += std::to_string(shape.size(axis)).size() + 1;
    }
  }
  return bytes;
}

AdapterKind parse_kind(std::string_view name) {
  for (const AdapterKind kind :
       {AdapterKind::embedding, AdapterKind::convolution, AdapterKind::experts}) {
    if (to_string(kind) == name) return kind;
  }
  return AdapterKind::linear;
}

}  // namespace eckart::detail

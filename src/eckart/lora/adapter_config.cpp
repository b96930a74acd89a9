#include "eckart/lora/adapter_config.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/lora/name_regex.h"
#include "eckart/model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view all_linear = "all-linear";

// Read into AdapterConfig's own members.
constexpr std::array<std::string_view, 19> read_fields = {
    "peft_type",        "r",
    "lora_alpha",       "use_rslora",
    "use_dora",         "lora_bias",
    "fan_in_fan_out",   "bias",
    "target_modules",   "exclude_modules",
    "modules_to_save",  "target_parameters",
    "rank_pattern",     "alpha_pattern",
    "task_type",        "base_model_name_or_path",
    "layers_pattern",   "layers_to_transform",
    "init_lora_weights"};

// Of no effect on what a saved adapter adds to its base: training, loading and where it came from.
// `trainable_token_indices` is here because the tensors tell (see open_adapter).
constexpr std::array<std::string_view, 15> harmless_fields = {
    "inference_mode",     "lora_dropout",
    "revision",           "auto_mapping",
    "peft_version",       "megatron_config",
    "megatron_core",      "qalora_group_size",
    "eva_config",         "corda_config",
    "lora_ga_config",     "velora_config",
    "runtime_config",     "trainable_token_indices",
    "ensure_weight_tying"};

struct ChangesDelta {
  std::string_view field;
  std::string_view what;
};
constexpr std::array<ChangesDelta, 8> unread_fields = {
    {{"loftq_config", "LoftQ's factors belong to a base that was quantized with them"},
     {"use_qalora", "QALoRA pools the input before lora_A"},
     {"layer_replication", "its layers are copies of the base's, each with its own adapter"},
     {"alora_invocation_tokens", "an activated LoRA counts only behind its invocation tokens"},
     {"kasa_config", "KaSA scales the rows of lora_A and cuts the base's singular values"},
     {"monteclora_config", "MonteCLoRA draws its factors at random"},
     {"use_bdlora", "BD-LoRA's factors are block-diagonal and stored packed"},
     {"arrow_config", "Arrow chooses among adapters token by token"}}};

template <std::size_t n>
bool contains(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_empty(const Json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         ((value.is_array() || value.is_object()) && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

[[noreturn]] void throw_field_error(const std::string& source, const std::string& message,
                                    const std::string& hint = {}) {
  throw_format_error(source, std::nullopt, source + ": " + message, hint);
}

Json parse_in_order(std::string_view text, const std::string& source) {
  try {
    return Json::parse(text);
  } catch (const Json::exception&) {
    // Sound JSON all the same: only numbers can be beyond what a double holds.
    throw_field_error(source, "it has a number that is too large for any field of a config");
  }
}

void refuse_what_is_not_computed(const Json& json, const std::string& source) {
  for (const auto& [key, value] : json.items()) {
    if (is_empty(value) || contains(read_fields, key) || contains(harmless_fields, key)) continue;
    const auto* const known =
        std::find_if(unread_fields.begin(), unread_fields.end(),
                     [&name = key](const ChangesDelta& field) { return field.field == name; });
    if (known != unread_fields.end()) {
      throw_field_error(
          source, key + " is set, but Eckart does not compute it: " + std::string(known->what));
    }
    throw_field_error(source,
                      "the field " + printable(key, 60) + " is " + printable(value.dump(), 60) +
                          ", but Eckart does not know what it does to the adapter",
                      "remove it when it changes nothing of what the adapter adds to its base");
  }
}

// A list of names, one name as a pattern, or nothing.
void read_targets(const Config& config, const Json& json, const char* field,
                  std::vector<std::string>& names, std::string& pattern) {
  const auto found = json.find(field);
  if (found == json.end() || found->is_null()) return;
  if (found->is_string()) {
    pattern = found->get<std::string>();
  } else {
    names = config.texts({field});
  }
}

void read_layers(const Config& config, const Json& json, AdapterConfig& result) {
  const auto layers = json.find("layers_to_transform");
  if (layers != json.end() && layers->is_number()) {
    result.layers_to_transform = {config.required_size({"layers_to_transform"})};
  } else {
    result.layers_to_transform = config.sizes({"layers_to_transform"});
  }
  const auto pattern = json.find("layers_pattern");
  if (pattern != json.end() && pattern->is_string()) {
    const std::string text = pattern->get<std::string>();
    if (!text.empty()) result.layers_pattern = {text};
  } else {
    result.layers_pattern = config.texts({"layers_pattern"});
  }
}

// The entries of an object of numbers, in the order of the file.
std::vector<std::pair<std::string, double>> read_pattern(const Config& config, const Json& json,
                                                         const char* field) {
  std::vector<std::pair<std::string, double>> entries;
  const std::optional<Config> section = config.section(field);  // throws for what is no object
  if (!section) return entries;
  for (const auto& [key, value] : json.at(field).items()) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      throw_field_error(config.source(), std::string(field) + ": of \"" + printable(key, 60) +
                                             "\" it is " + printable(value.dump(), 60) +
                                             ", but it must be a number");
    }
    entries.emplace_back(key, value.get<double>());
  }
  return entries;
}

// 16 rather than 16.0: a whole number is written as one.
Json number_json(double number) {
  constexpr double exact = 9e15;
  if (number == std::floor(number) && std::abs(number) < exact) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

// PEFT has defaults for what is missing, and fails at what is null.
void check_numbers(const Json& json, const std::string& source) {
  for (const char* field : {"r", "lora_alpha"}) {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_null()) continue;
    throw_field_error(source, std::string(field) + " is null, but it must be a number",
                      "set it to what the adapter was trained with");
  }
}

void check_bias(const std::string& bias, const std::string& source) {
  if (bias == "none" || bias == "all" || bias == "lora_only") return;
  throw_field_error(source, "bias is \"" + printable(bias, 60) +
                                "\", but must be \"none\", \"all\" or \"lora_only\"");
}

Index read_rank(const std::string& source, const std::string& what, double rank) {
  constexpr double largest = 1 << 30;
  if (!(rank >= 1) || !(rank <= largest) || rank != std::floor(rank)) {
    throw_field_error(source, what + " is " + number_json(rank).dump() +
                                  ", but a rank is a whole number from 1 to 2^30");
  }
  return static_cast<Index>(rank);
}

template <class Value>
std::vector<std::string> keys_of(const std::vector<std::pair<std::string, Value>>& entries) {
  std::vector<std::string> keys;
  keys.reserve(entries.size());
  for (const auto& entry : entries) keys.push_back(entry.first);
  return keys;
}

// Compiles what will be matched later, so that a broken pattern is an error of its file.
void check_patterns(const AdapterConfig& config, const std::string& source) {
  const auto check = [&](const char* field, const auto& compile) {
    try {
      compile();
    } catch (const ArgumentError& error) {
      throw_field_error(source, std::string(field) + ": " + error.message());
    }
  };
  const auto check_name = [&](const char* field, const std::string& pattern) {
    check(field, [&] { static_cast<void>(detail::NameRegex(pattern)); });
  };
  check_name("target_modules", config.target_pattern);
  check_name("exclude_modules", config.exclude_pattern);
  for (const std::string& pattern : config.layers_pattern) check_name("layers_pattern", pattern);
  for (const std::string& name : config.modules_to_save) check_name("modules_to_save", name);
  check("rank_pattern",
        [&] { static_cast<void>(detail::NamePatterns(keys_of(config.rank_pattern))); });
  check("alpha_pattern",
        [&] { static_cast<void>(detail::NamePatterns(keys_of(config.alpha_pattern))); });
}

void check_type(const Config& config) {
  const std::string type = config.text({"peft_type"}).value_or(std::string());
  if (type == "LORA") return;
  throw_field_error(config.source(),
                    "peft_type is " + (type.empty() ? "missing" : '"' + printable(type, 60) + '"') +
                        ", but Eckart reads adapters of peft_type \"LORA\"",
                    type.empty() ? "" : "PEFT's convert_to_lora makes a LoRA of other adapters");
}

// Part by part of a dotted name, or the whole of it.
bool ends_with_name(std::string_view module, std::string_view name) {
  if (module == name) return true;
  return module.size() > name.size() && module.ends_with(name) &&
         module[module.size() - name.size() - 1] == '.';
}

bool is_excluded(const AdapterConfig& config, std::string_view module) {
  if (!config.exclude_pattern.empty() &&
      detail::NameRegex(config.exclude_pattern).matches(module)) {
    return true;
  }
  const auto names_it = [&](const std::string& name) { return ends_with_name(module, name); };
  if (std::any_of(config.exclude_modules.begin(), config.exclude_modules.end(), names_it)) {
    return true;
  }
  return std::any_of(config.modules_to_save.begin(), config.modules_to_save.end(),
                     [&](const std::string& name) {
                       return detail::NameRegex("(^|.*\\.)" + name + "($|\\..*)").matches(module);
                     });
}

bool is_in_layers(const AdapterConfig& config, std::string_view module) {
  if (config.layers_to_transform.empty()) return true;
  std::vector<std::string> patterns = config.layers_pattern;
  if (patterns.empty()) patterns.emplace_back("[^.]*");
  for (const std::string& pattern : patterns) {
    const std::string expression = ".*\\.(?:" + pattern + ")\\.(\\d+)\\..*";
    const auto number = detail::NameRegex(expression).first_group(module);
    if (!number) continue;
    return std::any_of(config.layers_to_transform.begin(), config.layers_to_transform.end(),
                       [&](Index layer) { return std::to_string(layer) == *number; });
  }
  return false;
}

Json targets_json(const std::vector<std::string>& names, const std::string& pattern) {
  if (!pattern.empty()) return pattern;
  return names.empty() ? Json(nullptr) : Json(names);
}

Json list_json(const auto& list) { return list.empty() ? Json(nullptr) : Json(list); }

template <class Value>
Json pattern_json(const std::vector<std::pair<std::string, Value>>& entries) {
  Json object = Json::object();
  for (const auto& [key, value] : entries) object[key] = number_json(static_cast<double>(value));
  return object;
}

}  // namespace

AdapterConfig parse_adapter_config(std::string_view json_text, const std::string& source) {
  // Sizes, depth and duplicate keys are checked there; here the order of the keys counts.
  const Config config = parse_config(json_text, source);
  const Json json = parse_in_order(json_text, source);
  check_type(config);
  refuse_what_is_not_computed(json, source);
  check_numbers(json, source);

  AdapterConfig result;
  result.r = read_rank(source, "r", config.number({"r"}).value_or(static_cast<double>(result.r)));
  result.lora_alpha = config.number({"lora_alpha"}).value_or(result.lora_alpha);
  result.use_rslora = config.boolean({"use_rslora"}).value_or(false);
  result.use_dora = config.boolean({"use_dora"}).value_or(false);
  result.lora_bias = config.boolean({"lora_bias"}).value_or(false);
  result.fan_in_fan_out = config.boolean({"fan_in_fan_out"}).value_or(false);
  result.bias = config.text({"bias"}).value_or(result.bias);
  check_bias(result.bias, source);
  read_targets(config, json, "target_modules", result.target_modules, result.target_pattern);
  read_targets(config, json, "exclude_modules", result.exclude_modules, result.exclude_pattern);
  read_layers(config, json, result);
  result.modules_to_save = config.texts({"modules_to_save"});
  result.target_parameters = config.texts({"target_parameters"});
  for (const auto& [key, value] : read_pattern(config, json, "rank_pattern")) {
    const std::string what = "rank_pattern: of \"" + printable(key, 60) + "\" it";
    result.rank_pattern.emplace_back(key, read_rank(source, what, value));
  }
  result.alpha_pattern = read_pattern(config, json, "alpha_pattern");
  result.base_model = config.text({"base_model_name_or_path"}).value_or(std::string());
  result.task_type = config.text({"task_type"}).value_or(std::string());
  if (json.contains("init_lora_weights")) {
    result.init_lora_weights = json.at("init_lora_weights").dump();
  }
  for (const auto& [key, value] : json.items()) {
    if (!contains(read_fields, key)) result.others.emplace_back(key, value.dump());
  }
  check_patterns(result, source);
  return result;
}

AdapterConfig read_adapter_config(const std::filesystem::path& path) {
  static_cast<void>(load_config(path));  // says what a file is that can be no config
  const MappedFile file = open_mapped(path);
  const std::span<const std::byte> bytes = file.bytes();
  return parse_adapter_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                              printable_path(file.path()));
}

std::string to_json(const AdapterConfig& config) {
  Json json = Json::object();
  for (const auto& [key, value] : config.others) json[key] = Json::parse(value);
  json["peft_type"] = "LORA";
  json["inference_mode"] = true;
  json["r"] = config.r;
  json["lora_alpha"] = number_json(config.lora_alpha);
  json["use_rslora"] = config.use_rslora;
  json["use_dora"] = config.use_dora;
  json["lora_bias"] = config.lora_bias;
  json["fan_in_fan_out"] = config.fan_in_fan_out;
  json["bias"] = config.bias;
  json["target_modules"] = targets_json(config.target_modules, config.target_pattern);
  json["exclude_modules"] = targets_json(config.exclude_modules, config.exclude_pattern);
  json["layers_to_transform"] = list_json(config.layers_to_transform);
  json["layers_pattern"] = list_json(config.layers_pattern);
  json["modules_to_save"] = list_json(config.modules_to_save);
  json["target_parameters"] = list_json(config.target_parameters);
  json["rank_pattern"] = pattern_json(config.rank_pattern);
  json["alpha_pattern"] = pattern_json(config.alpha_pattern);
  json["base_model_name_or_path"] =
      config.base_model.empty() ? Json(nullptr) : Json(config.base_model);
  json["task_type"] = config.task_type.empty() ? Json(nullptr) : Json(config.task_type);
  json["init_lora_weights"] = Json::parse(config.init_lora_weights);
  if (!json.contains("lora_dropout")) json["lora_dropout"] = 0.0;
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  Json sorted = Json::object();
  for (const std::string& key : keys) sorted[key] = json[key];
  return sorted.dump(2, ' ', true) + '\n';
}

Index rank_of(const AdapterConfig& config, std::string_view module) {
  const auto found = detail::NamePatterns(keys_of(config.rank_pattern)).find(module);
  return found ? config.rank_pattern[*found].second : config.r;
}

double alpha_of(const AdapterConfig& config, std::string_view module) {
  const auto found = detail::NamePatterns(keys_of(config.alpha_pattern)).find(module);
  return found ? config.alpha_pattern[*found].second : config.lora_alpha;
}

double scale_of(const AdapterConfig& config, Index rank, double alpha) {
  const auto r = static_cast<double>(rank);
  return config.use_rslora ? alpha / std::sqrt(r) : alpha / r;
}

std::optional<bool> has_old_experts(const AdapterConfig& config) {
  for (const auto& [key, value] : config.others) {
    const Json version = key == "peft_version" ? Json::parse(value) : Json();
    if (!version.is_string()) continue;
    std::array<int, 3> numbers{};
    const std::string text = version.get<std::string>();
    if (std::sscanf(text.c_str(), "%d.%d.%d", &numbers[0], &numbers[1], &numbers[2]) < 2) continue;
    return numbers < std::array{0, 19, 1};
  }
  return std::nullopt;
}

void set_new_experts(AdapterConfig& config) {
  std::erase_if(config.others, [](const auto& field) { return field.first == "peft_version"; });
  config.others.emplace_back("peft_version", R"("0.19.1")");
}

bool is_target(const AdapterConfig& config, std::string_view module) {
  if (is_excluded(config, module)) return false;
  if (config.target_pattern == all_linear) return true;
  if (!config.target_pattern.empty()) {
    return detail::NameRegex(config.target_pattern).matches(module);
  }
  const std::vector<std::string>& names = config.target_modules;
  if (std::find(names.begin(), names.end(), module) != names.end()) return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return ends_with_name(module, name); }) &&
         is_in_layers(config, module);
}

std::string escaped_pattern(std::string_view name) {
  constexpr std::string_view special = "\\^$.|?*+()[]{}-#&~ \t\n\r\v\f";
  std::string pattern = "^";
  for (const char letter : name) {
    if (special.find(letter) != std::string_view::npos) pattern += '\\';
    pattern += letter;
  }
  return pattern;
}

}  // namespace eckart

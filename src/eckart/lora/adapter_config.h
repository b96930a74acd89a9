// adapter_config.json: which modules of a model have a LoRA, and how strongly it counts.
// Format: PEFT, src/peft/tuners/lora/config.py and src/peft/config.py.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/findings.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {

/// The fields that decide what an adapter does; the defaults are PEFT's. Regular expressions are read
/// with PCRE2, whose syntax holds that of Python's `re` but for rarities.
struct AdapterConfig {
  Index r = 8;
  double lora_alpha = 8;
  bool use_rslora = false;
  bool use_dora = false;
  bool lora_bias = false;
  bool fan_in_fan_out = false;
  std::string bias = "none";  // none, all, lora_only: the base's biases that were trained
  /// Exact names, or what stands behind a dot; or, where `target_pattern` is set, one regular
  /// expression for the whole name, or `all-linear`.
  std::vector<std::string> target_modules;
  std::string target_pattern;
  std::vector<std::string> exclude_modules;
  std::string exclude_pattern;
  /// Of target_modules that are suffixes: only in these layers (empty: in all), whose numbers stand
  /// behind one of `layers_pattern` (empty: behind any name).
  std::vector<Index> layers_to_transform;
  std::vector<std::string> layers_pattern;
  std::vector<std::string> modules_to_save;
  /// Parameters that are no module's weight, fused experts above all: names as target_modules.
  std::vector<std::string> target_parameters;
  /// Regular expressions to ranks and alphas; the first that fits counts.
  std::vector<std::pair<std::string, Index>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
  std::string base_model;  // base_model_name_or_path
  std::string task_type;
  std::string init_lora_weights = "true";  // JSON text
  /// Fields that Eckart carries along without reading them, as JSON text by name.
  std::vector<std::pair<std::string, std::string>> others;
};

/// Reads the text of a config; `source` names it in messages. A field that changes the delta in a way
/// that Eckart does not compute (KaSA, QALoRA, layer_replication, LoftQ, aLoRA, …) and is not at its
/// default, or one that Eckart does not know and that is neither null, false nor empty, is an error
/// that names it: it would be computed wrongly. So is a pattern that is no regular expression. Throws
/// FormatError.
AdapterConfig parse_adapter_config(std::string_view json, const std::string& source);
/// Reads an adapter_config.json. Throws as `parse_adapter_config`; FileError.
AdapterConfig read_adapter_config(const std::filesystem::path& path);

/// The file as PEFT writes it: indented by 2, keys sorted (those of the patterns stay in their order,
/// which decides), `inference_mode` true.
std::string to_json(const AdapterConfig& config);

/// Rank and alpha of one module after the patterns, and its scale: alpha / r, or alpha / sqrt(r)
/// with rslora. Throws ArgumentError for a pattern that is no regular expression.
Index rank_of(const AdapterConfig& config, std::string_view module);
double alpha_of(const AdapterConfig& config, std::string_view module);
double scale_of(const AdapterConfig& config, Index rank, double alpha);

/// Whether the adapter was saved by a PEFT before 0.19.1, which took every fused expert's matrix as
/// input x output; nothing where `peft_version` is missing or no version.
std::optional<bool> has_old_experts(const AdapterConfig& config);
/// Says that fused experts lie as PEFT 0.19.1 and later have them.
void set_new_experts(AdapterConfig& config);

/// Whether PEFT would put a LoRA on a module of this name; with `all-linear`, which depends on what
/// the module is, on every one that is not excluded. Throws as `rank_of`.
bool is_target(const AdapterConfig& config, std::string_view module);

/// `name` with every letter escaped that a regular expression would read otherwise: a key of
/// rank_pattern that fits this module alone. It begins with `^`, so that no longer name fits.
std::string escaped_pattern(std::string_view name);

}  // namespace eckart

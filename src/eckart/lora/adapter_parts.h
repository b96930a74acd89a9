// What the readers of the three namings make of an adapter's tensors. Internal.
#pragma once

#include "eckart/io/findings.h"
#include "eckart/io/safetensors.h"
#include "eckart/lora/adapter.h"
#include "eckart/lora/adapter_config.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart::detail {

struct AdapterParts {
  AdapterConfig config;
  std::vector<AdapterModule> modules;
  std::vector<SavedTensor> saved;
  Findings warnings;
};

/// `config`: none where no adapter_config.json is beside the file: alphas are then the ranks, or
/// `.alpha` tensors. Throws FormatError.
AdapterParts read_peft(const SafetensorsFile& file, const std::optional<AdapterConfig>& config);
AdapterParts read_kohya(const SafetensorsFile& file);
/// `config_path`: of the adapter_config.json, which has to be there: it holds the scale.
AdapterParts read_mlx(const SafetensorsFile& file, const std::filesystem::path& config_path);

/// The tensors of one module, by what they are called behind its name.
using ModuleTensors = std::map<std::string_view, const StoredTensor*>;
/// The tensor of that name, or nullptr.
const StoredTensor* find_tensor(const ModuleTensors& tensors, std::string_view suffix);

/// The one of `suffixes` that the name ends with, or empty.
std::string_view suffix_of(std::string_view name, const std::vector<std::string_view>& suffixes);

/// Sets rank, d_out and d_in from the factors' shapes. `a` r x …, `b` d_out x r x 1…; a module of
/// kind convolution has more than two axes. Throws FormatError when they do not go together.
void set_sizes(const SafetensorsFile& file, AdapterModule& module);

/// The number in a tensor of one element. Throws FormatError when it is none.
double number_in(const SafetensorsFile& file, const StoredTensor& tensor);

/// A module's rank and alpha as the config is to say them.
struct ModuleRank {
  std::string name;  // as AdapterModule
  AdapterKind kind = AdapterKind::linear;
  Index rank = 0;
  double alpha = 0;
};
/// Sets r and lora_alpha (the commonest pair of the largest rank), both patterns for all other
/// modules, target_modules and target_parameters with full names. Where experts have matrices of
/// their own, r and lora_alpha are theirs and their router's (`gate`): PEFT stacks them by the
/// config's, whatever patterns say.
void describe_modules(AdapterConfig& config, const std::vector<ModuleRank>& modules);
/// The ranks and alphas of open modules.
std::vector<ModuleRank> ranks_of(const std::vector<AdapterModule>& modules);

/// `base_model.model.` and the name.
std::string peft_key(std::string_view name);
/// What stands in PEFT's file before `.lora_A.weight`, by module name. Of several parameters of one
/// module the later ones wrap the earlier, which are called `<module>.base_layer`.
std::map<std::string, std::string> peft_keys(const std::vector<ModuleRank>& modules);
/// Puts the parameters of one module in the order in which PEFT wraps them: that in which the
/// module has them, which no file says. In every model of transformers gate and up stand before
/// down; others stay in their order.
void sort_as_wrapped(std::vector<std::string>& parameters);

/// What stands before the number in a name such as `layers.0.mlp.experts.3.up_proj`, with `experts`;
/// empty for other names.
std::string_view expert_stack(std::string_view name);

/// What the length and the header of a PEFT file of these tensors take at most, by their names without
/// `base_model.model.` and shapes that are no larger.
std::uint64_t most_header_bytes(const std::vector<std::pair<std::string, Shape>>& tensors);

AdapterKind parse_kind(std::string_view name);

/// `path: tensor "x": message`.
[[noreturn]] void throw_tensor_error(const SafetensorsFile& file, const StoredTensor& tensor,
                                     const std::string& message, const std::string& hint = {});
void warn_of_tensor(Findings& warnings, const SafetensorsFile& file, const StoredTensor& tensor,
                    Finding finding);

}  // namespace eckart::detail

// What a LoRA adapter adds: see count.h.
#include "eckart/core/errors.h"
#include "eckart/model/checked.h"
#include "eckart/model/count.h"

#include <algorithm>
#include <string_view>

namespace eckart {
namespace {

std::string_view without_weight(std::string_view name) {
  constexpr std::string_view ending = ".weight";
  if (name.ends_with(ending)) name.remove_suffix(ending.size());
  return name;
}

bool is_called(const TensorSpec& spec, std::string_view target) {
  const std::string_view name = without_weight(spec.name);
  return to_string(spec.role) == target || name == target ||
         name.ends_with("." + std::string(target));
}

LoraTarget target_of(const TensorSpec& spec, Index rank) {
  LoraTarget target;
  target.name = without_weight(spec.name);
  target.role = spec.role;
  target.d_in = spec.shape.size(spec.input_first ? -2 : -1);
  target.d_out = spec.shape.size(spec.input_first ? -1 : -2);
  const Index smaller = std::min(target.d_in, target.d_out);
  if (rank > smaller) {
    throw_argument_error("lora: rank is " + std::to_string(rank) + " and " + target.name +
                             " has d_in " + std::to_string(target.d_in) + " and d_out " +
                             std::to_string(target.d_out) +
                             ", but a rank is at most the smaller of the two",
                         "a rank up to " + std::to_string(smaller) + " fits it");
  }
  const Index of_one = checked_sum({target.d_in, target.d_out}, "an adapter's parameters");
  target.n_matrices =
      checked_product({std::max<Index>(1, static_cast<Index>(spec.layers.size())), spec.n_experts},
                      "the number of adapters");
  target.parameters =
      checked_product({rank, of_one, target.n_matrices}, "the adapters' parameters");
  return target;
}

[[noreturn]] void throw_unknown_target(const std::vector<const TensorSpec*>& matrices,
                                       const std::string& target) {
  std::vector<std::string> names;
  for (const TensorSpec* spec : matrices) {
    const std::string_view name = without_weight(spec->name);
    std::string last(name.substr(name.rfind('.') + 1));
    if (std::find(names.begin(), names.end(), last) == names.end()) {
      names.push_back(std::move(last));
    }
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  throw_argument_error(
      "lora: the target is " + target + ", but no matrix of the model has that " + "name or role",
      "its matrices end in " + known);
}

}  // namespace

LoraCount count_lora(const Architecture& arch, const LoraOptions& options) {
  if (options.rank < 1) {
    throw_argument_error("lora: rank is " + std::to_string(options.rank) +
                         ", but must be at least 1");
  }
  std::vector<const TensorSpec*> matrices;
  for (const TensorSpec& spec : arch.tensors) {
    if (!spec.is_extra && spec.use == Use::per_token) matrices.push_back(&spec);
  }
  for (const std::string& target : options.targets) {
    const auto matches = [&](const TensorSpec* spec) { return is_called(*spec, target); };
    if (std::none_of(matrices.begin(), matrices.end(), matches)) {
      throw_unknown_target(matrices, target);
    }
  }
  LoraCount count;
  count.rank = options.rank;
  for (const TensorSpec* spec : matrices) {
    const auto matches = [&](const std::string& target) { return is_called(*spec, target); };
    const bool is_target = options.targets.empty() ? is_layer_matrix(*spec)
                                                   : std::any_of(options.targets.begin(),
                                                                 options.targets.end(), matches);
    if (!is_target) continue;
    count.targets.push_back(target_of(*spec, options.rank));
    count.parameters = checked_sum({count.parameters, count.targets.back().parameters},
                                   "the adapters' parameters");
  }
  const Index total = count_parameters(arch).total;
  count.share = total == 0 ? 0 : static_cast<double>(count.parameters) / static_cast<double>(total);
  count.weights_bytes = packed_bytes(count.parameters, options.dtype, "the adapters' bytes");
  count.gradient_bytes = count.weights_bytes;
  count.optimizer_bytes = checked_product({bits(options.dtype) >= 32 ? 8 : 12, count.parameters},
                                          "the adapters' optimizer bytes");
  return count;
}

}  // namespace eckart

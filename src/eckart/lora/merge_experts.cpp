#include "eckart/lora/merge_experts.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace eckart {
namespace {

// The number behind the last `layers.`.
std::optional<Index> layer_of(std::string_view name) {
  constexpr std::string_view layers = "layers.";
  const std::size_t found = name.rfind(layers);
  if (found == std::string_view::npos) return std::nullopt;
  constexpr Index largest = 1 << 20;
  Index layer = -1;
  for (std::size_t i = found + layers.size(); i < name.size() && name[i] != '.'; ++i) {
    if (name[i] < '0' || name[i] > '9' || layer > largest) return std::nullopt;
    layer = std::max<Index>(layer, 0) * 10 + (name[i] - '0');
  }
  return layer < 0 ? std::optional<Index>() : layer;
}

std::vector<Role> roles_of(std::string_view parameter) {
  if (parameter.ends_with(".experts.gate_up_proj")) return {Role::w_gate, Role::w_up};
  if (parameter.ends_with(".experts.down_proj")) return {Role::w_down};
  return {};
}

}  // namespace

ExpertTable::ExpertTable(const Architecture& architecture, const SpecMatches& matches,
                         const std::vector<Shape>& shapes) {
  for (std::size_t i = 0; i < matches.of.size(); ++i) {
    const SpecMatch& match = matches.of[i];
    if (match.spec < 0 || match.expert < 0) continue;
    const TensorSpec& spec = architecture.tensors[static_cast<std::size_t>(match.spec)];
    if (spec.is_bias || spec.component != Component::experts || shapes[i].rank() != 2) continue;
    experts_[{match.layer, spec.role}][match.expert] = {i, shapes[i]};
  }
}

FusedExperts ExpertTable::find(const std::string& parameter) const {
  const std::optional<Index> layer = layer_of(parameter);
  FusedExperts fused;
  if (!layer) return fused;
  Index n_experts = 0, rows = 0, columns = 0;
  for (const Role role : roles_of(parameter)) {
    const auto found = experts_.find({*layer, role});
    if (found == experts_.end()) return {};
    const Shape& first = found->second.begin()->second.shape;
    const auto n = static_cast<Index>(found->second.size());
    if (n_experts != 0 && (n != n_experts || first.size(1) != columns)) return {};
    n_experts = n;
    columns = first.size(1);
    for (const auto& [expert, matrix] : found->second) {
      if (!same_sizes(matrix.shape, first) || expert >= n) return {};
      fused.parts.push_back({.entry = matrix.entry, .expert = expert, .first_row = rows});
    }
    rows += first.size(0);
  }
  if (n_experts > 0) fused.shape = Shape({n_experts, rows, columns});
  return fused;
}

}  // namespace eckart

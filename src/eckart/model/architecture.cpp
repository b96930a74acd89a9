#include "eckart/model/architecture.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/checked.h"
#include "eckart/model/family_list.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace eckart {
namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, 23> role_names = {
    "token_embedding",
    "position_embedding",
    "type_embedding",
    "norm",
    "w_q",
    "w_k",
    "w_v",
    "w_qkv",
    "w_o",
    "w_q_a",
    "w_q_b",
    "w_kv_a",
    "w_kv_b",
    "sinks",
    "w_gate",
    "w_up",
    "w_gate_up",
    "w_down",
    "router",
    "w_unembed",
    "pooler",
    "head_dense",
    "classifier",
};
constexpr std::array<std::string_view, 8> component_names = {
    "embedding", "attention", "mlp", "experts", "shared_experts", "router", "norm", "head",
};

bool has_expert_in_name(const TensorSpec& spec) {
  return spec.name.find("{expert}") != std::string::npos;
}

Index n_copies(const TensorSpec& spec) {
  return std::max<Index>(1, static_cast<Index>(spec.layers.size()));
}

// Elements of all layers that one token uses, whether or not they are the tensor's own.
Index active_elements(const TensorSpec& spec) {
  const Index of_one_expert =
      has_expert_in_name(spec) ? spec.shape.count() : spec.shape.count() / spec.n_experts;
  return checked_product({of_one_expert, spec.n_active_experts, n_copies(spec)},
                         "the number of parameters of " + spec.name);
}

void replace(std::string& text, std::string_view what, Index number) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), std::to_string(number));
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> list = [] {
    std::vector<Family> sorted = family_list();
    std::sort(sorted.begin(), sorted.end(),
              [](const Family& a, const Family& b) { return a.name < b.name; });
    return sorted;
  }();
  return list;
}

const Family* find_family(std::string_view model_type) {
  for (const Family& family : families()) {
    const auto& types = family.model_types;
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return &family;
  }
  return nullptr;
}

Architecture read_architecture(const Config& config) {
  const std::string model_type = config.model_type();
  if (const Family* family = find_family(model_type)) return family->read(config);
  std::string known;
  for (const Family& family : families()) {
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  const std::string what = model_type.empty()
                               ? std::string("it has no model_type, but the family is found by it")
                               : "no family reads the model_type " + printable(model_type, 60) +
                                     ", but the tensors' table comes from the family";
  throw_argument_error(config.source() + ": " + what, "the families known are " + known);
}

Index parameters(const TensorSpec& spec) {
  if (!spec.tied_to.empty()) return 0;
  return checked_product(
      {spec.shape.count(), has_expert_in_name(spec) ? spec.n_experts : 1, n_copies(spec)},
      "the number of parameters of " + spec.name);
}

Index active_parameters(const TensorSpec& spec) {
  return spec.tied_to.empty() ? active_elements(spec) : 0;
}

Index macs_per_use(const TensorSpec& spec) {
  const bool is_product = spec.use == Use::per_token || spec.use == Use::per_sequence;
  return is_product ? active_elements(spec) : 0;
}

std::string tensor_name(const TensorSpec& spec, Index layer, Index expert) {
  std::string name = spec.name;
  replace(name, "{layer}", layer);
  replace(name, "{expert}", expert);
  return name;
}

std::string_view to_string(Role role) { return role_names[static_cast<std::size_t>(role)]; }

std::string_view to_string(Component component) {
  return component_names[static_cast<std::size_t>(component)];
}

}  // namespace eckart

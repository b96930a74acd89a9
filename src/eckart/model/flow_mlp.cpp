#include "eckart/model/flow_builder.h"

#include <optional>
#include <string>
#include <string_view>

namespace eckart::detail {
namespace {

// One of the MLPs that may stand in a layer: dense, the routed experts, the shared experts.
struct MlpKind {
  Component component;
  std::string prefix;      // of the steps' names
  std::string_view width;  // name of the inner axis
  Index d_inner = 0;
  Index n_active = 0;  // experts a token uses; 0 where there is no choice
};

Shape inner_rows(const FlowBuilder& builder, const MlpKind& kind, FlowAxis last) {
  if (kind.n_active == 0) return builder.rows({last});
  return builder.rows({{"active", kind.n_active}, last});
}

// gate, up, activation, down; nothing when the layer has no such MLP.
std::optional<Shape> one_mlp(FlowBuilder& builder, std::vector<FlowUnit>& units,
                             const MlpKind& kind, const Shape& x) {
  const auto find = [&](Role role) { return find_unit(builder, units, role, kind.component); };
  const Shape inner = inner_rows(builder, kind, {kind.width, kind.d_inner});
  std::optional<Shape> active;
  if (FlowUnit* const fused = find(Role::w_gate_up)) {
    const Shape wide = builder.linear(kind.prefix + "gate_up", *fused, x,
                                      inner_rows(builder, kind, {"gate_up", 2 * kind.d_inner}));
    active =
        builder.add(kind.prefix + "activation", "act(gate) * up, its two halves", {wide}, inner);
  } else {
    FlowUnit* const gate = find(Role::w_gate);
    if (gate != nullptr) builder.linear(kind.prefix + "gate", *gate, x, inner);
    FlowUnit* const up = find(Role::w_up);
    if (up != nullptr) builder.linear(kind.prefix + "up", *up, x, inner);
    if (gate != nullptr && up != nullptr) {
      active = builder.add(kind.prefix + "activation", "act(gate) * up", {inner, inner}, inner);
    } else if (gate != nullptr || up != nullptr) {
      active = builder.add(kind.prefix + "activation", "act(up)", {inner}, inner);
    }
  }
  FlowUnit* const down = find(Role::w_down);
  if (!active || down == nullptr) return std::nullopt;
  return builder.linear(kind.prefix + "down", *down, *active,
                        inner_rows(builder, kind, {"d_model", builder.arch().d_model}));
}

std::optional<Shape> routed_experts(FlowBuilder& builder, std::vector<FlowUnit>& units,
                                    const Shape& x) {
  const Architecture& arch = builder.arch();
  FlowUnit* const router = find_unit(builder, units, Role::router, Component::router);
  if (router == nullptr) return std::nullopt;
  const Shape scores =
      builder.linear("router", *router, x, builder.rows({{"expert", arch.n_experts}}));
  const Shape chosen = builder.add(
      "top_k", "the " + std::to_string(arch.n_active_experts) + " best experts of each token",
      {scores}, builder.rows({{"active", arch.n_active_experts}}));
  const std::optional<Shape> each = one_mlp(builder, units,
                                            {.component = Component::experts,
                                             .prefix = "expert_",
                                             .width = "d_expert",
                                             .d_inner = arch.d_expert,
                                             .n_active = arch.n_active_experts},
                                            x);
  if (!each) return std::nullopt;
  return builder.add("combine", "the experts' sum, weighed by the router", {*each, chosen},
                     builder.model_rows());
}

std::optional<Shape> shared_experts(FlowBuilder& builder, std::vector<FlowUnit>& units,
                                    const Shape& x) {
  std::optional<Shape> out = one_mlp(builder, units,
                                     {.component = Component::shared_experts,
                                      .prefix = "shared_",
                                      .width = "d_shared",
                                      .d_inner = builder.arch().d_shared_expert},
                                     x);
  FlowUnit* const gate = find_unit(builder, units, Role::router, Component::shared_experts);
  if (!out || gate == nullptr) return out;
  const Shape weight =
      builder.linear("shared_router", *gate, x, builder.rows({{"shared_expert", 1}}));
  return builder.add("shared_scale", "sigmoid(gate) * shared", {weight, *out}, *out);
}

}  // namespace

Shape mlp_steps(FlowBuilder& builder, std::vector<FlowUnit>& units, const Shape& x) {
  const std::optional<Shape> dense = one_mlp(
      builder, units,
      {.component = Component::mlp, .prefix = "", .width = "d_ff", .d_inner = builder.arch().d_ff},
      x);
  const std::optional<Shape> routed = routed_experts(builder, units, x);
  const std::optional<Shape> shared = shared_experts(builder, units, x);
  if (routed && shared) {
    return builder.add("add_shared", "routed + shared", {*routed, *shared}, *routed);
  }
  return dense ? *dense : routed ? *routed : shared ? *shared : x;
}

}  // namespace eckart::detail

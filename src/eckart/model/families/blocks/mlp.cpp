#include "eckart/model/families/blocks/mlp.h"

#include <string>

namespace eckart {
namespace {

struct Placement {
  Axis width;
  Component component = Component::mlp;
  Index n_experts = 1;
  Index n_active_experts = 1;
};

void add_gated(Table& table, const GatedMlp& options, const Placement& placement) {
  const auto add = [&](std::string_view part, Role role, Axis out, Axis in) {
    const std::string name = std::string(options.prefix) + std::string(part);
    table.linear({.name = name,
                  .role = role,
                  .out = out,
                  .in = in,
                  .bias = options.bias,
                  .component = placement.component,
                  .n_experts = placement.n_experts,
                  .n_active_experts = placement.n_active_experts});
  };
  add(options.gate, Role::w_gate, placement.width, table.d_model());
  add(options.up, Role::w_up, placement.width, table.d_model());
  add(options.down, Role::w_down, table.d_model(), placement.width);
}

}  // namespace

void gated_mlp(Table& table, const GatedMlp& options) {
  add_gated(table, options, {.width = {"d_ff", table.arch.d_ff}});
}

void routed_experts(Table& table, const GatedMlp& options) {
  add_gated(table, options,
            {.width = {"d_expert", table.arch.d_expert},
             .component = Component::experts,
             .n_experts = table.arch.n_experts,
             .n_active_experts = table.arch.n_active_experts});
}

void shared_experts(Table& table, std::string_view prefix) {
  add_gated(
      table, {.prefix = prefix},
      {.width = {"d_shared", table.arch.d_shared_expert}, .component = Component::shared_experts});
}

void router(Table& table, std::string_view name, bool bias) {
  table.linear({.name = name,
                .role = Role::router,
                .out = {"expert", table.arch.n_experts},
                .in = table.d_model(),
                .bias = bias,
                .component = Component::router});
}

void plain_mlp(Table& table, const PlainMlp& options) {
  const Axis width = {"d_ff", table.arch.d_ff};
  table.linear({.name = options.up,
                .role = Role::w_up,
                .out = width,
                .in = table.d_model(),
                .bias = true,
                .component = Component::mlp,
                .input_first = options.input_first});
  table.linear({.name = options.down,
                .role = Role::w_down,
                .out = table.d_model(),
                .in = width,
                .bias = true,
                .component = Component::mlp,
                .input_first = options.input_first});
}

void read_experts(Table& table, Config::Names names, const ExpertDefaults& defaults) {
  table.arch.n_experts = table.size_or(names, defaults.n_experts);
  table.arch.n_active_experts = table.size_or({"num_experts_per_tok"}, defaults.n_active_experts);
}

}  // namespace eckart

// Feed-forward blocks: gated, plain, and mixtures of experts.
#pragma once

#include "eckart/model/families/blocks/table.h"

#include <string_view>

namespace eckart {

/// down(act(gate x) * up x).
struct GatedMlp {
  std::string_view prefix = "mlp.";
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
  bool bias = false;
};

/// A dense MLP of inner width d_ff.
void gated_mlp(Table& table, const GatedMlp& options = {});
/// The routed experts, one MLP of width d_expert each. `{expert}` is in the prefix.
void routed_experts(Table& table, const GatedMlp& options);
/// The shared experts, stored as one MLP of width d_shared_expert.
void shared_experts(Table& table, std::string_view prefix);
/// One score an expert: `<name>.weight` of n_experts x d_model.
void router(Table& table, std::string_view name, bool bias = false);

/// down(act(up x)).
struct PlainMlp {
  std::string_view up;
  std::string_view down;
  bool input_first = false;
};

/// A dense MLP of inner width d_ff, with biases.
void plain_mlp(Table& table, const PlainMlp& options);

/// `num_experts_per_tok` and the number of experts by any of `names`.
struct ExpertDefaults {
  Index n_experts = 0;
  Index n_active_experts = 0;
};
void read_experts(Table& table, Config::Names names, const ExpertDefaults& defaults);

}  // namespace eckart

#include "eckart/model/checked.h"
#include "eckart/model/flow_builder.h"
#include "eckart/model/prose.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace eckart::detail {
namespace {

std::string short_number(double number) { return fmt::format("{:g}", number); }

// Without learned positions and without ALiBi, queries and keys are turned.
bool is_rotary(const Architecture& arch) {
  return !arch.has_alibi &&
         std::none_of(arch.tensors.begin(), arch.tensors.end(),
                      [](const TensorSpec& spec) { return spec.role == Role::position_embedding; });
}

class AttentionSteps {
 public:
  AttentionSteps(FlowBuilder& builder, std::vector<FlowUnit>& units)
      : builder_(builder), arch_(builder.arch()), units_(units) {}

  Shape run(const Shape& x) {
    q_shape_ = builder_.heads({"head", arch_.n_heads}, {"d_head", arch_.d_head});
    k_shape_ = builder_.heads(kv_head(), {"d_head", arch_.d_head});
    v_shape_ = builder_.heads(kv_head(), {v_name(), arch_.d_head_v});
    if (FlowUnit* const qkv = find(Role::w_qkv)) {
      split_fused(*qkv, x);
    } else if (arch_.latent) {
      latent_queries(x);
      latent_keys_values(x);
    } else {
      project(Role::w_q, "q", {"heads", arch_.n_heads * arch_.d_head}, x, q_shape_);
      project(Role::w_k, "k", {"kv_heads", arch_.n_kv_heads * arch_.d_head}, x, k_shape_);
      project(Role::w_v, "v", {"kv_heads", arch_.n_kv_heads * arch_.d_head_v}, x, v_shape_);
    }
    head_norm("q_norm", "q", q_shape_);
    head_norm("k_norm", "k", k_shape_);
    rotate();
    return mix(x);
  }

 private:
  FlowUnit* find(Role role) { return find_unit(builder_, units_, role, Component::attention); }

  bool is_grouped() const { return arch_.n_kv_heads != arch_.n_heads; }
  FlowAxis kv_head() const { return {is_grouped() ? "kv_head" : "head", arch_.n_kv_heads}; }
  std::string_view v_name() const { return arch_.d_head_v == arch_.d_head ? "d_head" : "d_head_v"; }

  void project(Role role, std::string_view name, FlowAxis width, const Shape& x,
               const Shape& split) {
    FlowUnit* const unit = find(role);
    if (unit == nullptr) return;
    const Shape wide = builder_.linear(name, *unit, x, builder_.rows({width}));
    split_heads(std::string(name) + ", one slice a head", wide, split);
  }

  void split_heads(std::string expression, const Shape& wide, const Shape& split) {
    builder_.add("split_heads", std::move(expression), {wide}, split);
  }

  void split_fused(FlowUnit& unit, const Shape& x) {
    const Index width = (arch_.n_heads + 2 * arch_.n_kv_heads) * arch_.d_head;
    const Shape wide = builder_.linear("qkv", unit, x, builder_.rows({{"qkv", width}}));
    split_heads("q of qkv, one slice a head", wide, q_shape_);
    split_heads("k of qkv, one slice a head", wide, k_shape_);
    split_heads("v of qkv, one slice a head", wide, v_shape_);
  }

  // The norm of a latent: the first unused norm whose axis has this name.
  Shape latent_norm(std::string_view axis, const Shape& x) {
    for (FlowUnit& unit : units_) {
      const TensorSpec& line = builder_.spec(unit);
      if (unit.is_used || line.role != Role::norm || line.shape.rank() != 1) continue;
      if (line.shape.name(0) == axis) return builder_.norm("latent_norm", unit, x);
    }
    return x;
  }

  void latent_queries(const Shape& x) {
    const FlowAxis width = {"heads", arch_.n_heads * arch_.d_head};
    FlowUnit* const down = find(Role::w_q_a);
    if (down == nullptr) return project(Role::w_q, "q", width, x, q_shape_);
    const Index rank = builder_.spec(*down).shape.size("q_rank");
    Shape latent = builder_.linear("q_down", *down, x, builder_.rows({{"q_rank", rank}}));
    latent = latent_norm("q_rank", latent);
    FlowUnit* const up = find(Role::w_q_b);
    if (up == nullptr) return;
    const Shape wide = builder_.linear("q_up", *up, latent, builder_.rows({width}));
    split_heads("q, one slice a head", wide, q_shape_);
  }

  void latent_keys_values(const Shape& x) {
    const Index rank = arch_.latent->kv_rank;
    const Index d_rope = arch_.latent->d_rope;
    FlowUnit* const down = find(Role::w_kv_a);
    if (down == nullptr) return;
    const Shape both =
        builder_.linear("kv_down", *down, x, builder_.rows({{"kv_rank_rope", rank + d_rope}}));
    Shape latent = builder_.add("split_latent", "the latent of keys and values", {both},
                                builder_.rows({{"kv_rank", rank}}));
    const Shape key = builder_.add("split_latent", "the rotary key that all heads share", {both},
                                   builder_.rows({{"d_rope", d_rope}}));
    latent = latent_norm("kv_rank", latent);
    FlowUnit* const up = find(Role::w_kv_b);
    if (up == nullptr) return;
    const Index width = arch_.n_heads * (arch_.d_head - d_rope + arch_.d_head_v);
    const Shape wide =
        builder_.linear("kv_up", *up, latent, builder_.rows({{"keys_values", width}}));
    builder_.add("split_heads", "k of keys and values, joined with the rotary key", {wide, key},
                 k_shape_);
    split_heads("v of keys and values", wide, v_shape_);
  }

  // A norm of queries or keys: one whose name says so and whose axis is not the model's.
  void head_norm(std::string_view name, std::string_view letter, const Shape& x) {
    for (FlowUnit& unit : units_) {
      const TensorSpec& line = builder_.spec(unit);
      if (unit.is_used || line.role != Role::norm || line.shape.rank() != 1) continue;
      const std::size_t module = line.name.rfind('.', line.name.rfind('.') - 1);
      const std::string_view last = std::string_view(line.name).substr(module + 1);
      if (line.shape.name(0) == "d_model" || !last.starts_with(letter)) continue;
      builder_.norm(name, unit, x);
      return;
    }
  }

  void rotate() {
    if (!is_rotary(arch_)) return;
    const std::string what =
        arch_.latent ? "the last " + std::to_string(arch_.latent->d_rope) + " of each head of "
        : arch_.d_rotary > 0 ? "the first " + std::to_string(arch_.d_rotary) + " of each head of "
                             : "";
    const std::string how = " turned by the token's position";
    builder_.add("rotary", what + "q" + how, {q_shape_}, q_shape_);
    builder_.add("rotary", what + "k" + how, {k_shape_}, k_shape_);
  }

  std::string softmax_words() const {
    std::string words = arch_.is_decoder ? "over the keys up to the token" : "over all keys";
    const auto layer = static_cast<std::size_t>(builder_.flow().layer);
    if (layer < arch_.windows.size() && arch_.windows[layer] > 0) {
      words += ", the last " + grouped_digits(arch_.windows[layer]) + " of them";
    }
    return words;
  }

  Shape mix(const Shape& x) {
    const Index batch = builder_.flow().batch;
    const Index tokens = builder_.flow().tokens;
    const FlowAxis head = {"head", arch_.n_heads};
    const auto pairs_times = [&](Index width) {
      return checked_product({batch, arch_.n_heads, tokens, tokens, width},
                             "the MACs of attention");
    };
    std::string expression = "q k^T / sqrt(d_head)";
    if (arch_.query_scale > 0) {
      expression = "q k^T / sqrt(" + short_number(arch_.query_scale) + ")";
    }
    if (arch_.attention_softcap > 0) {
      const std::string cap = short_number(arch_.attention_softcap);
      expression = cap + " tanh(" + expression + " / " + cap + ")";
    }
    if (arch_.has_alibi) expression += " - slope * distance";
    if (is_grouped()) {
      expression += ", a key for " +
                    count_of(arch_.n_heads / std::max<Index>(1, arch_.n_kv_heads), "query head");
    }
    Shape scores = builder_.add("scores", expression, {q_shape_, k_shape_},
                                builder_.heads(head, {"key", tokens}), pairs_times(arch_.d_head));
    if (FlowUnit* const sinks = find(Role::sinks)) {
      builder_.apply("softmax", "softmax " + softmax_words() + ", and one sink a head", *sinks,
                     scores, scores);
    } else {
      builder_.add("softmax", "softmax " + softmax_words(), {scores}, scores);
    }
    const Shape mixed =
        builder_.add("mix", "weights v", {scores, v_shape_},
                     builder_.heads(head, {v_name(), arch_.d_head_v}), pairs_times(arch_.d_head_v));
    const bool is_wide = arch_.d_head_v == arch_.d_head;
    const Shape merged = builder_.add(
        "merge_heads", "the heads side by side", {mixed},
        builder_.rows({{is_wide ? "heads" : "v_heads", arch_.n_heads * arch_.d_head_v}}));
    FlowUnit* const out = find(Role::w_o);
    return out == nullptr ? x : builder_.linear("o", *out, merged, builder_.model_rows());
  }

  FlowBuilder& builder_;
  const Architecture& arch_;
  std::vector<FlowUnit>& units_;
  Shape q_shape_;
  Shape k_shape_;
  Shape v_shape_;
};

}  // namespace

Shape attention_steps(FlowBuilder& builder, std::vector<FlowUnit>& units, const Shape& x) {
  return AttentionSteps(builder, units).run(x);
}

}  // namespace eckart::detail

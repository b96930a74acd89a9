#include "eckart/model/shape_flow.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/flow_builder.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/shape_words.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

using detail::FlowBuilder;
using detail::FlowUnit;

bool is_model_norm(const TensorSpec& spec) {
  return spec.role == Role::norm && spec.shape.rank() == 1 && spec.shape.name(0) == "d_model";
}

bool is_mlp(Component component) {
  return component == Component::mlp || component == Component::experts ||
         component == Component::shared_experts || component == Component::router;
}

// The norms of the residual stream, by where they stand in the table, which is in the order of
// computation.
struct LayerNorms {
  std::vector<FlowUnit*> before_attention;
  std::vector<FlowUnit*> between;
  std::vector<FlowUnit*> after_mlp;
};

LayerNorms layer_norms(const FlowBuilder& builder, std::vector<FlowUnit>& units) {
  LayerNorms norms;
  bool has_attention = false;
  bool has_mlp = false;
  for (FlowUnit& unit : units) {
    const TensorSpec& spec = builder.spec(unit);
    if (!is_model_norm(spec)) {
      has_attention = has_attention || spec.component == Component::attention;
      has_mlp = has_mlp || is_mlp(spec.component);
    } else if (has_mlp) {
      norms.after_mlp.push_back(&unit);
    } else {
      (has_attention ? norms.between : norms.before_attention).push_back(&unit);
    }
  }
  return norms;
}

Shape through(FlowBuilder& builder, const std::vector<FlowUnit*>& norms, Shape x) {
  for (FlowUnit* const norm : norms) x = builder.norm("norm", *norm, x);
  return x;
}

Shape residual(FlowBuilder& builder, std::string expression, std::vector<Shape> inputs) {
  const Shape output = builder.model_rows();
  return builder.add("residual", std::move(expression), std::move(inputs), output);
}

// Attention and MLP read the same x (GPT-NeoX, Phi).
Shape parallel_layer(FlowBuilder& builder, std::vector<FlowUnit>& units, const LayerNorms& norms,
                     const Shape& x) {
  const Shape seen = through(builder, norms.before_attention, x);
  const Shape attended = detail::attention_steps(builder, units, seen);
  const Shape other = norms.between.empty() ? seen : through(builder, norms.between, x);
  const Shape made = detail::mlp_steps(builder, units, other);
  return residual(builder, "x + attention + mlp", {x, attended, made});
}

Shape sequential_layer(FlowBuilder& builder, std::vector<FlowUnit>& units, LayerNorms norms,
                       Shape x) {
  // Between the two blocks: BERT's norm stands behind the sum; where a norm stands before
  // attention, the last one belongs to the MLP and any other to attention's output (Gemma 2).
  const bool is_post_norm = norms.before_attention.empty();
  std::vector<FlowUnit*> before_mlp;
  if (!is_post_norm && !norms.between.empty()) {
    before_mlp = {norms.between.back()};
    norms.between.pop_back();
  }
  Shape attended =
      detail::attention_steps(builder, units, through(builder, norms.before_attention, x));
  if (!is_post_norm) attended = through(builder, norms.between, attended);
  x = residual(builder, "x + attention", {x, attended});
  if (is_post_norm) x = through(builder, norms.between, x);
  Shape made = detail::mlp_steps(builder, units, through(builder, before_mlp, x));
  if (!is_post_norm) made = through(builder, norms.after_mlp, made);
  x = residual(builder, "x + mlp", {x, made});
  return is_post_norm ? through(builder, norms.after_mlp, x) : x;
}

// Products that no step above knows: shown all the same, so that no cost is lost.
void other_products(FlowBuilder& builder, std::vector<FlowUnit>& units, const Shape& x) {
  for (FlowUnit& unit : units) {
    const TensorSpec& spec = builder.spec(unit);
    if (unit.is_used || spec.use != Use::per_token || spec.shape.rank() < 2) continue;
    const Index axis = spec.input_first ? -1 : -2;
    builder.linear("linear", unit, x,
                   builder.rows({{spec.shape.name(axis), spec.shape.size(axis)}}));
  }
}

Shape input_steps(FlowBuilder& builder) {
  builder.begin(FlowStage::input);
  std::vector<FlowUnit> units = builder.outer_units(true);
  const Shape ids = builder.rows({});
  Shape x = builder.model_rows();
  for (FlowUnit& unit : units) {
    switch (builder.spec(unit).role) {
      case Role::token_embedding:
        builder.apply("embedding",
                      std::string("rows of w_embed at the tokens' numbers") +
                          (builder.arch().scales_embedding ? ", times sqrt(d_model)" : ""),
                      unit, ids, x);
        break;
      case Role::position_embedding:
        builder.apply("position_embedding", "x + the rows of the tokens' positions", unit, x, x);
        break;
      case Role::type_embedding:
        builder.apply("type_embedding", "x + the rows of the tokens' types", unit, x, x);
        break;
      case Role::norm:
        builder.norm("embedding_norm", unit, x);
        break;
      default:
        break;
    }
  }
  other_products(builder, units, x);
  return x;
}

Shape layer_steps(FlowBuilder& builder, const Shape& x) {
  builder.begin(FlowStage::layer);
  std::vector<FlowUnit> units = builder.layer_units();
  const LayerNorms norms = layer_norms(builder, units);
  const Shape out = builder.arch().is_parallel ? parallel_layer(builder, units, norms, x)
                                               : sequential_layer(builder, units, norms, x);
  other_products(builder, units, out);
  return out;
}

// What stands on the layers. `x` has a row a token; what is used once a sequence reads one of them.
class OutputSteps {
 public:
  OutputSteps(FlowBuilder& builder, const Shape& x)
      : builder_(builder), x_(x), one_(builder.sequence({"d_model", builder.arch().d_model})) {}

  void run() {
    builder_.begin(FlowStage::output);
    std::vector<FlowUnit> units = builder_.outer_units(false);
    for (FlowUnit& unit : units) step(unit);
    other_products(builder_, units, x_);
  }

 private:
  void step(FlowUnit& unit) {
    const TensorSpec& spec = builder_.spec(unit);
    if (spec.role == Role::norm) {
      x_ = builder_.norm(spec.component == Component::head ? "head_norm" : "final_norm", unit, x_);
      return;
    }
    const char* const name = name_of(spec.role);
    if (name == nullptr || spec.shape.rank() != 2) return;
    const Index axis = spec.input_first ? 1 : 0;
    const FlowAxis out = {spec.shape.name(axis), spec.shape.size(axis)};
    if (spec.use != Use::per_sequence) {
      x_ = builder_.linear(name, unit, x_, builder_.rows({out}));
      if (spec.role == Role::w_unembed) cap_logits();
      return;
    }
    if (!has_one_) {
      builder_.add("select",
                   builder_.arch().is_decoder ? "x of the last token" : "x of the first token",
                   {x_}, one_);
    }
    has_one_ = true;
    one_ = builder_.linear(name, unit, one_, builder_.sequence(out));
  }

  using FlowAxis = detail::FlowAxis;

  void cap_logits() {
    if (!(builder_.arch().logit_softcap > 0)) return;
    const std::string cap = fmt::format("{:g}", builder_.arch().logit_softcap);
    std::string& expression = builder_.flow().steps.back().expression;
    expression = cap + " tanh(" + expression + " / " + cap + ")";
  }

  static const char* name_of(Role role) {
    switch (role) {
      case Role::pooler:
        return "pooler";
      case Role::head_dense:
        return "head_dense";
      case Role::classifier:
        return "classifier";
      case Role::w_unembed:
        return "unembedding";
      default:
        return nullptr;
    }
  }

  FlowBuilder& builder_;
  Shape x_;
  Shape one_;             // of one token a sequence
  bool has_one_ = false;  // it was selected
};

void check_options(const Architecture& architecture, const FlowOptions& options) {
  if (options.batch < 1 || options.tokens < 0) {
    throw_argument_error(
        "shape_flow: batch " + std::to_string(options.batch) + " and tokens " +
        std::to_string(options.tokens) +
        ", but the batch must be at least 1 and the tokens at least 0, which means "
        "the model's context");
  }
  if (options.layer < 0 || options.layer >= architecture.n_layers) {
    throw_argument_error("shape_flow: layer " + std::to_string(options.layer) +
                         ", but the model has layers 0 to " +
                         std::to_string(architecture.n_layers - 1));
  }
}

// The file's tensor for a line of the table in a layer; the first expert's where there are many.
const LogicalTensor* find_tensor(const std::vector<LogicalTensor>& tensors,
                                 const SpecMatches& matches, std::int32_t spec, Index layer) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SpecMatch& match = matches.of[i];
    if (match.spec != spec || tensors[i].kind != TensorKind::parameter) continue;
    if (match.layer < 0 || match.layer == layer) return &tensors[i];
  }
  return nullptr;
}

// Whether a missing tensor may be missing: it shares the storage of one that the file has.
bool is_tied_elsewhere(const Architecture& architecture, const TensorSpec& spec,
                       const SpecMatches& matches) {
  if (!spec.tied_to.empty()) return true;
  return std::any_of(matches.of.begin(), matches.of.end(), [&](const SpecMatch& match) {
    return match.spec >= 0 &&
           architecture.tensors[static_cast<std::size_t>(match.spec)].tied_to == spec.name;
  });
}

}  // namespace

Flow shape_flow(const Architecture& architecture, const FlowOptions& options) {
  check_options(architecture, options);
  FlowBuilder builder(architecture, options);
  const Shape embedded = input_steps(builder);
  const Shape out = layer_steps(builder, embedded);
  OutputSteps(builder, out).run();
  return std::move(builder.flow());
}

std::optional<FlowConflict> check_flow(const Flow& flow, const Architecture& architecture,
                                       const std::vector<LogicalTensor>& tensors) {
  const SpecMatches matches = match_specs(architecture, tensors);
  const std::vector<FoundShape> found = detail::found_shapes(architecture, tensors, matches);
  for (std::size_t i = 0; i < flow.steps.size(); ++i) {
    for (const std::int32_t position : flow.steps[i].specs) {
      const TensorSpec& spec = architecture.tensors[static_cast<std::size_t>(position)];
      const LogicalTensor* const tensor = find_tensor(tensors, matches, position, flow.layer);
      if (tensor == nullptr && is_tied_elsewhere(architecture, spec, matches)) continue;
      if (tensor != nullptr && detail::has_shape_of(*tensor, spec)) continue;
      FlowConflict conflict = {i, tensor_name(spec, flow.layer, 0), spec.shape, {}, {}, {}};
      if (tensor == nullptr) {
        conflict.message = conflict.tensor + " is not in the file, but config.json implies " +
                           to_string(spec.shape);
        return conflict;
      }
      detail::ShapeWords words = detail::shape_words(architecture, *tensor, spec, found);
      conflict.tensor = tensor->name;
      conflict.found = tensor->shape;
      conflict.message = printable(tensor->name) + " is " + words.found +
                         " in the file, but config.json implies " + words.expected;
      conflict.hint = std::move(words.hint);
      return conflict;
    }
  }
  return std::nullopt;
}

std::string_view to_string(FlowStage stage) {
  switch (stage) {
    case FlowStage::input:
      return "input";
    case FlowStage::layer:
      return "layer";
    case FlowStage::output:
      return "output";
  }
  return "";
}

}  // namespace eckart

#include "eckart/model/flow_builder.h"

#include "eckart/model/checked.h"
#include "eckart/model/count.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eckart::detail {
namespace {

Shape shape_of(const std::vector<FlowAxis>& axes) {
  std::vector<Index> sizes;
  std::vector<std::string> names;
  for (const FlowAxis& axis : axes) {
    sizes.push_back(axis.size);
    names.emplace_back(axis.name);
  }
  return Shape(std::move(sizes), std::move(names));
}

Index unit_parameters(const TensorSpec& spec) {
  const Index n_layers = std::max<Index>(1, static_cast<Index>(spec.layers.size()));
  return parameters(spec) / n_layers;
}

// The word for a matrix in an expression: `w_q`; a tied unembedding is the embedding.
std::string matrix_word(const TensorSpec& spec) {
  if (spec.role == Role::w_unembed) return spec.tied_to.empty() ? "w_unembed" : "w_embed";
  const std::string role(to_string(spec.role));
  return role.starts_with("w_") ? role : "w_" + role;
}

}  // namespace

FlowBuilder::FlowBuilder(const Architecture& architecture, const FlowOptions& options)
    : arch_(architecture) {
  flow_.batch = options.batch;
  flow_.tokens = options.tokens == 0 ? std::max<Index>(1, arch_.context) : options.tokens;
  flow_.layer = options.layer;
  const Dtype dtype = activation_dtype(arch_);
  flow_.dtype = std::string(to_string(dtype));
  bits_ = bits(dtype);
}

std::size_t FlowBuilder::first_layered() const {
  const auto first = std::find_if(arch_.tensors.begin(), arch_.tensors.end(),
                                  [](const TensorSpec& spec) { return !spec.layers.empty(); });
  return static_cast<std::size_t>(first - arch_.tensors.begin());
}

std::vector<FlowUnit> FlowBuilder::units_where(bool in_layer, std::size_t begin,
                                               std::size_t end) const {
  std::vector<FlowUnit> units;
  for (std::size_t i = begin; i < end; ++i) {
    const TensorSpec& line = arch_.tensors[i];
    const bool is_here =
        in_layer ? std::binary_search(line.layers.begin(), line.layers.end(), flow_.layer)
                 : line.layers.empty();
    if (line.is_extra || !is_here) continue;
    const auto position = static_cast<std::int32_t>(i);
    if (line.is_bias && !units.empty() && spec(units.back()).role == line.role) {
      units.back().biases.push_back(position);
    } else {
      units.push_back({position, {}, false});
    }
  }
  return units;
}

std::vector<FlowUnit> FlowBuilder::layer_units() const {
  return units_where(true, 0, arch_.tensors.size());
}

std::vector<FlowUnit> FlowBuilder::outer_units(bool before_layers) const {
  const std::size_t first = first_layered();
  return before_layers ? units_where(false, 0, first)
                       : units_where(false, first, arch_.tensors.size());
}

Shape FlowBuilder::rows(std::initializer_list<FlowAxis> behind) const {
  std::vector<FlowAxis> axes = {{"batch", flow_.batch}, {"token", flow_.tokens}};
  axes.insert(axes.end(), behind);
  return shape_of(axes);
}

Shape FlowBuilder::heads(FlowAxis head, FlowAxis last) const {
  return shape_of({{"batch", flow_.batch}, head, {"token", flow_.tokens}, last});
}

Shape FlowBuilder::sequence(FlowAxis last) const {
  return shape_of({{"batch", flow_.batch}, last});
}

Shape FlowBuilder::add(std::string_view name, std::string expression, std::vector<Shape> inputs,
                       const Shape& output, Index macs) {
  FlowStep step;
  step.name = name;
  step.stage = stage_;
  step.expression = std::move(expression);
  step.inputs = std::move(inputs);
  step.output = output;
  step.macs = macs;
  step.flops = checked_product({2, macs}, "the FLOPs of " + step.name);
  step.bytes = static_cast<std::uint64_t>(
      checked_product({output.count(), bits_}, "the bytes of " + step.name) / 8);
  flow_.steps.push_back(std::move(step));
  return output;
}

void FlowBuilder::attach(FlowStep& step, FlowUnit& unit) const {
  const TensorSpec& line = spec(unit);
  unit.is_used = true;
  step.weight = line.tied_to.empty() ? tensor_name(line, flow_.layer, 0) : line.tied_to;
  step.specs.push_back(unit.weight);
  step.parameters += unit_parameters(line);
  step.inputs.push_back(line.shape);
  for (const std::int32_t bias : unit.biases) {
    step.specs.push_back(bias);
    step.parameters += unit_parameters(arch_.tensors[static_cast<std::size_t>(bias)]);
  }
}

Shape FlowBuilder::linear(std::string_view name, FlowUnit& unit, const Shape& input,
                          const Shape& output) {
  const TensorSpec& line = spec(unit);
  const Index n_layers = std::max<Index>(1, static_cast<Index>(line.layers.size()));
  const Index n_rows = line.use == Use::per_sequence
                           ? flow_.batch
                           : checked_product({flow_.batch, flow_.tokens}, "the tokens of a batch");
  const Index macs =
      checked_product({n_rows, macs_per_use(line) / n_layers}, "the MACs of " + line.name);
  const std::string expression = "x " + matrix_word(line) + (line.input_first ? "" : "^T") +
                                 (unit.biases.empty() ? "" : " + b");
  add(name, expression, {input}, output, macs);
  attach(flow_.steps.back(), unit);
  return output;
}

Shape FlowBuilder::apply(std::string_view name, std::string expression, FlowUnit& unit,
                         const Shape& input, const Shape& output) {
  add(name, std::move(expression), {input}, output);
  attach(flow_.steps.back(), unit);
  return output;
}

Shape FlowBuilder::norm(std::string_view name, FlowUnit& unit, const Shape& input) {
  // RMSNorm has no bias, LayerNorm has one.
  const char* const rms = arch_.norm_adds_one ? "x / rms(x) * (1 + w)" : "x / rms(x) * w";
  return apply(name, unit.biases.empty() ? rms : "(x - mean) / std * w + b", unit, input, input);
}

FlowUnit* find_unit(const FlowBuilder& builder, std::vector<FlowUnit>& units, Role role,
                    Component component) {
  for (FlowUnit& unit : units) {
    const TensorSpec& line = builder.spec(unit);
    if (!unit.is_used && line.role == role && line.component == component) return &unit;
  }
  return nullptr;
}

}  // namespace eckart::detail

// The steps of a shape flow while they are made. Included by the library alone.
#pragma once

#include "eckart/model/architecture.h"
#include "eckart/model/shape_flow.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// A line of the table with the biases that belong to it.
struct FlowUnit {
  std::int32_t weight = -1;
  std::vector<std::int32_t> biases;
  bool is_used = false;
};

/// An axis of an activation.
struct FlowAxis {
  std::string_view name;
  Index size = 0;
};

class FlowBuilder {
 public:
  FlowBuilder(const Architecture& architecture, const FlowOptions& options);

  const Architecture& arch() const { return arch_; }
  Flow& flow() { return flow_; }

  /// The units of the flow's layer, in the order of the table.
  std::vector<FlowUnit> layer_units() const;
  /// The units outside the layers that stand before the first layered line, or behind it.
  std::vector<FlowUnit> outer_units(bool before_layers) const;
  const TensorSpec& spec(const FlowUnit& unit) const {
    return arch_.tensors[static_cast<std::size_t>(unit.weight)];
  }

  void begin(FlowStage stage) { stage_ = stage; }
  /// batch x token x `last`, or with more axes behind.
  Shape rows(std::initializer_list<FlowAxis> behind) const;
  Shape model_rows() const { return rows({{"d_model", arch_.d_model}}); }
  /// batch x heads x token x `last`.
  Shape heads(FlowAxis head, FlowAxis last) const;
  Shape sequence(FlowAxis last) const;

  /// A step without a tensor; returns its output.
  Shape add(std::string_view name, std::string expression, std::vector<Shape> inputs,
            const Shape& output, Index macs = 0);
  /// A step that multiplies by the unit's matrix, and adds its bias; returns its output.
  Shape linear(std::string_view name, FlowUnit& unit, const Shape& input, const Shape& output);
  /// A step that uses a unit otherwise: a norm, a look-up.
  Shape apply(std::string_view name, std::string expression, FlowUnit& unit, const Shape& input,
              const Shape& output);
  Shape norm(std::string_view name, FlowUnit& unit, const Shape& input);

 private:
  std::vector<FlowUnit> units_where(bool in_layer, std::size_t begin, std::size_t end) const;
  std::size_t first_layered() const;
  void attach(FlowStep& step, FlowUnit& unit) const;

  const Architecture& arch_;
  Flow flow_;
  FlowStage stage_ = FlowStage::input;
  int bits_ = 16;
};

/// The steps of attention on `x` (after its norm); returns what w_o makes.
Shape attention_steps(FlowBuilder& builder, std::vector<FlowUnit>& units, const Shape& x);
/// The steps of the MLP, of the experts, or of both; returns what comes out.
Shape mlp_steps(FlowBuilder& builder, std::vector<FlowUnit>& units, const Shape& x);

/// The first unused unit of a role that is stored in this component; nullptr when there is none.
FlowUnit* find_unit(const FlowBuilder& builder, std::vector<FlowUnit>& units, Role role,
                    Component component);

}  // namespace eckart::detail

// What becomes of a token's numbers: every step of a forward pass with the shapes that go in and
// come out, derived from the roles in the architecture's table.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/architecture.h"
#include "eckart/model/logical_tensors.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

struct FlowOptions {
  Index batch = 1;
  Index tokens = 0;  // 0: the architecture's context
  Index layer = 0;   // which layer's steps are shown
};

enum class FlowStage { input, layer, output };

/// One step. Axes are named `batch, token, d_model`, after the split into heads
/// `batch, head, token, d_head` (`kv_head` for grouped keys and values), and `key` for the token
/// that is looked at.
struct FlowStep {
  std::string name;  // `embedding`, `norm`, `q`, `split_heads`, `rotary`, `scores`, …
  FlowStage stage = FlowStage::layer;
  std::string expression;     // in words: `x w_q^T + b`
  std::vector<Shape> inputs;  // the activation first, then the stored matrix
  Shape output;
  Index parameters = 0;     // of its tensors, all experts; 0 for a tied matrix
  Index macs = 0;           // of its products, for the whole batch; every pair of tokens counts
  Index flops = 0;          // 2 an MAC; what is no product counts none
  std::uint64_t bytes = 0;  // of the output, in the type the weights are computed in
  std::string weight;       // the stored tensor's name, empty where there is none
  /// Lines of the table that it uses: the matrix, then its biases.
  std::vector<std::int32_t> specs;
};

struct Flow {
  Index batch = 1;
  Index tokens = 1;
  Index layer = 0;
  std::string dtype;  // of the activations: `BF16`
  std::vector<FlowStep> steps;
};

/// The steps from the embedding through one layer to the head. The sum of the MACs, with the
/// layer's steps taken once for each layer, is that of the linear maps and of full-square
/// attention.
/// Throws ArgumentError when the batch is below 1 or the tokens below 0, the layer is not one of the
/// model's, or a count does not fit 63 bits; ShapeError when a shape does not.
Flow shape_flow(const Architecture& architecture, const FlowOptions& options = {});

/// Where a file contradicts the flow first.
struct FlowConflict {
  std::size_t step = 0;  // into Flow::steps
  std::string tensor;
  Shape expected;
  std::optional<Shape> found;  // nothing: the tensor is missing
  std::string message;
  std::string hint;
};
/// The first step whose stored tensor has another shape than the table says or is missing; nothing
/// when all are as expected.
std::optional<FlowConflict> check_flow(const Flow& flow, const Architecture& architecture,
                                       const std::vector<LogicalTensor>& tensors);

std::string_view to_string(FlowStage stage);

}  // namespace eckart

// Which way round a stored matrix lies: output x input, or input x output as GPT-2's Conv1D.
// Included by the library alone.
#pragma once

#include "eckart/lora/adapter.h"
#include "eckart/model/architecture.h"

#include <vector>

namespace eckart {

/// A module and the stored tensor that it changes; `spec`, where the family is known, is its line
/// of the table.
struct MatrixFit {
  const AdapterModule* module = nullptr;
  Shape shape;
  const TensorSpec* spec = nullptr;
};

class Orientation {
 public:
  explicit Orientation(const Adapter& adapter) : adapter_(adapter) {}

  /// Whether B A, or its transpose, has the tensor's sizes.
  bool fits(const MatrixFit& fit) const { return fits_straight(fit) || fits_turned(fit); }
  /// Whether the transpose is added. Sizes decide; where both would do, the table; without one,
  /// how the adapter's other modules (`all`) lie, and its `fan_in_fan_out`. Of square experts how its
  /// other experts lie, else PEFT's version and the table. Throws ArgumentError where these disagree,
  /// and of experts where nothing says.
  bool is_transposed(const MatrixFit& fit, const std::vector<MatrixFit>& all) const;

 private:
  static bool fits_straight(const MatrixFit& fit);
  static bool fits_turned(const MatrixFit& fit);
  struct Others {
    bool any_straight = false;
    bool any_turned = false;
  };
  // How modules of a kind lie whose sizes say so.
  static Others others_of(AdapterKind kind, const std::vector<MatrixFit>& all);
  bool is_expert_transposed(const MatrixFit& fit, const std::vector<MatrixFit>& all) const;

  const Adapter& adapter_;
};

}  // namespace eckart

#include "eckart/lora/merge_orientation.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <algorithm>

namespace eckart {
namespace {

// The stored matrix, of experts one; no sizes where it is none of as many experts.
struct Sizes {
  Index rows = -1;
  Index columns = -1;
};

Sizes sizes_of(const MatrixFit& fit) {
  const Shape& shape = fit.shape;
  if (fit.module->kind == AdapterKind::experts && shape.rank() == 3) {
    if (shape.size(0) != fit.module->n_experts) return {};
    return {shape.size(1), shape.size(2)};
  }
  if (shape.rank() < 2 || fit.module->n_experts != 1 || shape.size(0) == 0) return {};
  return {shape.size(0), shape.count() / shape.size(0)};
}

}  // namespace

bool Orientation::fits_straight(const MatrixFit& fit) {
  const Sizes sizes = sizes_of(fit);
  return sizes.rows == fit.module->d_out && sizes.columns == fit.module->d_in;
}

bool Orientation::fits_turned(const MatrixFit& fit) {
  const Sizes sizes = sizes_of(fit);
  const bool can_turn =
      fit.module->kind == AdapterKind::linear || fit.module->kind == AdapterKind::experts;
  return can_turn && sizes.rows == fit.module->d_in && sizes.columns == fit.module->d_out;
}

bool Orientation::is_transposed(const MatrixFit& fit, const std::vector<MatrixFit>& all) const {
  if (!fits_straight(fit) || !fits_turned(fit)) return fits_turned(fit);
  if (fit.spec != nullptr) return fit.spec->input_first;
  if (fit.module->kind == AdapterKind::experts) return false;
  const auto is_linear = [](const MatrixFit& one) {
    return one.module->kind == AdapterKind::linear;
  };
  const bool any_straight = std::any_of(all.begin(), all.end(), [&](const MatrixFit& one) {
    return is_linear(one) && fits_straight(one) && !fits_turned(one);
  });
  const bool any_turned = std::any_of(all.begin(), all.end(), [&](const MatrixFit& one) {
    return is_linear(one) && fits_turned(one) && !fits_straight(one);
  });
  if (any_straight && any_turned && !adapter_.config().fan_in_fan_out) {
    throw_argument_error(
        "merge: " + printable(fit.module->name) +
            " is square, and of the adapter's other modules some are stored "
            "input x output: nothing says how this one lies",
        "a config.json with the model_type of a known family beside the base does");
  }
  return any_turned || (adapter_.config().fan_in_fan_out && !any_straight);
}

}  // namespace eckart

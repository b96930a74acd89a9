#include "eckart/lora/merge_orientation.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <optional>
#include <string>

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

namespace {

constexpr const char* family_hint =
    "a config.json with the model_type of a known family beside the base does";

}  // namespace

bool Orientation::is_transposed(const MatrixFit& fit, const std::vector<MatrixFit>& all) const {
  if (!fits_straight(fit) || !fits_turned(fit)) return fits_turned(fit);
  if (fit.module->kind == AdapterKind::experts) return is_expert_transposed(fit, all);
  if (fit.spec != nullptr) return fit.spec->input_first;
  const auto [any_straight, any_turned] = others_of(AdapterKind::linear, all);
  if (any_straight && any_turned && !adapter_.config().fan_in_fan_out) {
    throw_argument_error("merge: " + printable(fit.module->name) +
                             " is square, and of the adapter's other modules some are stored "
                             "input x output: nothing says how this one lies",
                         family_hint);
  }
  return any_turned || (adapter_.config().fan_in_fan_out && !any_straight);
}

// PEFT before 0.19.1 had all of them input x output; later ones have them as the model does.
bool Orientation::is_expert_transposed(const MatrixFit& fit,
                                       const std::vector<MatrixFit>& all) const {
  const auto [any_straight, any_turned] = others_of(AdapterKind::experts, all);
  if (any_straight != any_turned) return any_turned;
  const bool is_peft = adapter_.naming() == AdapterNaming::peft;
  const std::optional<bool> is_old = has_old_experts(adapter_.config());
  if (is_peft && is_old.value_or(false)) return true;
  if (fit.spec != nullptr && (fit.spec->input_first || !is_peft || is_old)) {
    return fit.spec->input_first;
  }
  if (!is_peft) return false;
  const std::string who = "merge: the experts of " + printable(fit.module->name) + " are square";
  if (fit.spec != nullptr) {
    throw_argument_error(
        who +
            ", and PEFT before 0.19.1 had their factors the other way round than later ones, but "
            "adapter_config.json has no peft_version that says which it was",
        "add \"peft_version\" to it: that of the PEFT that saved the adapter");
  }
  throw_argument_error(who + ", and no other module of the adapter says how they lie", family_hint);
}

Orientation::Others Orientation::others_of(AdapterKind kind, const std::vector<MatrixFit>& all) {
  Others found;
  for (const MatrixFit& one : all) {
    if (one.module->kind != kind) continue;
    const bool is_straight = fits_straight(one), is_turned = fits_turned(one);
    found.any_straight = found.any_straight || (is_straight && !is_turned);
    found.any_turned = found.any_turned || (is_turned && !is_straight);
  }
  return found;
}

}  // namespace eckart

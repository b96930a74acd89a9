#include "eckart/linalg/reduce_plan.h"

#include "eckart/core/errors.h"

#include <cstdlib>
#include <string>
#include <utility>

namespace eckart::detail {
namespace {

// Outputs that are summed side by side: their states stay in the first cache.
constexpr Index side_by_side = 512;
// Pieces of a long reduction, at most; more would take memory for their states.
constexpr Index most_chunks = 64;

}  // namespace

void AxisGroup::append(Index size, Index stride) {
  count *= size;
  if (size == 1 && !sizes.empty()) return;
  if (!sizes.empty() && (sizes.back() == 1 || strides.back() == size * stride)) {
    sizes.back() *= size;
    strides.back() = stride;
  } else {
    sizes.push_back(size);
    strides.push_back(stride);
  }
}

ReducePlan plan_reduction(std::string_view operation, const Shape& shape,
                          const std::vector<Index>& strides, const std::vector<Axis>& axes,
                          bool keep_axes) {
  std::vector<bool> is_reduced(strides.size(), axes.empty());
  for (const Axis& axis : axes) {
    const auto at = static_cast<std::size_t>(axis.in(shape));
    if (is_reduced[at]) {
      throw_shape_error(std::string(operation) + ": x is " + to_string(shape) + ", and its axis " +
                        (shape.names().empty() || shape.names()[at].empty() ? std::to_string(at)
                                                                            : shape.names()[at]) +
                        " is listed twice, but an axis is reduced once");
    }
    is_reduced[at] = true;
  }
  ReducePlan plan;
  std::vector<Index> sizes;
  std::vector<std::string> names;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    const Index size = shape.sizes()[axis];
    (is_reduced[axis] ? plan.reduced : plan.kept).append(size, strides[axis]);
    if (is_reduced[axis] && !keep_axes) continue;
    sizes.push_back(is_reduced[axis] ? 1 : size);
    names.push_back(shape.name(static_cast<Index>(axis)));
  }
  plan.result = Shape(std::move(sizes), std::move(names));
  if (plan.reduced.sizes.empty()) plan.reduced.append(1, 1);
  if (plan.kept.sizes.empty()) plan.kept.append(1, 1);
  const Index terms = plan.reduced.count;
  plan.is_across = plan.kept.sizes.back() >= 8 &&
                   std::abs(plan.kept.strides.back()) < std::abs(plan.reduced.strides.back());
  plan.outputs_at_once = plan.is_across
                             ? std::min(side_by_side, plan.kept.sizes.back())
                             : std::max<Index>(1, piece_elements / std::max<Index>(1, terms));
  const Index least = std::max<Index>(1, piece_elements / plan.outputs_at_once);
  plan.terms_at_once = std::max(least, (terms + most_chunks - 1) / most_chunks);
  plan.n_chunks = std::max<Index>(1, (terms + plan.terms_at_once - 1) / plan.terms_at_once);
  return plan;
}

}  // namespace eckart::detail

// NumPy's broadcasting rule, guarded: two operands are never both stretched unless that is asked.
#pragma once

#include "eckart/core/shape.h"

#include <string_view>

namespace eckart {

struct BroadcastOptions {
  /// Allow both operands to be stretched: 3 with 3x1 gives the 3x3 table of all pairs.
  bool outer = false;
  /// How a message names the operation and its operands.
  std::string_view operation = "broadcast";
  std::string_view left = "a";
  std::string_view right = "b";
};

/// Shape of an elementwise operation on `a` and `b`: axes are aligned from the last, and a size of
/// 1 or a missing leading axis is stretched to the other's size. A name that one operand lacks is
/// taken from the other.
/// Throws ShapeError when sizes or names disagree, or when both operands would be stretched and
/// `outer` is false: that is how a loss of 3 predictions against a 3x1 target silently becomes a
/// 3x3 table.
Shape broadcast_shape(const Shape& a, const Shape& b, const BroadcastOptions& options = {});

}  // namespace eckart

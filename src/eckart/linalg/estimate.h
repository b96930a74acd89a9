// A figure and how far it may be off.
#pragma once

namespace eckart {

/// The exact figure lies within value +- error: with 95% confidence where it was estimated from
/// random vectors; `error` is 0 where it was computed (then it is exact up to rounding).
struct Estimate {
  double value = 0;
  double error = 0;
};

}  // namespace eckart

// When a Krylov space is large enough. Internal.
#pragma once

#include "eckart/core/shape.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace eckart {

/// Sum of the first `count` values, which descend.
inline double sum_of(const std::vector<double>& values, Index count) {
  double sum = 0;
  for (Index i = std::min(count, static_cast<Index>(values.size())); i-- > 0;) {
    sum += values[static_cast<std::size_t>(i)];  // small ones first
  }
  return sum;
}

/// Whether another step would improve the error by less than the tolerance: steps improve it about
/// geometrically, so that what is to come is the last improvement times ratio / (1 - ratio).
class KrylovProgress {
 public:
  KrylovProgress(double squared_norm, double tolerance)
      : squared_norm_(squared_norm), tolerance_(tolerance) {}

  bool has_ended(double captured) {
    const double improvement = std::max(captured - captured_, 0.0);
    const double error = std::max(squared_norm_ - captured, 0.0);
    captured_ = captured;
    if (++n_checks_ == 1) return false;
    // Of the first improvement, nothing is known; it is mostly less than half of what came before.
    const double ratio = n_checks_ == 2 || improvement_ == 0
                             ? 0.5
                             : std::clamp(improvement / improvement_, 0.2, 0.9);
    improvement_ = improvement;
    // The error is a root: half the relative change of its square.
    return improvement * ratio / (1 - ratio) <= 2 * tolerance_ * error;
  }

 private:
  double squared_norm_;
  double tolerance_;
  int n_checks_ = 0;
  double captured_ = 0;
  double improvement_ = 0;
};

}  // namespace eckart

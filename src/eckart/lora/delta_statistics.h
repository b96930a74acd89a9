// How much of a delta a dtype has kept.
#pragma once

#include "eckart/core/shape.h"

#include <cmath>

namespace eckart {

struct DeltaStatistics {
  double base_squares = 0;
  double wanted_squares = 0;  // of the delta
  double error_squares = 0;   // of what was realised of it, minus it
  Index n_wanted = 0;         // entries whose delta is not 0
  Index n_unchanged = 0;      // of them those that are what the base has

  void add(const DeltaStatistics& other);
  double delta_norm() const { return std::sqrt(wanted_squares); }
  /// ||delta|| / ||base||; 0 for a base of zeros.
  double relative_norm() const;
  /// ||realised - wanted|| / ||wanted||; 0 where nothing is wanted.
  double swallowed() const;
  /// The share of wanted entries that stayed as they were.
  double unchanged_share() const;
};

/// Of n entries: what the base has, the delta that is wanted, and what stands there now. NaN and
/// infinity in any of them make `error_squares` NaN or infinite. Sums in double, in one order.
DeltaStatistics delta_statistics(Index n, const float* base, const float* delta,
                                 const float* realised);

}  // namespace eckart

// Which rank a low-rank approximation shall have, once squared singular values are known. Internal.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/linalg/low_rank.h"

#include <vector>

namespace eckart {

/// What was asked of low_rank, in one form.
struct RankChoice {
  Index rank = 0;            // 0: by the error
  double squared_error = 0;  // largest, as a share of the squared norm
  /// The rank asked for, or the smallest whose error is small enough, given the largest squared
  /// singular values, descending, of a matrix of that squared norm. Their count + 1 when none of
  /// these ranks is enough.
  Index of(const std::vector<double>& squares, double squared_norm) const;
};

}  // namespace eckart

// Softmax at temperature 0. Internal.
#pragma once

#include "eckart/core/shape.h"

#include <cmath>
#include <limits>

namespace eckart::detail {

/// What stands where after `harden_row`.
template <class T>
struct HardValues {
  T chosen = 1;
  T other = 0;
};

/// All weight on the largest score, the first of several, in place; none where all are hidden
/// (-infinity) or the sink is larger. A NaN makes NaN of every position that is not hidden.
template <class T>
void harden_row(T* scores, Index n, T sink, HardValues<T> values) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  T most = sink;
  Index best = -1;
  bool has_nan = std::isnan(sink);
  for (Index i = 0; i < n; ++i) {
    has_nan = has_nan || std::isnan(scores[i]);
    if (scores[i] > most || (best < 0 && scores[i] == most && most != hidden)) {
      most = scores[i];
      best = i;
    }
  }
  for (Index i = 0; i < n; ++i) {
    const bool is_lost = has_nan && scores[i] != hidden;
    scores[i] = is_lost ? std::numeric_limits<T>::quiet_NaN() : values.other;
  }
  if (!has_nan && best >= 0) scores[best] = values.chosen;
}

}  // namespace eckart::detail

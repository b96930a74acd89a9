// The root of a sum of squares that neither overflows nor underflows.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace eckart::detail {

/// The larger of two magnitudes; a NaN is larger than any.
inline double larger(double a, double b) { return a > b || std::isnan(a) ? a : b; }

/// `sum_of_squares(scale)` gives the sum of (scale x)^2, `largest()` the largest |x|. Squares of
/// floats are all in the range of double, so that one pass is enough; of doubles only a sum between
/// 2^-900 and infinity is sure to have lost nothing: a square that underflowed is below 2^-1022, and
/// 2^60 of them are less than 2^-62 of that sum.
template <class T, class SumOfSquares, class Largest>
double safe_length(const SumOfSquares& sum_of_squares, const Largest& largest) {
  const double sum = sum_of_squares(1.0);
  if (std::isnan(sum)) return sum;
  if (std::is_same_v<T, float> || (sum >= 0x1p-900 && std::isfinite(sum))) return std::sqrt(sum);
  const double most = largest();
  if (most == 0 || !std::isfinite(most)) return most;
  // A power of two, so that scaling rounds nothing that matters; for a subnormal the scale would be
  // beyond double, and 2^1000 brings it far enough up.
  const int exponent = std::max(std::ilogb(most), -1000);
  return std::ldexp(std::sqrt(sum_of_squares(std::ldexp(1.0, -exponent))), exponent);
}

}  // namespace eckart::detail

// Numbers to the patterns of bf16 and back, one at a time. Internal.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace eckart::detail {

/// The nearest bf16, ties to even; what is too large becomes infinity, NaN stays NaN.
inline std::uint16_t to_bf16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (std::isnan(number)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// The same of a double, rounded once: on the way to float, what is lost leaves an odd last place,
/// which no tie of the second rounding has.
inline std::uint16_t to_bf16(double number) {
  const float near = static_cast<float>(number);
  if (static_cast<double>(near) == number || std::isnan(number) || std::isinf(near)) {
    return to_bf16(near);
  }
  auto bits = std::bit_cast<std::uint32_t>(near);
  if (std::abs(static_cast<double>(near)) > std::abs(number)) --bits;
  return to_bf16(std::bit_cast<float>(bits | 1));
}

inline float from_bf16(std::uint16_t pattern) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(pattern) << 16);
}

}  // namespace eckart::detail

// One pass over stored values: which are not numbers, and is anything there at all.
#pragma once

#include "eckart/io/dtype.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace eckart {

/// Special values of a tensor. Positions are in elements, in storage order.
struct ValueScan {
  std::uint64_t n_values = 0;
  std::uint64_t n_nan = 0;
  std::uint64_t n_infinite = 0;
  std::optional<std::uint64_t> first_nan;
  std::optional<std::uint64_t> first_infinite;
  /// Every element is zero (either sign), and there is at least one.
  bool all_zero = false;
};

/// Scans `bytes` as little-endian elements of `dtype`; integers and packed formats (F4, F6) are
/// looked at for all-zero only. Runs on several threads, at the speed of memory.
/// Throws ArgumentError when `bytes` is no whole number of elements.
ValueScan scan_values(Dtype dtype, std::span<const std::byte> bytes);

}  // namespace eckart

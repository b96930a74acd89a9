// One pass over stored values: which are not numbers, and is anything there at all.
#pragma once

#include "eckart/io/dtype.h"
#include "eckart/io/mapped_file.h"

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

/// Scans `bytes` as little-endian elements of `dtype`. Integers, BOOL and packed formats (F4, F6)
/// are looked at for all-zero only, F6 for positive zero. A C64 is NaN when one of its parts is,
/// and else infinite when one of its parts is. F8_E8M0 has no zero. Runs on several threads, at the
/// speed of memory; the result is the same for every number of threads.
/// Throws ArgumentError when `bytes` is no whole number of elements.
ValueScan scan_values(Dtype dtype, std::span<const std::byte> bytes);

/// The same for the bytes [begin, end) of a file. Each piece is read ahead, scanned and given back,
/// so that the pass takes no page faults and holds a few MiB a thread, however large the file.
/// Throws ArgumentError too when the range is not inside the file.
ValueScan scan_file_values(const MappedFile& file, Dtype dtype, std::uint64_t begin,
                           std::uint64_t end);

}  // namespace eckart

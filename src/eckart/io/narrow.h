// From float to the numbers that files store: one rounding, to the nearest, ties to even.
#pragma once

#include "eckart/io/dtype.h"

#include <cstddef>
#include <span>

namespace eckart {

/// True for the dtypes that `narrow` makes: F32 F16 BF16 F8_E4M3 F8_E5M2.
bool is_narrowable(Dtype dtype);

/// Rounds `values` to little-endian elements at `out`, which needs no alignment. Subnormal numbers
/// are kept. What is beyond the largest number becomes infinity (of F8_E4M3, which has none, NaN),
/// NaN stays NaN with its sign. SIMD chosen at run time, the same bits with every instruction set;
/// several threads when it is long. Throws ArgumentError when `out` is not exactly the elements'
/// size or the dtype is not one of these.
void narrow(Dtype dtype, std::span<const float> values, std::span<std::byte> out);

}  // namespace eckart

// The formats that floats are rounded to with vector instructions.
#pragma once

#include "eckart/io/dtype.h"

#include <cstdint>
#include <span>

namespace eckart {

/// Rounds to F16, BF16, F8_E4M3 or F8_E5M2 at `out`, which needs no alignment, and leaves `out`
/// alone for any other dtype.
void narrow_simd(Dtype dtype, std::span<const float> values, std::uint8_t* out);

}  // namespace eckart

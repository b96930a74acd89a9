// From stored numbers to float and double, exactly: every stored value has a float of that value.
#pragma once

#include "eckart/io/dtype.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace eckart {

/// True for the dtypes that `widen` takes: F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ
/// F8_E5M2FNUZ, all integers and BOOL.
bool is_widenable(Dtype dtype);

/// Converts `out.size()` little-endian elements at `bytes`, which need no alignment, to T (float or
/// double). Floats of at most 32 bits are exact, NaN stays NaN with its sign; F64 to float and wide
/// integers round to nearest even. SIMD chosen at run time; several threads when it is long.
/// Throws ArgumentError when `bytes` is not exactly the elements' size or the dtype has no
/// widening.
template <class T>
void widen(Dtype dtype, std::span<const std::byte> bytes, std::span<T> out);

/// One element, by table-free bit arithmetic: the reference that the SIMD code is tested against.
float f16_to_float(std::uint16_t bits);
float bf16_to_float(std::uint16_t bits);
float f8_e4m3_to_float(std::uint8_t bits);
float f8_e5m2_to_float(std::uint8_t bits);

}  // namespace eckart

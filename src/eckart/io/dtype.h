// The number formats that files store. Eckart computes in float and double; everything else exists
// here alone and is widened when read (see widen.h).
#pragma once

#include "eckart/core/shape.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace eckart {

/// Every dtype that a safetensors header may name, in the order in which the reference writer sorts
/// them (so that a file written again is the same to the byte).
enum class Dtype : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};
inline constexpr int n_dtypes = 22;

/// The name in a safetensors header: `F32`, `BF16`, `F8_E4M3`, `BOOL`, …
std::string_view to_string(Dtype dtype);
/// The dtype of exactly that name, or nothing.
std::optional<Dtype> parse_dtype(std::string_view name);
/// Bits of one element; F4 and F6 elements are packed.
int bits(Dtype dtype);
/// True for F64 F32 F16 BF16 and every F8, F6 and F4.
bool is_floating(Dtype dtype);
/// Bytes that `count` elements take, or nothing when that overflows or is no whole number of bytes.
std::optional<std::uint64_t> stored_bytes(Dtype dtype, Index count);

}  // namespace eckart

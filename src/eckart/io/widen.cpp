#include "eckart/io/widen.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/widen_simd.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>

namespace eckart {
namespace {

static_assert(std::endian::native == std::endian::little, "stored numbers are little-endian");

// Elements of one piece of a parallel conversion: 1 MiB of floats, long against the hand-over.
constexpr Index grain = 1 << 18;

// From this size of the output on, streaming stores pay: measured, 64 MiB of BF16 widen at 43 GB/s
// with them and 28 without, and reading the result afterwards is no slower, whereas 4 MiB widen at
// 21 and 41. A large last-level cache moves the point little, and a virtual machine can't tell how
// much of it is its own.
constexpr std::size_t streaming_bytes = 32 << 20;

template <class Stored, class T>
void convert(const std::uint8_t* in, std::size_t n, T* out) {
  for (std::size_t i = 0; i < n; ++i) {
    Stored stored;
    std::memcpy(&stored, in + i * sizeof(Stored), sizeof(Stored));
    out[i] = static_cast<T>(stored);
  }
}

template <class T>
void convert_booleans(const std::uint8_t* in, std::size_t n, T* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = in[i] == 0 ? T{0} : T{1};
}

template <class T>
void widen_piece(const StoredRun& in, T* out, bool stream) {
  switch (in.dtype) {
    case Dtype::boolean:
      return convert_booleans(in.bytes, in.n, out);
    case Dtype::u8:
      return convert<std::uint8_t>(in.bytes, in.n, out);
    case Dtype::i8:
      return convert<std::int8_t>(in.bytes, in.n, out);
    case Dtype::u16:
      return convert<std::uint16_t>(in.bytes, in.n, out);
    case Dtype::i16:
      return convert<std::int16_t>(in.bytes, in.n, out);
    case Dtype::u32:
      return convert<std::uint32_t>(in.bytes, in.n, out);
    case Dtype::i32:
      return convert<std::int32_t>(in.bytes, in.n, out);
    case Dtype::u64:
      return convert<std::uint64_t>(in.bytes, in.n, out);
    case Dtype::i64:
      return convert<std::int64_t>(in.bytes, in.n, out);
    case Dtype::f64:
      return convert<double>(in.bytes, in.n, out);
    default:
      return widen_simd(in, out, stream);
  }
}

// A finite small float of this many `mantissa` bits and this `bias`; `bits` has its sign at
// `sign_bit`. The arithmetic is that of the vectors in widen_simd.cpp.
float small_to_float(std::uint32_t bits, std::uint32_t sign_bit, int mantissa, int bias) {
  const std::uint32_t magnitude = bits & (sign_bit - 1);
  const auto from_bits = [](std::uint32_t exponent) {
    return std::bit_cast<float>(exponent << 23);
  };
  const float value = magnitude < 1u << mantissa
                          ? static_cast<float>(magnitude) *
                                from_bits(static_cast<std::uint32_t>(128 - bias - mantissa))
                          : std::bit_cast<float>((magnitude << (23 - mantissa)) +
                                                 (static_cast<std::uint32_t>(127 - bias) << 23));
  return (bits & sign_bit) == 0 ? value : -value;
}

// Infinity, or a quiet NaN where a bit of the mantissa is set.
float special_to_float(std::uint32_t mantissa_bits, bool negative) {
  const std::uint32_t kind = mantissa_bits == 0 ? 0x7f800000 : 0x7fc00000;
  return std::bit_cast<float>((negative ? 0x80000000 : 0) | kind | mantissa_bits);
}

}  // namespace

bool is_widenable(Dtype dtype) {
  switch (dtype) {
    case Dtype::f4:
    case Dtype::f6_e2m3:
    case Dtype::f6_e3m2:
    case Dtype::c64:
      return false;
    default:
      return true;
  }
}

template <class T>
void widen(Dtype dtype, std::span<const std::byte> bytes, std::span<T> out) {
  const std::string name(to_string(dtype));
  if (!is_widenable(dtype)) {
    throw_argument_error("widen: the elements are " + name +
                         ", but only F64 F32 F16 BF16, F8, integers and BOOL can be widened");
  }
  const std::optional<std::uint64_t> expected = stored_bytes(dtype, static_cast<Index>(out.size()));
  if (expected != bytes.size()) {
    throw_argument_error("widen: " + std::to_string(bytes.size()) + " bytes for " +
                         std::to_string(out.size()) + " elements of " + name + ", but each takes " +
                         std::to_string(bits(dtype) / 8));
  }
  const auto* const in = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::size_t element = static_cast<std::size_t>(bits(dtype)) / 8;
  const bool stream = out.size_bytes() >= streaming_bytes;
  parallel_for(static_cast<Index>(out.size()), grain, [&](Index begin, Index end) {
    const auto first = static_cast<std::size_t>(begin);
    widen_piece(StoredRun{dtype, in + first * element, static_cast<std::size_t>(end - begin)},
                out.data() + first, stream);
  });
}

template void widen<float>(Dtype, std::span<const std::byte>, std::span<float>);
template void widen<double>(Dtype, std::span<const std::byte>, std::span<double>);

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t exponent = bits & 0x7c00u;
  if (exponent == 0x7c00) return special_to_float((bits & 0x3ffu) << 13, bits > 0x7fff);
  return small_to_float(bits, 0x8000, 10, 15);
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float f8_e4m3_to_float(std::uint8_t bits) {
  if ((bits & 0x7fu) == 0x7f) return special_to_float(0x400000, bits > 0x7f);
  return small_to_float(bits, 0x80, 3, 7);
}

float f8_e5m2_to_float(std::uint8_t bits) {
  if ((bits & 0x7cu) == 0x7c) return special_to_float((bits & 3u) << 21, bits > 0x7f);
  return small_to_float(bits, 0x80, 2, 15);
}

}  // namespace eckart

// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/io/widen_simd.h"

#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/io/widen_simd.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

static_assert(std::endian::native == std::endian::little, "stored numbers are little-endian");

HWY_BEFORE_NAMESPACE();
namespace eckart::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

// What the largest exponent and the pattern of a negative zero mean.
enum class Specials {
  ieee,  // largest exponent: infinity and NaN
  fn,    // all ones: NaN; no infinity
  fnuz,  // negative zero: the one NaN; no infinity
};

// A float that is narrower than 32 bits: sign, exponent, mantissa.
struct SmallFloat {
  int bits;
  int mantissa;
  int bias;
  Specials specials;
};
constexpr SmallFloat f16{16, 10, 15, Specials::ieee};
constexpr SmallFloat f8_e5m2{8, 2, 15, Specials::ieee};
constexpr SmallFloat f8_e4m3{8, 3, 7, Specials::fn};
constexpr SmallFloat f8_e4m3fnuz{8, 3, 8, Specials::fnuz};
constexpr SmallFloat f8_e5m2fnuz{8, 2, 16, Specials::fnuz};

constexpr std::uint32_t quiet_nan = 0x7fc00000;
constexpr std::uint32_t float_infinity = 0x7f800000;
constexpr std::uint32_t float_sign = 0x80000000;

// The next words at `bytes`, which need no alignment, each in a 32-bit lane.
template <class Word, class D>
hn::VFromD<hn::RebindToUnsigned<D>> load_words(D, const std::uint8_t* bytes) {
  const hn::RebindToUnsigned<D> d32;
  const hn::Rebind<Word, D> d_word;
#if HWY_TARGET == HWY_SCALAR
  Word word;
  std::memcpy(&word, bytes, sizeof(Word));
  const auto words = hn::Set(d_word, word);
#else
  const hn::Repartition<std::uint8_t, decltype(d_word)> d_byte;
  const auto words = hn::BitCast(d_word, hn::LoadU(d_byte, bytes));
#endif
  if constexpr (sizeof(Word) == 4) {
    return words;
  } else {
    return hn::PromoteTo(d32, words);
  }
}

// Bits of the float of each small float. Small subnormals are integers times a power of two, which
// is computed from the integer so that nothing ever is a subnormal float: that would be lost where
// the thread flushes subnormals to zero.
template <SmallFloat format, class D>
hn::VFromD<hn::RebindToUnsigned<D>> widened(D d, hn::VFromD<hn::RebindToUnsigned<D>> x) {
  const hn::RebindToUnsigned<D> d32;
  const hn::RebindToSigned<D> d_int;
  constexpr std::uint32_t stored_sign = 1u << (format.bits - 1);
  constexpr int to_mantissa = 23 - format.mantissa;
  constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - format.bias) << 23;
  constexpr std::uint32_t first_normal = 1u << format.mantissa;
  constexpr std::uint32_t largest_exponent = (stored_sign - 1) & ~(first_normal - 1);
  constexpr std::uint32_t smallest_bits =
      static_cast<std::uint32_t>(127 + 1 - format.bias - format.mantissa) << 23;

  const auto sign = hn::ShiftLeft<32 - format.bits>(hn::And(x, hn::Set(d32, stored_sign)));
  const auto magnitude = hn::And(x, hn::Set(d32, stored_sign - 1));
  const auto normal = hn::Add(hn::ShiftLeft<to_mantissa>(magnitude), hn::Set(d32, rebias));
  const auto smallest = hn::BitCast(d, hn::Set(d32, smallest_bits));
  const auto subnormal =
      hn::BitCast(d32, hn::Mul(hn::ConvertTo(d, hn::BitCast(d_int, magnitude)), smallest));
  const auto is_subnormal = hn::Lt(hn::BitCast(d_int, magnitude),
                                   hn::Set(d_int, static_cast<std::int32_t>(first_normal)));
  auto result = hn::IfThenElse(hn::RebindMask(d32, is_subnormal), subnormal, normal);
  if constexpr (format.specials == Specials::ieee) {
    // A NaN becomes quiet, as the instruction for F16 makes it: the same bits on every machine.
    const auto beyond = [&](std::uint32_t limit) HWY_ATTR {
      const auto mask =
          hn::Gt(hn::BitCast(d_int, magnitude), hn::Set(d_int, static_cast<std::int32_t>(limit)));
      return hn::RebindMask(d32, mask);
    };
    const auto special =
        hn::Or(normal, hn::IfThenElse(beyond(largest_exponent), hn::Set(d32, quiet_nan),
                                      hn::Set(d32, float_infinity)));
    result = hn::IfThenElse(beyond(largest_exponent - 1), special, result);
  } else {
    const std::uint32_t nan = format.specials == Specials::fn ? stored_sign - 1 : stored_sign;
    const auto compared = format.specials == Specials::fn ? magnitude : x;
    result = hn::IfThenElse(hn::Eq(compared, hn::Set(d32, nan)), hn::Set(d32, quiet_nan), result);
  }
  return hn::Or(result, sign);
}

// Each format says how many bytes an element takes and loads the bits of as many floats as `D` has
// lanes.
struct FromF32 {
  static constexpr std::size_t bytes = 4;
  template <class D>
  static auto load(D d, const std::uint8_t* in) {
    return load_words<std::uint32_t>(d, in);
  }
};

struct FromBf16 {
  static constexpr std::size_t bytes = 2;
  template <class D>
  static auto load(D d, const std::uint8_t* in) {
    return hn::ShiftLeft<16>(load_words<std::uint16_t>(d, in));
  }
};

template <SmallFloat format>
struct FromSmall {
  static constexpr std::size_t bytes = format.bits / 8;
  template <class D>
  static auto load(D d, const std::uint8_t* in) {
    if constexpr (format.bits == 8) {
      return widened<format>(d, load_words<std::uint8_t>(d, in));
    } else {
      return widened<format>(d, load_words<std::uint16_t>(d, in));
    }
  }
};

// The instruction for F16 ignores the flushing of subnormals. It is used only where it exists:
// Highway's replacement for older sets makes large numbers of infinity and NaN.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
template <class D>
hn::VFromD<D> from_halves(D d, hn::VFromD<hn::Rebind<std::uint16_t, D>> halves) {
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halves));
}

struct FromF16 {
  static constexpr std::size_t bytes = 2;
  template <class D>
  static auto load(D d, const std::uint8_t* in) {
    const hn::Rebind<std::uint16_t, D> d16;
    const auto halves =
        hn::BitCast(d16, hn::LoadU(hn::Repartition<std::uint8_t, decltype(d16)>(), in));
    return hn::BitCast(hn::RebindToUnsigned<D>(), from_halves(d, halves));
  }
};

// The upper byte of an F16.
struct FromF8E5m2 {
  static constexpr std::size_t bytes = 1;
  template <class D>
  static auto load(D d, const std::uint8_t* in) {
    const hn::Rebind<std::uint16_t, D> d16;
    const auto stored = hn::PromoteTo(d16, hn::LoadU(hn::Rebind<std::uint8_t, D>(), in));
    return hn::BitCast(hn::RebindToUnsigned<D>(), from_halves(d, hn::ShiftLeft<8>(stored)));
  }
};

// One bit lower it is an F16 whose exponent means 2^-8 as much; its NaN would be 480.
struct FromF8E4m3 {
  static constexpr std::size_t bytes = 1;
  template <class D>
  static auto load(D d, const std::uint8_t* in) {
    const hn::RebindToUnsigned<D> d32;
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToSigned<decltype(d16)> d_int;
    const auto stored = hn::PromoteTo(d16, hn::LoadU(hn::Rebind<std::uint8_t, D>(), in));
    // The shift to the right copies the sign, of which the copy is cleared.
    const auto shifted = hn::ShiftRight<1>(hn::BitCast(d_int, hn::ShiftLeft<8>(stored)));
    const auto halves = hn::And(hn::BitCast(d16, shifted), hn::Set(d16, std::uint16_t{0xbfff}));
    const auto value = hn::Mul(from_halves(d, halves), hn::Set(d, 256.0f));
    const auto nan = hn::CopySign(hn::BitCast(d, hn::Set(d32, quiet_nan)), value);
    const auto is_nan = hn::Eq(hn::Abs(value), hn::Set(d, 480.0f));
    return hn::BitCast(d32, hn::IfThenElse(is_nan, nan, value));
  }
};
#else
using FromF16 = FromSmall<f16>;
using FromF8E5m2 = FromSmall<f8_e5m2>;
using FromF8E4m3 = FromSmall<f8_e4m3>;
#endif

// A power of two: 2^(x - 127), with 255 for NaN. 2^-127 is a subnormal float.
struct FromF8E8m0 {
  static constexpr std::size_t bytes = 1;
  template <class D>
  static auto load(D d, const std::uint8_t* in) {
    const hn::RebindToUnsigned<D> d32;
    const auto x = load_words<std::uint8_t>(d, in);
    const auto not_lowest = hn::IfThenElse(hn::Eq(x, hn::Set(d32, 255u)), hn::Set(d32, quiet_nan),
                                           hn::ShiftLeft<23>(x));
    return hn::IfThenElse(hn::Eq(x, hn::Zero(d32)), hn::Set(d32, 0x00400000u), not_lowest);
  }
};

template <class Format>
struct Result {
  // A tag and the vector of results for the lanes of the output type.
  static auto of(hn::ScalableTag<float> d, const std::uint8_t* in) {
    return hn::BitCast(d, Format::load(d, in));
  }
  // A subnormal float is taken apart as an integer, because the conversion may flush it to zero.
  static auto of(hn::ScalableTag<double> d, const std::uint8_t* in) {
    const hn::Rebind<float, decltype(d)> d_float;
    const hn::RebindToUnsigned<decltype(d_float)> d32;
    const hn::RebindToSigned<decltype(d_float)> d_int;
    const hn::RebindToUnsigned<decltype(d)> d64;
    const auto bits = Format::load(d_float, in);
    const auto magnitude = hn::And(bits, hn::Set(d32, float_sign - 1));
    const auto is_subnormal =
        hn::Lt(hn::BitCast(d_int, magnitude), hn::Set(d_int, std::int32_t{0x00800000}));
    // The float of a subnormal is its mantissa times 2^-149.
    const auto mantissa = hn::IfThenElseZero(hn::RebindMask(d32, is_subnormal), magnitude);
    const auto small =
        hn::Mul(hn::PromoteTo(d, hn::BitCast(d_int, mantissa)), hn::Set(d, 0x1.0p-149));
    const auto rest = hn::IfThenZeroElse(hn::RebindMask(d32, is_subnormal), magnitude);
    const auto large = hn::PromoteTo(d, hn::BitCast(d_float, rest));
    const auto sign =
        hn::ShiftLeft<32>(hn::PromoteTo(d64, hn::And(bits, hn::Set(d32, float_sign))));
    // One of the two is +0, so that their bits together are the value's.
    return hn::Or(hn::Or(small, large), hn::BitCast(d, sign));
  }
};

// Fewer elements than a vector has lanes.
template <class Format, class T>
void widen_few(const std::uint8_t* in, std::size_t n, T* out) {
  const hn::ScalableTag<T> d;
  std::uint8_t padded_in[HWY_MAX_BYTES] = {};
  T padded_out[HWY_MAX_BYTES / sizeof(T)];
  std::memcpy(padded_in, in, n * Format::bytes);
  hn::StoreU(Result<Format>::of(d, padded_in), d, padded_out);
  std::memcpy(out, padded_out, n * sizeof(T));
}

// Streaming stores pass the caches by, so that the memory is not read before it is written.
template <class Format, class T>
void widen_run(const std::uint8_t* in, std::size_t n, T* out, bool stream) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if (stream) {
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(out) % (lanes * sizeof(T));
    if (beyond != 0) i = lanes - beyond / sizeof(T);
    if (i > n) i = n;
    widen_few<Format>(in, i, out);
    for (; i + lanes <= n; i += lanes) {
      hn::Stream(Result<Format>::of(d, in + i * Format::bytes), d, out + i);
    }
    hwy::FlushStream();
  }
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(Result<Format>::of(d, in + i * Format::bytes), d, out + i);
  }
  if (i < n) widen_few<Format>(in + i * Format::bytes, n - i, out + i);
}

template <class T>
void widen_as(const StoredRun& in, T* out, bool stream) {
  switch (in.dtype) {
    case Dtype::f32:
      return widen_run<FromF32>(in.bytes, in.n, out, stream);
    case Dtype::f16:
      return widen_run<FromF16>(in.bytes, in.n, out, stream);
    case Dtype::bf16:
      return widen_run<FromBf16>(in.bytes, in.n, out, stream);
    case Dtype::f8_e4m3:
      return widen_run<FromF8E4m3>(in.bytes, in.n, out, stream);
    case Dtype::f8_e5m2:
      return widen_run<FromF8E5m2>(in.bytes, in.n, out, stream);
    case Dtype::f8_e8m0:
      return widen_run<FromF8E8m0>(in.bytes, in.n, out, stream);
    case Dtype::f8_e4m3fnuz:
      return widen_run<FromSmall<f8_e4m3fnuz>>(in.bytes, in.n, out, stream);
    case Dtype::f8_e5m2fnuz:
      return widen_run<FromSmall<f8_e5m2fnuz>>(in.bytes, in.n, out, stream);
    default:
      return;  // the caller takes these for itself
  }
}

void widen_to_float(const StoredRun& in, float* out, bool stream) { widen_as(in, out, stream); }

void widen_to_double(const StoredRun& in, double* out, bool stream) { widen_as(in, out, stream); }

}  // namespace
}  // namespace eckart::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart {
namespace {

HWY_EXPORT(widen_to_float);
HWY_EXPORT(widen_to_double);

}  // namespace

void widen_simd(const StoredRun& in, float* out, bool stream) {
  HWY_DYNAMIC_DISPATCH(widen_to_float)(in, out, stream);
}

void widen_simd(const StoredRun& in, double* out, bool stream) {
  HWY_DYNAMIC_DISPATCH(widen_to_double)(in, out, stream);
}

}  // namespace eckart
#endif  // HWY_ONCE

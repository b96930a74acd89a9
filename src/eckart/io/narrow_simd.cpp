// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/io/narrow_simd.h"

#include <bit>
#include <cstddef>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/io/narrow_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

static_assert(std::endian::native == std::endian::little, "stored numbers are little-endian");

HWY_BEFORE_NAMESPACE();
namespace eckart::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

// A float that is narrower than 32 bits. `beyond` is the pattern of what is too large, `nan` that
// of no number, both without the sign.
struct SmallFloat {
  int bits;
  int mantissa;
  int bias;
  std::uint32_t beyond;
  std::uint32_t nan;
};
constexpr SmallFloat f16{16, 10, 15, 0x7c00, 0x7e00};
constexpr SmallFloat bf16{16, 7, 127, 0x7f80, 0x7fc0};
constexpr SmallFloat f8_e5m2{8, 2, 15, 0x7c, 0x7e};
constexpr SmallFloat f8_e4m3{8, 3, 7, 0x7f, 0x7f};

constexpr std::uint32_t float_sign = 0x80000000;
constexpr std::uint32_t float_infinity = 0x7f800000;

// The patterns of the floats whose bits are `x`, each in a 32-bit lane.
template <SmallFloat format, class D>
hn::VFromD<D> narrowed(D d32, hn::VFromD<D> x) {
  const hn::RebindToFloat<D> d;
  const hn::RebindToSigned<D> d_int;
  constexpr int dropped = 23 - format.mantissa;
  constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - format.bias);
  const auto less = [&](auto a, auto b) HWY_ATTR {
    return hn::RebindMask(d32, hn::Lt(hn::BitCast(d_int, a), hn::BitCast(d_int, b)));
  };
  const auto magnitude = hn::And(x, hn::Set(d32, float_sign - 1));
  // Half of the last kept place, or a hair less where that place is even, carries into it.
  const auto is_odd = hn::And(hn::ShiftRight<dropped>(magnitude), hn::Set(d32, 1u));
  const auto half = hn::Add(is_odd, hn::Set(d32, (1u << (dropped - 1)) - 1));
  auto result = hn::Sub(hn::ShiftRight<dropped>(hn::Add(magnitude, half)),
                        hn::Set(d32, rebias << format.mantissa));
  if constexpr (rebias != 0) {
    // Added to a float whose last place is the smallest subnormal, a number is rounded to it. (BF16
    // has the exponents of float, so that its subnormals round as all others do.)
    constexpr std::uint32_t unit = (rebias + 1 + static_cast<std::uint32_t>(dropped)) << 23;
    const auto magic = hn::Set(d32, unit);
    const auto sum = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, magic));
    const auto subnormal = hn::Sub(hn::BitCast(d32, sum), magic);
    const auto is_subnormal = less(magnitude, hn::Set(d32, (rebias + 1) << 23));
    result = hn::IfThenElse(is_subnormal, subnormal, result);
  }
  const auto is_beyond = less(hn::Set(d32, format.beyond), result);
  result = hn::IfThenElse(is_beyond, hn::Set(d32, format.beyond), result);
  const auto is_nan = less(hn::Set(d32, float_infinity), magnitude);
  result = hn::IfThenElse(is_nan, hn::Set(d32, format.nan), result);
  const auto sign = hn::ShiftRight<32 - format.bits>(hn::And(x, hn::Set(d32, float_sign)));
  return hn::Or(result, sign);
}

template <SmallFloat format, class Word>
void narrow_lanes(const float* in, std::uint8_t* out) {
  const hn::ScalableTag<std::uint32_t> d32;
  const hn::ScalableTag<float> d;
  const hn::Rebind<Word, decltype(d32)> d_word;
  const auto result = narrowed<format>(d32, hn::BitCast(d32, hn::LoadU(d, in)));
  const auto words = hn::DemoteTo(d_word, hn::BitCast(hn::RebindToSigned<decltype(d32)>(), result));
#if HWY_TARGET == HWY_SCALAR
  const Word word = hn::GetLane(words);
  std::memcpy(out, &word, sizeof(Word));
#else
  const hn::Repartition<std::uint8_t, decltype(d_word)> d_byte;
  hn::StoreU(hn::BitCast(d_byte, words), d_byte, out);
#endif
}

template <SmallFloat format, class Word>
void narrow_run(const float* in, std::size_t n, std::uint8_t* out) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<std::uint32_t>());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    narrow_lanes<format, Word>(in + i, out + i * sizeof(Word));
  }
  if (i == n) return;
  float padded_in[HWY_MAX_BYTES / sizeof(float)] = {};
  std::uint8_t padded_out[HWY_MAX_BYTES];
  std::memcpy(padded_in, in + i, (n - i) * sizeof(float));
  narrow_lanes<format, Word>(padded_in, padded_out);
  std::memcpy(out + i * sizeof(Word), padded_out, (n - i) * sizeof(Word));
}

void narrow_as(Dtype dtype, const float* in, std::size_t n, std::uint8_t* out) {
  switch (dtype) {
    case Dtype::f16:
      return narrow_run<f16, std::uint16_t>(in, n, out);
    case Dtype::bf16:
      return narrow_run<bf16, std::uint16_t>(in, n, out);
    case Dtype::f8_e5m2:
      return narrow_run<f8_e5m2, std::uint8_t>(in, n, out);
    case Dtype::f8_e4m3:
      return narrow_run<f8_e4m3, std::uint8_t>(in, n, out);
    default:
      return;  // the caller takes these for itself
  }
}

}  // namespace
}  // namespace eckart::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart {
namespace {

HWY_EXPORT(narrow_as);

}  // namespace

void narrow_simd(Dtype dtype, std::span<const float> values, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(narrow_as)(dtype, values.data(), values.size(), out);
}

}  // namespace eckart
#endif  // HWY_ONCE

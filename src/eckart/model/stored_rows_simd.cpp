// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/model/stored_rows_simd.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/model/stored_rows_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

struct F32 {
  static constexpr std::size_t bytes = 4;
  static Vector load(Tag d, const std::uint8_t* at) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, one(at));
#else
    const hn::Repartition<std::uint8_t, Tag> d_byte;
    return hn::BitCast(d, hn::LoadU(d_byte, at));
#endif
  }
  static float one(const std::uint8_t* at) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
};

// The upper half of a float.
struct Bf16 {
  static constexpr std::size_t bytes = 2;
  static Vector load(Tag d, const std::uint8_t* at) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, one(at));
#else
    const hn::RebindToUnsigned<Tag> d_bits;
    const hn::Rebind<std::uint16_t, Tag> d_half;
    const hn::Repartition<std::uint8_t, decltype(d_half)> d_byte;
    const auto halves = hn::BitCast(d_half, hn::LoadU(d_byte, at));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d_bits, halves)));
#endif
  }
  static float one(const std::uint8_t* at) {
    std::uint16_t half;
    std::memcpy(&half, at, sizeof half);
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

// Four sums hide the latency of an addition, which is four cycles.
template <class Format>
float dot(const std::uint8_t* row, const float* x, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  Vector a = hn::Zero(d);
  Vector b = a;
  Vector c = a;
  Vector e = a;
  std::size_t i = 0;
  const auto load = [&](std::size_t at)
                        HWY_ATTR { return Format::load(d, row + at * Format::bytes); };
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::MulAdd(load(i), hn::LoadU(d, x + i), a);
    b = hn::MulAdd(load(i + lanes), hn::LoadU(d, x + i + lanes), b);
    c = hn::MulAdd(load(i + 2 * lanes), hn::LoadU(d, x + i + 2 * lanes), c);
    e = hn::MulAdd(load(i + 3 * lanes), hn::LoadU(d, x + i + 3 * lanes), e);
  }
  for (; i + lanes <= n; i += lanes) a = hn::MulAdd(load(i), hn::LoadU(d, x + i), a);
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < n; ++i) sum += Format::one(row + i * Format::bytes) * x[i];
  return sum;
}

template <class Format>
void add_scaled(const std::uint8_t* row, float factor, float* sum, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  const Vector f = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vector w = Format::load(d, row + i * Format::bytes);
    hn::StoreU(hn::MulAdd(w, f, hn::LoadU(d, sum + i)), d, sum + i);
  }
  for (; i < n; ++i) sum[i] += Format::one(row + i * Format::bytes) * factor;
}

float dot_of_f32(const std::uint8_t* row, const float* x, std::size_t n) {
  return dot<F32>(row, x, n);
}
float dot_of_bf16(const std::uint8_t* row, const float* x, std::size_t n) {
  return dot<Bf16>(row, x, n);
}
void add_f32(const std::uint8_t* row, float factor, float* sum, std::size_t n) {
  add_scaled<F32>(row, factor, sum, n);
}
void add_bf16(const std::uint8_t* row, float factor, float* sum, std::size_t n) {
  add_scaled<Bf16>(row, factor, sum, n);
}

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(dot_of_f32);
HWY_EXPORT(dot_of_bf16);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_bf16);

}  // namespace

float dot_f32(const std::uint8_t* row, const float* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_of_f32)(row, x, n);
}
float dot_bf16(const std::uint8_t* row, const float* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_of_bf16)(row, x, n);
}
void add_scaled_f32(const std::uint8_t* row, float factor, float* sum, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(add_f32)(row, factor, sum, n);
}
void add_scaled_bf16(const std::uint8_t* row, float factor, float* sum, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(add_bf16)(row, factor, sum, n);
}

}  // namespace eckart::detail
#endif  // HWY_ONCE

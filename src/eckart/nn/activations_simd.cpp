// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/nn/activations_simd.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/nn/activations_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;
using Narrow = hn::Rebind<float, Tag>;

Vector load(Tag d, const float* x) { return hn::PromoteTo(d, hn::LoadU(Narrow(), x)); }
Vector load(Tag d, const double* x) { return hn::LoadU(d, x); }
void store(Vector v, Tag, float* out) { hn::StoreU(hn::DemoteTo(Narrow(), v), Narrow(), out); }
void store(Vector v, Tag d, double* out) { hn::StoreU(v, d, out); }

template <std::size_t n>
Vector polynomial(Tag d, Vector x, const double (&coefficients)[n]) {
  Vector sum = hn::Set(d, coefficients[0]);
  for (std::size_t i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
  return sum;
}

// e^x for x at most 0, to 2 2^-53 where it is at least 2^-1022; 0 below.
Vector exp_of(Tag d, Vector x) {
  constexpr double least = -708.39;
  // Taylor's series, highest power first: of |r| <= ln(2) / 2 what is left out is below 5e-18.
  constexpr double taylor[] = {1.0 / 6227020800,
                               1.0 / 479001600,
                               1.0 / 39916800,
                               1.0 / 3628800,
                               1.0 / 362880,
                               1.0 / 40320,
                               1.0 / 5040,
                               1.0 / 720,
                               1.0 / 120,
                               1.0 / 24,
                               1.0 / 6,
                               0.5,
                               1.0,
                               1.0};
  // ln(2) in two parts, the first with so few bits that its product with a power of two's exponent
  // is exact.
  constexpr double ln2_high = 0x1.62e42fefap-1;
  constexpr double ln2_low = 0x1.cf79abc9e3b39p-40;
  // Added to a number it leaves the nearest integer in the lowest bits.
  const Vector rounder = hn::Set(d, 0x1.8p52);
  const Vector inside = hn::Max(x, hn::Set(d, least));
  const Vector shifted = hn::MulAdd(inside, hn::Set(d, 1.4426950408889634), rounder);
  const Vector power = hn::Sub(shifted, rounder);
  Vector r = hn::NegMulAdd(power, hn::Set(d, ln2_high), inside);
  r = hn::NegMulAdd(power, hn::Set(d, ln2_low), r);
  const hn::RebindToSigned<Tag> d_bits;
  const auto exponent =
      hn::ShiftLeft<52>(hn::Add(hn::BitCast(d_bits, shifted), hn::Set(d_bits, std::int64_t{1023})));
  const Vector result = hn::Mul(polynomial(d, r, taylor), hn::BitCast(d, exponent));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, least)), result);
}

// x at least -bound, so that an infinity times a 0 is 0.
Vector above(Tag d, Vector x, double bound) { return hn::Max(x, hn::Set(d, -bound)); }

Vector sigmoid_of(Tag d, Vector x) {
  const Vector one = hn::Set(d, 1.0);
  const Vector e = exp_of(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

struct Relu {
  Vector operator()(Tag d, Vector x) const { return hn::Max(x, hn::Zero(d)); }
};
struct ReluSquared {
  Vector operator()(Tag d, Vector x) const {
    const Vector positive = hn::Max(x, hn::Zero(d));
    return hn::Mul(positive, positive);
  }
};
struct Sigmoid {
  Vector operator()(Tag d, Vector x) const { return sigmoid_of(d, x); }
};
struct Silu {
  Vector operator()(Tag d, Vector x) const { return hn::Mul(above(d, x, 1e4), sigmoid_of(d, x)); }
};
struct QuickGelu {
  Vector operator()(Tag d, Vector x) const {
    return hn::Mul(above(d, x, 1e4), sigmoid_of(d, hn::Mul(x, hn::Set(d, 1.702))));
  }
};
struct GeluTanh {
  // (1 + tanh(u)) / 2 is sigmoid(2u), which does not cancel.
  Vector operator()(Tag d, Vector x) const {
    const Vector near = hn::Min(above(d, x, 1e4), hn::Set(d, 1e4));
    const Vector cubic = hn::MulAdd(hn::Mul(near, near), hn::Set(d, 0.044715), hn::Set(d, 1.0));
    const Vector u = hn::Mul(hn::Mul(near, cubic), hn::Set(d, 2 * 0.79788456080286536));
    return hn::Mul(above(d, x, 1e4), sigmoid_of(d, u));
  }
};
struct Tanh {
  Vector operator()(Tag d, Vector x) const {
    // Taylor's series in x^2, highest power first: where |x| < 1/4 the next term is below 1e-17.
    constexpr double taylor[] = {18888466084.0 / 194896477400625.0,
                                 -443861162.0 / 1856156927625.0,
                                 6404582.0 / 10854718875.0,
                                 -929569.0 / 638512875.0,
                                 21844.0 / 6081075.0,
                                 -1382.0 / 155925.0,
                                 62.0 / 2835.0,
                                 -17.0 / 315.0,
                                 2.0 / 15.0,
                                 -1.0 / 3.0,
                                 1.0};
    const Vector one = hn::Set(d, 1.0);
    const Vector magnitude = hn::Abs(x);
    const Vector e = exp_of(d, hn::Mul(magnitude, hn::Set(d, -2.0)));
    const Vector far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
    const Vector near = hn::Mul(x, polynomial(d, hn::Mul(x, x), taylor));
    return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.25)), near, far);
  }
};
struct Gelu {
  Vector operator()(Tag d, Vector x) const {
    // Of (1 + 2|x|) e^(x^2/2) Phi(-|x|) in (|x| - 5) / (|x| + 5), made by
    // tests/golden/nn/normal_tail.py; off by at most 1.3e-17 of 0.5.
    constexpr double tail[] = {
        1.7370737348015928e-9,  8.5275933519841044e-9,   -1.125254184243708e-9,
        -6.9559571448607496e-8, -3.2724972571704496e-8,  4.3678124540552263e-7,
        1.7201057336452568e-7,  -2.8632035093676177e-6,  5.3739707161645318e-7,
        1.9392448283206475e-5,  -2.643745869710766e-5,   -0.00010817738181343191,
        0.00042509591372423061, -0.00011869345896422193, -0.0035716954393749177,
        0.015422845668711185,   -0.039332201355199864,   0.072487826976655706,
        -0.10065743821677635,   0.10088858203453591,     -0.054008075034076547,
        -0.039647008404005636,  0.84611235472506925};
    const Vector one = hn::Set(d, 1.0);
    // Phi(-40) is 0 in double.
    const Vector z = hn::Min(hn::Abs(x), hn::Set(d, 40.0));
    // The square of z's upper half has no rounding, which the exponential would magnify.
    const hn::RebindToUnsigned<Tag> d_bits;
    const Vector high = hn::BitCast(
        d, hn::And(hn::BitCast(d_bits, z), hn::Set(d_bits, ~((std::uint64_t{1} << 27) - 1))));
    const Vector rest = hn::Mul(hn::Mul(hn::Sub(z, high), hn::Add(z, high)), hn::Set(d, -0.5));
    const Vector coarse = exp_of(d, hn::Mul(hn::Mul(high, high), hn::Set(d, -0.5)));
    // rest is at most 2^-25 z^2, 5e-5: its exponential takes four terms.
    const Vector second = hn::MulAdd(rest, hn::Set(d, 1.0 / 6), hn::Set(d, 0.5));
    const Vector fine = hn::MulAdd(hn::MulAdd(second, rest, one), rest, one);
    const Vector t = hn::Div(hn::Sub(z, hn::Set(d, 5.0)), hn::Add(z, hn::Set(d, 5.0)));
    const Vector shape = hn::Div(polynomial(d, t, tail), hn::MulAdd(z, hn::Set(d, 2.0), one));
    const Vector beyond = hn::Mul(hn::Mul(coarse, fine), shape);  // Phi(-|x|)
    const Vector share = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), beyond, hn::Sub(one, beyond));
    return hn::Mul(above(d, x, 40), share);
  }
};

// Of NaN comparisons and extremes make what the processor likes: it is put back.
template <class Function, class T>
void run(const Function& function, const T* x, T* out, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto apply = [&](const T* from, T* to) {
    const Vector v = load(d, from);
    store(hn::IfThenElse(hn::Eq(v, v), function(d, v), v), d, to);
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) apply(x + i, out + i);
  if (i == n) return;
  T rest[HWY_MAX_BYTES / sizeof(double)] = {};
  for (std::size_t k = 0; i + k < n; ++k) rest[k] = x[i + k];
  apply(rest, rest);
  for (std::size_t k = 0; i + k < n; ++k) out[i + k] = rest[k];
}

template <class T>
void activate_any(Activation activation, const T* x, T* out, std::size_t n) {
  switch (activation) {
    case Activation::relu:
      return run(Relu{}, x, out, n);
    case Activation::gelu:
      return run(Gelu{}, x, out, n);
    case Activation::gelu_tanh:
      return run(GeluTanh{}, x, out, n);
    case Activation::quick_gelu:
      return run(QuickGelu{}, x, out, n);
    case Activation::silu:
      return run(Silu{}, x, out, n);
    case Activation::relu_squared:
      return run(ReluSquared{}, x, out, n);
    case Activation::tanh:
      return run(Tanh{}, x, out, n);
    case Activation::sigmoid:
      return run(Sigmoid{}, x, out, n);
  }
}

template <class T>
double exp_sum(const T* x, std::size_t n, double shift) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  const Vector highest = hn::Set(d, shift);
  Vector sum = hn::Zero(d);
  const auto term = [&](const T* from) {
    const Vector v = load(d, from);
    return hn::IfThenElse(hn::Eq(v, v), exp_of(d, hn::Sub(v, highest)), v);
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::Add(sum, term(x + i));
  double total = hn::GetLane(hn::SumOfLanes(d, sum));
  if (i == n) return total;
  T rest[HWY_MAX_BYTES / sizeof(double)] = {};
  for (std::size_t k = 0; k < lanes; ++k) rest[k] = static_cast<T>(shift);
  for (std::size_t k = 0; i + k < n; ++k) rest[k] = x[i + k];
  double terms[HWY_MAX_BYTES / sizeof(double)];
  hn::StoreU(term(rest), d, terms);
  for (std::size_t k = 0; i + k < n; ++k) total += terms[k];
  return total;
}

void activate_float(Activation activation, const float* x, float* out, std::size_t n) {
  activate_any(activation, x, out, n);
}
void activate_double(Activation activation, const double* x, double* out, std::size_t n) {
  activate_any(activation, x, out, n);
}
double exp_sum_float(const float* x, std::size_t n, double shift) { return exp_sum(x, n, shift); }
double exp_sum_double(const double* x, std::size_t n, double shift) { return exp_sum(x, n, shift); }

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(activate_float);
HWY_EXPORT(activate_double);
HWY_EXPORT(exp_sum_float);
HWY_EXPORT(exp_sum_double);

}  // namespace

void activate_run(Activation activation, const float* x, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(activate_float)(activation, x, out, n);
}
void activate_run(Activation activation, const double* x, double* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(activate_double)(activation, x, out, n);
}
double exp_sum_run(const float* x, std::size_t n, double shift) {
  return HWY_DYNAMIC_DISPATCH(exp_sum_float)(x, n, shift);
}
double exp_sum_run(const double* x, std::size_t n, double shift) {
  return HWY_DYNAMIC_DISPATCH(exp_sum_double)(x, n, shift);
}

}  // namespace eckart::detail
#endif  // HWY_ONCE

// Exponentials and the hyperbolic tangent of vectors, for the sources that Highway includes once for
// each instruction set: included inside them, behind highway.h.
#if defined(ECKART_NN_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ECKART_NN_EXP2_INL_H_
#undef ECKART_NN_EXP2_INL_H_
#else
#define ECKART_NN_EXP2_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// (2^r - 1) / r for |r| <= 1/2, interpolated at the Chebyshev points: 1 + r times it differs from
// 2^r by 5.1e-9 (float) and 8.5e-18 (double) of itself at most, and is exact at 0.
template <class T>
struct Exp2Numbers;
template <>
struct Exp2Numbers<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa = 23;
  static constexpr Bits bias = 127;
  static constexpr float least = -126;      // below, 2^x is no normal number
  static constexpr float shift = 12582912;  // 1.5 2^23: added, it leaves the nearest integer
  static constexpr int n = 6;
  static constexpr float of[n] = {0.6931471880262287811F,   0.2402265076056812694F,
                                  0.05550357114219077819F,  0.009618082557277851491F,
                                  0.001339086336467123438F, 0.0001545316294512069018F};
  // ln 2 in two parts, the first of few digits, so that its product with an integer is exact.
  static constexpr float ln2_high = 0.693145751953125F;
  static constexpr float ln2_low = 1.42860682030941723212e-6F;
};
template <>
struct Exp2Numbers<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa = 52;
  static constexpr Bits bias = 1023;
  static constexpr double least = -1022;
  static constexpr double shift = 6755399441055744;  // 1.5 2^52
  static constexpr int n = 11;
  static constexpr double of[n] = {
      0.6931471805599453094,     0.2402265069591009822,   0.05550410866482159434,
      0.009618129107606888527,   0.001333355814641693531, 0.0001540353044173605015,
      0.00001525273382983611839, 1.321544258792168965e-6, 1.017806244584577352e-7,
      7.0725859492692237e-9,     4.454960598186518394e-10};
  static constexpr double ln2_high = 0.693147180369123816490;
  static constexpr double ln2_low = 1.90821492927058770002e-10;
};

template <class T>
constexpr double log2_e = 1.4426950408889634074;

// The integer nearest to x, and its power of two.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V nearest(D d, V x, V& power) {
  namespace hn = hwy::HWY_NAMESPACE;
  using Numbers = Exp2Numbers<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> bits;
  const V shift = hn::Set(d, Numbers::shift);
  const V shifted = hn::Add(x, shift);
  // What is above the exponent's bits falls out on the left.
  power = hn::BitCast(d, hn::Add(hn::ShiftLeft<Numbers::mantissa>(hn::BitCast(bits, shifted)),
                                 hn::Set(bits, Numbers::bias << Numbers::mantissa)));
  return hn::Sub(shifted, shift);
}

// 2^r for |r| <= 1/2.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp2_near_zero(D d, V r) {
  namespace hn = hwy::HWY_NAMESPACE;
  using Numbers = Exp2Numbers<hn::TFromD<D>>;
  V sum = hn::Set(d, Numbers::of[Numbers::n - 1]);
  for (int i = Numbers::n - 2; i >= 0; --i) sum = hn::MulAdd(sum, r, hn::Set(d, Numbers::of[i]));
  return hn::MulAdd(sum, r, hn::Set(d, hn::TFromD<D>{1}));
}

// 2^x for x <= 127 (1023), to 2 eps of itself; 0 where that is no normal number; NaN of NaN.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp2(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  V power;
  const V n = nearest(d, x, power);
  const V result = hn::Mul(exp2_near_zero(d, hn::Sub(x, n)), power);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, Exp2Numbers<hn::TFromD<D>>::least)), result);
}

// e^x for x <= 88 (709), to 4 eps of itself; 0 where that is no normal number; NaN of NaN.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  using Numbers = Exp2Numbers<T>;
  const V factor = hn::Set(d, static_cast<T>(log2_e<T>));
  const V scaled = hn::Mul(x, factor);
  V power;
  const V n = nearest(d, scaled, power);
  V r = hn::NegMulAdd(n, hn::Set(d, Numbers::ln2_high), x);
  r = hn::NegMulAdd(n, hn::Set(d, Numbers::ln2_low), r);
  const V result = hn::Mul(exp2_near_zero(d, hn::Mul(r, factor)), power);
  return hn::IfThenZeroElse(hn::Lt(scaled, hn::Set(d, Numbers::least)), result);
}

// tanh x, to 6 eps of itself. Near 0 its Taylor series, elsewhere (1 - e^-2|x|) / (1 + e^-2|x|).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  constexpr int n = sizeof(T) == 4 ? 6 : 13;
  constexpr double of[13] = {
      -0.333333333333333333,    0.133333333333333333,      -0.0539682539682539683,
      0.0218694885361552028,    -0.00886323552990219657,   0.00359212803657248102,
      -0.00145583438705131827,  0.000590027440945585981,   -0.00023912911424355248,
      0.0000969153795692945033, -0.0000392783238833168341, 0.0000159189050693289647,
      -6.45168921565543076e-6};
  const V magnitude = hn::Abs(x);
  const V square = hn::Mul(x, x);
  V series = hn::Set(d, static_cast<T>(of[n - 1]));
  for (int i = n - 2; i >= 0; --i) {
    series = hn::MulAdd(series, square, hn::Set(d, static_cast<T>(of[i])));
  }
  series = hn::MulAdd(hn::Mul(series, square), x, x);
  const V one = hn::Set(d, T{1});
  const V decay = exp(d, hn::Mul(magnitude, hn::Set(d, T{-2})));
  const V ratio = hn::CopySign(hn::Div(hn::Sub(one, decay), hn::Add(one, decay)), x);
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, static_cast<T>(0.3))), series, ratio);
}

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ECKART_NN_EXP2_INL_H_

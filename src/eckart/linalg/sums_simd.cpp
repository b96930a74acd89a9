// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/linalg/sums_simd.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/linalg/sums_simd.cpp"
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

Vector load(Tag d, const float* x) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Tag>(), x));
}
Vector load(Tag d, const double* x) { return hn::LoadU(d, x); }

// What becomes of an element before it is added.
struct Itself {
  Vector operator()(Tag, Vector sum, Vector x) const { return hn::Add(sum, x); }
  double operator()(double sum, double x) const { return sum + x; }
};
struct Magnitude {
  Vector operator()(Tag, Vector sum, Vector x) const { return hn::Add(sum, hn::Abs(x)); }
  double operator()(double sum, double x) const { return sum + (x < 0 ? -x : x); }
};
struct Square {
  Vector operator()(Tag, Vector sum, Vector x) const { return hn::MulAdd(x, x, sum); }
  double operator()(double sum, double x) const { return sum + x * x; }
};
struct ScaledSquare {
  double factor;
  Vector operator()(Tag d, Vector sum, Vector x) const {
    const Vector scaled = hn::Mul(x, hn::Set(d, factor));
    return hn::MulAdd(scaled, scaled, sum);
  }
  double operator()(double sum, double x) const { return sum + (x * factor) * (x * factor); }
};

double added(Tag d, Vector a, Vector b, Vector c, Vector e) {
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// Four sums hide the latency of an addition, which is four cycles.
template <class Term, class T>
double sum_of(const Term& term, const T* x, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  Vector a = hn::Zero(d);
  Vector b = a;
  Vector c = a;
  Vector e = a;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = term(d, a, load(d, x + i));
    b = term(d, b, load(d, x + i + lanes));
    c = term(d, c, load(d, x + i + 2 * lanes));
    e = term(d, e, load(d, x + i + 3 * lanes));
  }
  double sum = added(d, a, b, c, e);
  for (; i < n; ++i) sum = term(sum, static_cast<double>(x[i]));
  return sum;
}

struct Product {
  Vector add(Vector sum, Vector x, Vector y) const { return hn::MulAdd(x, y, sum); }
  double of(double x, double y) const { return x * y; }
};
struct SquaredDifference {
  Vector add(Vector sum, Vector x, Vector y) const {
    const Vector difference = hn::Sub(x, y);
    return hn::MulAdd(difference, difference, sum);
  }
  double of(double x, double y) const { return (x - y) * (x - y); }
};

template <class Term, class T>
double sum_of_pairs(const Term& term, const T* x, const T* y, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  Vector a = hn::Zero(d);
  Vector b = a;
  Vector c = a;
  Vector e = a;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = term.add(a, load(d, x + i), load(d, y + i));
    b = term.add(b, load(d, x + i + lanes), load(d, y + i + lanes));
    c = term.add(c, load(d, x + i + 2 * lanes), load(d, y + i + 2 * lanes));
    e = term.add(e, load(d, x + i + 3 * lanes), load(d, y + i + 3 * lanes));
  }
  double sum = added(d, a, b, c, e);
  for (; i < n; ++i) sum += term.of(static_cast<double>(x[i]), static_cast<double>(y[i]));
  return sum;
}

// Compared as integers, magnitudes of floats are in order, and a NaN is above infinity.
template <class Bits, class T>
double largest_of(const T* x, std::size_t n) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> d_bits;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d_bits);
  auto b = a;
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Max(a, hn::BitCast(d_bits, hn::Abs(hn::LoadU(d, x + i))));
    b = hn::Max(b, hn::BitCast(d_bits, hn::Abs(hn::LoadU(d, x + i + lanes))));
  }
  Bits lane[HWY_MAX_BYTES / sizeof(Bits)];
  hn::StoreU(hn::Max(a, b), d_bits, lane);
  Bits largest = 0;
  for (std::size_t k = 0; k < lanes; ++k) largest = lane[k] > largest ? lane[k] : largest;
  for (; i < n; ++i) {
    Bits bits;
    hwy::CopyBytes<sizeof(Bits)>(x + i, &bits);
    bits &= static_cast<Bits>(~(Bits{1} << (8 * sizeof(Bits) - 1)));
    largest = bits > largest ? bits : largest;
  }
  T result;
  hwy::CopyBytes<sizeof(T)>(&largest, &result);
  return static_cast<double>(result);
}

double sum_float(const float* x, std::size_t n) { return sum_of(Itself{}, x, n); }
double sum_double(const double* x, std::size_t n) { return sum_of(Itself{}, x, n); }
double magnitudes_float(const float* x, std::size_t n) { return sum_of(Magnitude{}, x, n); }
double magnitudes_double(const double* x, std::size_t n) { return sum_of(Magnitude{}, x, n); }
double dot_float(const float* x, const float* y, std::size_t n) {
  return sum_of_pairs(Product{}, x, y, n);
}
double dot_double(const double* x, const double* y, std::size_t n) {
  return sum_of_pairs(Product{}, x, y, n);
}
double distance_float(const float* x, const float* y, std::size_t n) {
  return sum_of_pairs(SquaredDifference{}, x, y, n);
}
double distance_double(const double* x, const double* y, std::size_t n) {
  return sum_of_pairs(SquaredDifference{}, x, y, n);
}
double squares_float(const float* x, std::size_t n, double scale) {
  return scale == 1 ? sum_of(Square{}, x, n) : sum_of(ScaledSquare{scale}, x, n);
}
double squares_double(const double* x, std::size_t n, double scale) {
  return scale == 1 ? sum_of(Square{}, x, n) : sum_of(ScaledSquare{scale}, x, n);
}
double largest_float(const float* x, std::size_t n) { return largest_of<std::int32_t>(x, n); }
double largest_double(const double* x, std::size_t n) { return largest_of<std::int64_t>(x, n); }

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(sum_float);
HWY_EXPORT(sum_double);
HWY_EXPORT(magnitudes_float);
HWY_EXPORT(magnitudes_double);
HWY_EXPORT(dot_float);
HWY_EXPORT(dot_double);
HWY_EXPORT(distance_float);
HWY_EXPORT(distance_double);
HWY_EXPORT(squares_float);
HWY_EXPORT(squares_double);
HWY_EXPORT(largest_float);
HWY_EXPORT(largest_double);

}  // namespace

double sum_run(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(sum_float)(x, n); }
double sum_run(const double* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(sum_double)(x, n); }
double sum_magnitudes_run(const float* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(magnitudes_float)(x, n);
}
double sum_magnitudes_run(const double* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(magnitudes_double)(x, n);
}
double dot_run(const float* x, const float* y, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_float)(x, y, n);
}
double dot_run(const double* x, const double* y, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_double)(x, y, n);
}
double squared_distance_run(const float* x, const float* y, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(distance_float)(x, y, n);
}
double squared_distance_run(const double* x, const double* y, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(distance_double)(x, y, n);
}
double sum_squares_run(const float* x, std::size_t n, double scale) {
  return HWY_DYNAMIC_DISPATCH(squares_float)(x, n, scale);
}
double sum_squares_run(const double* x, std::size_t n, double scale) {
  return HWY_DYNAMIC_DISPATCH(squares_double)(x, n, scale);
}
double largest_magnitude_run(const float* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(largest_float)(x, n);
}
double largest_magnitude_run(const double* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(largest_double)(x, n);
}

}  // namespace eckart::detail
#endif  // HWY_ONCE

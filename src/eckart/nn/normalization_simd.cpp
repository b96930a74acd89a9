// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/nn/normalization_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/nn/normalization_simd.cpp"
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

template <class T>
double centered_squares(const T* x, std::size_t n, double mean) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  const Vector center = hn::Set(d, mean);
  const auto add = [&](Vector sum, const T* from) {
    const Vector difference = hn::Sub(load(d, from), center);
    return hn::MulAdd(difference, difference, sum);
  };
  Vector a = hn::Zero(d);
  Vector b = a;
  Vector c = a;
  Vector e = a;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = add(a, x + i);
    b = add(b, x + i + lanes);
    c = add(c, x + i + 2 * lanes);
    e = add(e, x + i + 3 * lanes);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < n; ++i) {
    const double difference = static_cast<double>(x[i]) - mean;
    sum += difference * difference;
  }
  return sum;
}

template <class T>
void normalize(const T* x, T* out, std::size_t n, const NormalizeRun<T>& run) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  const Vector mean = hn::Set(d, run.mean);
  const Vector inverse = hn::Set(d, run.inverse);
  const Vector shift = hn::Set(d, run.weight_shift);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vector v = hn::Mul(hn::Sub(load(d, x + i), mean), inverse);
    if (run.weight != nullptr) v = hn::Mul(v, hn::Add(load(d, run.weight + i), shift));
    if (run.bias != nullptr) v = hn::Add(v, load(d, run.bias + i));
    store(v, d, out + i);
  }
  for (; i < n; ++i) {
    double v = (static_cast<double>(x[i]) - run.mean) * run.inverse;
    if (run.weight != nullptr) v *= static_cast<double>(run.weight[i]) + run.weight_shift;
    if (run.bias != nullptr) v += static_cast<double>(run.bias[i]);
    out[i] = static_cast<T>(v);
  }
}

double squares_float(const float* x, std::size_t n, double mean) {
  return centered_squares(x, n, mean);
}
double squares_double(const double* x, std::size_t n, double mean) {
  return centered_squares(x, n, mean);
}
void normalize_float(const float* x, float* out, std::size_t n, const NormalizeRun<float>& run) {
  normalize(x, out, n, run);
}
void normalize_double(const double* x, double* out, std::size_t n,
                      const NormalizeRun<double>& run) {
  normalize(x, out, n, run);
}

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(squares_float);
HWY_EXPORT(squares_double);
HWY_EXPORT(normalize_float);
HWY_EXPORT(normalize_double);

}  // namespace

double centered_squares_run(const float* x, std::size_t n, double mean) {
  return HWY_DYNAMIC_DISPATCH(squares_float)(x, n, mean);
}
double centered_squares_run(const double* x, std::size_t n, double mean) {
  return HWY_DYNAMIC_DISPATCH(squares_double)(x, n, mean);
}
void normalize_run(const float* x, float* out, std::size_t n, const NormalizeRun<float>& run) {
  HWY_DYNAMIC_DISPATCH(normalize_float)(x, out, n, run);
}
void normalize_run(const double* x, double* out, std::size_t n, const NormalizeRun<double>& run) {
  HWY_DYNAMIC_DISPATCH(normalize_double)(x, out, n, run);
}

}  // namespace eckart::detail
#endif  // HWY_ONCE

// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/nn/softmax_simd.h"

#include <cmath>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/nn/softmax_simd.cpp"
// What follows highway.h is made anew for each instruction set, and must not stand before it.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "eckart/nn/exp2_inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

// Terms that are added in T before they go on in double: with four vectors of at least two of them
// no term goes through more than 32 additions.
constexpr Index block_terms = 256;

template <class T>
struct Largest {
  T value;
  bool is_a_number;  // false where a score is NaN or +infinity
};

template <class T>
Largest<T> largest(const T* scores, Index n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const auto limit = hn::Set(d, infinity<T>);
  auto most = hn::Set(d, -infinity<T>);
  auto is_below = hn::Eq(most, most);
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, scores + i);
    is_below = hn::And(is_below, hn::Lt(v, limit));
    most = hn::Max(most, v);
  }
  Largest<T> result{hn::GetLane(hn::MaxOfLanes(d, most)), hn::AllTrue(d, is_below)};
  for (; i < n; ++i) {
    result.is_a_number = result.is_a_number && scores[i] < infinity<T>;
    if (scores[i] > result.value) result.value = scores[i];
  }
  return result;
}

// e^(score - most) of up to one vector of scores.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void exp_some(D d, const T* scores, Index n, hn::Vec<D> most, T* out) {
  T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::StoreU(hn::Set(d, -infinity<T>), d, lanes);
  for (Index i = 0; i < n; ++i) lanes[i] = scores[i];
  hn::StoreU(exp(d, hn::Sub(hn::LoadU(d, lanes), most)), d, lanes);
  for (Index i = 0; i < n; ++i) out[i] = lanes[i];
}

// The sum of e^(score - most) over up to `block_terms` scores; the terms replace the scores where
// they are kept.
template <bool keeps, class T>
T sum_block(T* scores, Index n, T largest_score) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const auto most = hn::Set(d, largest_score);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  const auto add = [&](Index at, auto& sum) HWY_ATTR {
    const auto term = exp(d, hn::Sub(hn::LoadU(d, scores + at), most));
    if constexpr (keeps) hn::StoreU(term, d, scores + at);
    sum = hn::Add(sum, term);
  };
  Index i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(i, a);
    add(i + lanes, b);
    add(i + 2 * lanes, c);
    add(i + 3 * lanes, e);
  }
  for (; i + lanes <= n; i += lanes) add(i, a);
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  T rest[HWY_MAX_BYTES / sizeof(T)] = {};
  exp_some(d, scores + i, n - i, most, rest);
  for (Index k = 0; i + k < n; ++k) {
    if constexpr (keeps) scores[i + k] = rest[k];
    sum += rest[k];
  }
  return sum;
}

template <bool keeps, class T>
double sum_terms(T* scores, Index n, T most) {
  double sum = 0;
  for (Index begin = 0; begin < n; begin += block_terms) {
    const Index count = n - begin < block_terms ? n - begin : block_terms;
    sum += static_cast<double>(sum_block<keeps>(scores + begin, count, most));
  }
  return sum;
}

// What a row with a NaN gives: hidden positions stay hidden.
template <class T>
void lose(T* scores, Index n, T hidden) {
  for (Index i = 0; i < n; ++i) {
    scores[i] = scores[i] == -infinity<T> ? hidden : std::numeric_limits<T>::quiet_NaN();
  }
}

template <class T>
void softmax_as(T* scores, Index n, T sink) {
  const Largest<T> found = largest(scores, n);
  if (!found.is_a_number || !(sink < infinity<T>)) return lose(scores, n, T{0});
  const T most = sink > found.value ? sink : found.value;
  if (most == -infinity<T>) {
    for (Index i = 0; i < n; ++i) scores[i] = 0;
    return;
  }
  const hn::ScalableTag<T> d;
  T of_sink[1] = {0};
  exp_some(d, &sink, 1, hn::Set(d, most), of_sink);
  const double sum = sum_terms<true>(scores, n, most) + static_cast<double>(of_sink[0]);
  const T divisor = static_cast<T>(sum);
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const auto divisors = hn::Set(d, divisor);
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Div(hn::LoadU(d, scores + i), divisors), d, scores + i);
  }
  for (; i < n; ++i) scores[i] /= divisor;
}

void softmax_float(float* scores, Index n, float sink) { softmax_as(scores, n, sink); }
void softmax_double(double* scores, Index n, double sink) { softmax_as(scores, n, sink); }
bool find_largest_float(const float* scores, Index n, float& most) {
  const Largest<float> found = largest(scores, n);
  most = found.value;
  return found.is_a_number;
}
bool find_largest_double(const double* scores, Index n, double& most) {
  const Largest<double> found = largest(scores, n);
  most = found.value;
  return found.is_a_number;
}
double sum_float(float* scores, Index n, float most) { return sum_terms<false>(scores, n, most); }
double sum_double(double* scores, Index n, double most) {
  return sum_terms<false>(scores, n, most);
}

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(softmax_float);
HWY_EXPORT(softmax_double);
HWY_EXPORT(find_largest_float);
HWY_EXPORT(find_largest_double);
HWY_EXPORT(sum_float);
HWY_EXPORT(sum_double);

bool find_largest(const float* scores, Index n, float& most) {
  return HWY_DYNAMIC_DISPATCH(find_largest_float)(scores, n, most);
}
bool find_largest(const double* scores, Index n, double& most) {
  return HWY_DYNAMIC_DISPATCH(find_largest_double)(scores, n, most);
}
double sum_of(float* scores, Index n, float most) {
  return HWY_DYNAMIC_DISPATCH(sum_float)(scores, n, most);
}
double sum_of(double* scores, Index n, double most) {
  return HWY_DYNAMIC_DISPATCH(sum_double)(scores, n, most);
}

template <class T>
void log_softmax_as(T* scores, Index n) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  T most = 0;
  if (!find_largest(scores, n, most)) {
    for (Index i = 0; i < n; ++i) {
      if (scores[i] != hidden) scores[i] = std::numeric_limits<T>::quiet_NaN();
    }
    return;
  }
  if (most == hidden) return;
  const T log_sum = static_cast<T>(std::log(sum_of(scores, n, most)));
  for (Index i = 0; i < n; ++i) scores[i] = (scores[i] - most) - log_sum;
}

}  // namespace

void softmax_row(float* scores, Index n, float sink) {
  HWY_DYNAMIC_DISPATCH(softmax_float)(scores, n, sink);
}
void softmax_row(double* scores, Index n, double sink) {
  HWY_DYNAMIC_DISPATCH(softmax_double)(scores, n, sink);
}
void log_softmax_row(float* scores, Index n) { log_softmax_as(scores, n); }
void log_softmax_row(double* scores, Index n) { log_softmax_as(scores, n); }

}  // namespace eckart::detail
#endif  // HWY_ONCE

// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/linalg/top_k_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/linalg/top_k_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
hn::TFromD<D> sum_of(D d, V a, V b, V c, V e) {
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

template <class T>
T dot(const T* x, const T* y, Index d) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  auto a = hn::Zero(tag), b = a, c = a, e = a;
  Index i = 0;
  for (; i + 4 * lanes <= d; i += 4 * lanes) {
    a = hn::MulAdd(hn::LoadU(tag, x + i), hn::LoadU(tag, y + i), a);
    b = hn::MulAdd(hn::LoadU(tag, x + i + lanes), hn::LoadU(tag, y + i + lanes), b);
    c = hn::MulAdd(hn::LoadU(tag, x + i + 2 * lanes), hn::LoadU(tag, y + i + 2 * lanes), c);
    e = hn::MulAdd(hn::LoadU(tag, x + i + 3 * lanes), hn::LoadU(tag, y + i + 3 * lanes), e);
  }
  for (; i + lanes <= d; i += lanes) {
    a = hn::MulAdd(hn::LoadU(tag, x + i), hn::LoadU(tag, y + i), a);
  }
  T sum = sum_of(tag, a, b, c, e);
  for (; i < d; ++i) sum += x[i] * y[i];
  return sum;
}

// x y in `product` and x x in `square`, with one load of x.
template <class T>
void dot_and_square(const T* x, const T* y, Index d, T& product, T& square) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  auto a = hn::Zero(tag), b = a, c = a, e = a;
  Index i = 0;
  for (; i + 2 * lanes <= d; i += 2 * lanes) {
    const auto first = hn::LoadU(tag, x + i);
    const auto second = hn::LoadU(tag, x + i + lanes);
    a = hn::MulAdd(first, hn::LoadU(tag, y + i), a);
    b = hn::MulAdd(second, hn::LoadU(tag, y + i + lanes), b);
    c = hn::MulAdd(first, first, c);
    e = hn::MulAdd(second, second, e);
  }
  for (; i + lanes <= d; i += lanes) {
    const auto first = hn::LoadU(tag, x + i);
    a = hn::MulAdd(first, hn::LoadU(tag, y + i), a);
    c = hn::MulAdd(first, first, c);
  }
  product = hn::GetLane(hn::SumOfLanes(tag, hn::Add(a, b)));
  square = hn::GetLane(hn::SumOfLanes(tag, hn::Add(c, e)));
  for (; i < d; ++i) {
    product += x[i] * y[i];
    square += x[i] * x[i];
  }
}

template <class T>
T squared_distance(const T* x, const T* y, Index d) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  auto a = hn::Zero(tag), b = a, c = a, e = a;
  const auto add = [&](Index at, auto& sum) {
    const auto difference = hn::Sub(hn::LoadU(tag, x + at), hn::LoadU(tag, y + at));
    sum = hn::MulAdd(difference, difference, sum);
  };
  Index i = 0;
  for (; i + 4 * lanes <= d; i += 4 * lanes) {
    add(i, a);
    add(i + lanes, b);
    add(i + 2 * lanes, c);
    add(i + 3 * lanes, e);
  }
  for (; i + lanes <= d; i += lanes) add(i, a);
  T sum = sum_of(tag, a, b, c, e);
  for (; i < d; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

template <class T>
void row_dots_as(const Rows<T>& rows, const T* query, T* dots, T* squares) {
  for (Index i = 0; i < rows.n; ++i) {
    const T* const row = rows.data + i * rows.stride;
    if (squares == nullptr) {
      dots[i] = dot(row, query, rows.d);
    } else {
      dot_and_square(row, query, rows.d, dots[i], squares[i]);
    }
  }
}

template <class T>
void row_distances_as(const Rows<T>& rows, const T* query, T* squares) {
  for (Index i = 0; i < rows.n; ++i) {
    const T square = squared_distance(rows.data + i * rows.stride, query, rows.d);
    squares[i] = square + (square - square);  // infinity becomes NaN
  }
}

template <class T>
Index choose_as(const UpperBounds<T>& bounds, T least, std::uint32_t* chosen) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  const auto error = hn::Set(tag, bounds.error);
  const auto floor = hn::Set(tag, least);
  Index n_chosen = 0;
  Index i = 0;
  for (; i + lanes <= bounds.n; i += lanes) {
    const auto value =
        hn::MulAdd(hn::LoadU(tag, bounds.scores + i), hn::LoadU(tag, bounds.factor + i),
                   hn::LoadU(tag, bounds.term + i));
    const auto upper = hn::MulAdd(error, hn::LoadU(tag, bounds.weight + i), value);
    const auto below = hn::Lt(upper, floor);
    if (HWY_LIKELY(hn::AllTrue(tag, below))) continue;
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(tag, below, bits);
    for (Index lane = 0; lane < lanes; ++lane) {
      if ((bits[lane / 8] >> (lane % 8) & 1) == 0) {
        chosen[n_chosen++] = static_cast<std::uint32_t>(i + lane);
      }
    }
  }
  for (; i < bounds.n; ++i) {
    const T upper =
        bounds.scores[i] * bounds.factor[i] + bounds.term[i] + bounds.error * bounds.weight[i];
    if (!(upper < least)) chosen[n_chosen++] = static_cast<std::uint32_t>(i);
  }
  return n_chosen;
}

void dots_float(const Rows<float>& rows, const float* query, float* dots, float* squares) {
  row_dots_as(rows, query, dots, squares);
}
void distances_float(const Rows<float>& rows, const float* query, float* squares) {
  row_distances_as(rows, query, squares);
}
Index choose_float(const UpperBounds<float>& bounds, float least, std::uint32_t* chosen) {
  return choose_as(bounds, least, chosen);
}
void dots_double(const Rows<double>& rows, const double* query, double* dots, double* squares) {
  row_dots_as(rows, query, dots, squares);
}
void distances_double(const Rows<double>& rows, const double* query, double* squares) {
  row_distances_as(rows, query, squares);
}
Index choose_double(const UpperBounds<double>& bounds, double least, std::uint32_t* chosen) {
  return choose_as(bounds, least, chosen);
}

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(dots_float);
HWY_EXPORT(distances_float);
HWY_EXPORT(choose_float);
HWY_EXPORT(dots_double);
HWY_EXPORT(distances_double);
HWY_EXPORT(choose_double);

}  // namespace

void row_dots(const Rows<float>& rows, const float* query, float* dots, float* squares) {
  HWY_DYNAMIC_DISPATCH(dots_float)(rows, query, dots, squares);
}
void row_dots(const Rows<double>& rows, const double* query, double* dots, double* squares) {
  HWY_DYNAMIC_DISPATCH(dots_double)(rows, query, dots, squares);
}
void row_distances(const Rows<float>& rows, const float* query, float* squares) {
  HWY_DYNAMIC_DISPATCH(distances_float)(rows, query, squares);
}
void row_distances(const Rows<double>& rows, const double* query, double* squares) {
  HWY_DYNAMIC_DISPATCH(distances_double)(rows, query, squares);
}
Index choose(const UpperBounds<float>& bounds, float least, std::uint32_t* chosen) {
  return HWY_DYNAMIC_DISPATCH(choose_float)(bounds, least, chosen);
}
Index choose(const UpperBounds<double>& bounds, double least, std::uint32_t* chosen) {
  return HWY_DYNAMIC_DISPATCH(choose_double)(bounds, least, chosen);
}

}  // namespace eckart::detail
#endif  // HWY_ONCE

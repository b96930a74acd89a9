#include "eckart/linalg/top_k_exact.h"

#include "eckart/linalg/sums_simd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace eckart::detail {
namespace {

// Squares of doubles outside of these lose digits or overflow.
constexpr double least_square = 1e-280;
constexpr double largest_square = 1e300;

// The sum of term(x_i, y_i), for what the sums of runs don't take.
template <class T, class Term>
double sum(TensorView<const T> x, TensorView<const T> y, const Term& term) {
  double sum = 0;
  for (Index i = 0; i < x.size(0); ++i) {
    sum += term(static_cast<double>(x(i)), static_cast<double>(y(i)));
  }
  return sum;
}

template <class T>
bool are_runs(const TensorView<const T>& x, const TensorView<const T>& y) {
  return x.strides()[0] == 1 && y.strides()[0] == 1;
}

template <class T>
double product(TensorView<const T> x, TensorView<const T> y) {
  if (are_runs(x, y)) return dot_run(x.data(), y.data(), static_cast<std::size_t>(x.size(0)));
  return sum(x, y, [](double a, double b) { return a * b; });
}

template <class T>
double squared_distance(TensorView<const T> x, TensorView<const T> y) {
  if (are_runs(x, y)) {
    return squared_distance_run(x.data(), y.data(), static_cast<std::size_t>(x.size(0)));
  }
  return sum(x, y, [](double a, double b) { return (a - b) * (a - b); });
}

template <class T>
double largest(TensorView<const T> x) {
  double most = 0;
  for (Index i = 0; i < x.size(0); ++i) most = std::max(most, std::abs(static_cast<double>(x(i))));
  return most;
}

bool is_safe(double square) { return square >= least_square && square <= largest_square; }

}  // namespace

template <class T>
double ExactScore<T>::cosine(Index query, Index item) const {
  const TensorView<const T> q = queries_.select(0, query);
  const TensorView<const T> x = items_.select(0, item);
  const double of_q = product(q, q);
  const double of_x = product(x, x);
  if (is_safe(of_q) && is_safe(of_x)) {
    return product(q, x) / (std::sqrt(of_q) * std::sqrt(of_x));
  }
  const double scale_q = largest(q);
  const double scale_x = largest(x);
  if (scale_q == 0 || scale_x == 0) {
    if (of_q != of_q || of_x != of_x) return std::numeric_limits<double>::quiet_NaN();
    saw_zero_ = true;
    return options_.zero_vector == ZeroVector::zero ? 0.0
                                                    : std::numeric_limits<double>::quiet_NaN();
  }
  const auto scaled = [](double a, double b) {
    return [a, b](double x_i, double y_i) { return x_i / a * (y_i / b); };
  };
  return sum(q, x, scaled(scale_q, scale_x)) / (std::sqrt(sum(q, q, scaled(scale_q, scale_q))) *
                                                std::sqrt(sum(x, x, scaled(scale_x, scale_x))));
}

template <class T>
double ExactScore<T>::distance(Index query, Index item) const {
  const TensorView<const T> q = queries_.select(0, query);
  const TensorView<const T> x = items_.select(0, item);
  const double square = squared_distance(q, x);
  if (is_safe(square)) return std::sqrt(square);
  double scale = 0;
  for (Index i = 0; i < q.size(0); ++i) {
    scale = std::max(scale, std::abs(static_cast<double>(q(i)) - static_cast<double>(x(i))));
  }
  if (scale == 0 || !std::isfinite(scale)) return std::sqrt(square);
  return scale * std::sqrt(sum(q, x, [scale](double a, double b) {
           return (a - b) / scale * ((a - b) / scale);
         }));
}

template <class T>
double ExactScore<T>::key(Index query, Index item) const {
  double value = 0;
  switch (options_.metric) {
    case Metric::dot:
      value = product(queries_.select(0, query), items_.select(0, item));
      break;
    case Metric::cosine:
      value = cosine(query, item);
      break;
    case Metric::l2:
      value = -distance(query, item);
      break;
  }
  if (!std::isfinite(value)) saw_no_number_ = true;
  return value;
}

template class ExactScore<float>;
template class ExactScore<double>;

}  // namespace eckart::detail

#include "eckart/linalg/norms.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/pieces.h"
#include "eckart/linalg/safe_length.h"
#include "eckart/linalg/sums_simd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

using detail::larger;

constexpr std::array<std::pair<Norm, std::string_view>, 6> names = {{
    {Norm::one, "1"},
    {Norm::two, "2"},
    {Norm::infinity, "inf"},
    {Norm::frobenius, "fro"},
    {Norm::nuclear, "nuc"},
    {Norm::spectral, "spectral"},
}};

double plus(double a, double b) { return a + b; }

template <class T>
double sum_of_magnitudes(TensorView<const T> a) {
  return detail::over_elements(
      a, [](const T* x, std::size_t n) { return detail::sum_magnitudes_run(x, n); }, plus);
}

template <class T>
double largest_magnitude(TensorView<const T> a) {
  return detail::over_elements(
      a, [](const T* x, std::size_t n) { return detail::largest_magnitude_run(x, n); }, larger);
}

template <class T>
double root_of_squares(TensorView<const T> a) {
  return detail::safe_length<T>(
      [&](double scale) {
        return detail::over_elements(
            a, [&](const T* x, std::size_t n) { return detail::sum_squares_run(x, n, scale); },
            plus);
      },
      [&] { return largest_magnitude(a); });
}

// Sums of magnitudes of the columns of a matrix whose rows are adjacent in memory.
template <class T>
double largest_column_sum(TensorView<const T> a) {
  constexpr Index columns_at_once = 512;
  const Index n_pieces = (a.size(1) + columns_at_once - 1) / columns_at_once;
  std::vector<double> largest(static_cast<std::size_t>(n_pieces));
  parallel_for(a.size(1), columns_at_once, [&](Index begin, Index end) {
    std::vector<double> sums(static_cast<std::size_t>(end - begin));
    for (Index row = 0; row < a.size(0); ++row) {
      const T* const elements = a.data() + row * a.strides()[0] + begin * a.strides()[1];
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] += std::abs(static_cast<double>(elements[static_cast<Index>(i) * a.strides()[1]]));
      }
    }
    largest[static_cast<std::size_t>(begin / columns_at_once)] =
        std::accumulate(sums.begin(), sums.end(), 0.0, larger);
  });
  return std::accumulate(largest.begin(), largest.end(), 0.0, larger);
}

template <class T>
double largest_row_sum(TensorView<const T> a) {
  if (std::abs(a.strides()[0]) < std::abs(a.strides()[1])) return largest_column_sum(a.transpose());
  std::vector<double> sums(static_cast<std::size_t>(a.size(0)));
  const Index rows_at_once =
      std::max<Index>(1, detail::piece_elements / std::max<Index>(1, a.size(1)));
  parallel_for(a.size(0), rows_at_once, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      detail::for_blocks(a.data() + row * a.strides()[0], a.size(1), a.strides()[1],
                         [&](const T* x, std::size_t n) {
                           sums[static_cast<std::size_t>(row)] += detail::sum_magnitudes_run(x, n);
                         });
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0, larger);
}

// In double, since the singular values of a float matrix in float are off by 1e-5 of the largest.
template <class T>
std::vector<double> singular_values(TensorView<const T> a) {
  check_finite("norm", "a", a);
  const Index m = a.size(0);
  const Index n = a.size(1);
  std::vector<double> values(static_cast<std::size_t>(std::min(m, n)));
  if (values.empty()) return values;
  Tensor<double> copy = Tensor<double>::uninitialized({m, n});
  for_each_element([](double& to, const T& from) { to = static_cast<double>(from); }, copy.view(),
                   a);
  // What is n x m by columns is m x n by rows, with the same singular values.
  const blas::LapackInt info =
      blas::gesdd<double>(n, m, copy.data(), n, values.data(), nullptr, 1, nullptr, 1);
  if (info > 0) throw_argument_error("norm: the singular values of a did not converge");
  return values;
}

[[noreturn]] void refuse(const Shape& shape, Norm kind, std::string_view has) {
  throw_shape_error("norm: a is " + to_string(shape) + ", which has " + std::string(has) +
                    ", but not the norm " + std::string(to_string(kind)));
}

template <class T>
double vector_norm(TensorView<const T> a, Norm kind) {
  switch (kind) {
    case Norm::one:
      return sum_of_magnitudes(a);
    case Norm::two:
      return root_of_squares(a);
    case Norm::infinity:
      return largest_magnitude(a);
    default:
      refuse(a.shape(), kind, "the norms 1, 2 and inf");
  }
}

template <class T>
double matrix_norm(TensorView<const T> a, Norm kind) {
  switch (kind) {
    case Norm::one:
      return largest_row_sum(a.transpose());
    case Norm::infinity:
      return largest_row_sum(a);
    case Norm::frobenius:
      return root_of_squares(a);
    case Norm::nuclear: {
      const std::vector<double> values = singular_values(a);
      return std::accumulate(values.rbegin(), values.rend(), 0.0);
    }
    case Norm::two:
    case Norm::spectral:
      break;
  }
  const std::vector<double> values = singular_values(a);
  return values.empty() ? 0 : values.front();
}

// One vector with its elements `stride` apart.
template <class T>
double length_along(const T* elements, Index n, Index stride, Norm kind) {
  const auto over = [&](const auto& run, const auto& combine) {
    double result = 0;
    detail::for_blocks(elements, n, stride, [&](const T* x, std::size_t count) {
      result = combine(result, run(x, count));
    });
    return result;
  };
  const auto largest = [&] {
    return over(
        [](const T* x, std::size_t count) { return detail::largest_magnitude_run(x, count); },
        larger);
  };
  if (kind == Norm::infinity) return largest();
  if (kind == Norm::one) {
    return over([](const T* x, std::size_t count) { return detail::sum_magnitudes_run(x, count); },
                plus);
  }
  return detail::safe_length<T>(
      [&](double scale) {
        return over(
            [&](const T* x, std::size_t count) { return detail::sum_squares_run(x, count, scale); },
            plus);
      },
      largest);
}

}  // namespace

std::string_view to_string(Norm norm) {
  return std::find_if(names.begin(), names.end(),
                      [&](const auto& one) { return one.first == norm; })
      ->second;
}

std::optional<Norm> parse_norm(std::string_view name) {
  for (const auto& [norm, known] : names) {
    if (known == name) return norm;
  }
  return std::nullopt;
}

template <class T>
double norm(TensorView<const T> a, std::optional<Norm> kind) {
  if (a.rank() == 1) return vector_norm(a, kind.value_or(Norm::two));
  const Norm chosen = kind.value_or(Norm::frobenius);
  if (a.rank() == 2) return matrix_norm(a, chosen);
  if (chosen != Norm::frobenius) refuse(a.shape(), chosen, "the norm fro");
  return root_of_squares(a);
}

template <class T>
Tensor<T> vector_norms(TensorView<const T> a, const Axis& axis, Norm kind) {
  const Index along = axis.in(a.shape());
  if (kind != Norm::one && kind != Norm::two && kind != Norm::infinity) {
    throw_shape_error(
        "norm: a is " + to_string(a.shape()) +
        ", whose vectors along an axis have the norms 1, 2 and inf, but not the norm " +
        std::string(to_string(kind)));
  }
  std::vector<Index> sizes = a.shape().sizes();
  std::vector<std::string> axis_names = a.shape().names();
  std::vector<Index> strides = a.strides();
  const auto at = static_cast<std::ptrdiff_t>(along);
  const Index n = a.size(along);
  const Index stride = strides[static_cast<std::size_t>(along)];
  sizes.erase(sizes.begin() + at);
  strides.erase(strides.begin() + at);
  if (!axis_names.empty()) axis_names.erase(axis_names.begin() + at);
  Tensor<T> result = Tensor<T>::uninitialized(Shape(std::move(sizes), std::move(axis_names)));
  const Index at_once = std::max<Index>(1, detail::piece_elements / std::max<Index>(1, n));
  parallel_for(result.count(), at_once, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      Index offset = 0;
      Index left = i;
      for (Index k = result.rank() - 1; k >= 0; --k) {
        offset += left % result.size(k) * strides[static_cast<std::size_t>(k)];
        left /= result.size(k);
      }
      result.data()[i] = static_cast<T>(length_along(a.data() + offset, n, stride, kind));
    }
  });
  return result;
}

template double norm(TensorView<const float>, std::optional<Norm>);
template double norm(TensorView<const double>, std::optional<Norm>);
template Tensor<float> vector_norms(TensorView<const float>, const Axis&, Norm);
template Tensor<double> vector_norms(TensorView<const double>, const Axis&, Norm);

}  // namespace eckart

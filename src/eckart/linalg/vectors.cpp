#include "eckart/linalg/vectors.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/norms.h"
#include "eckart/linalg/pieces.h"
#include "eckart/linalg/safe_length.h"
#include "eckart/linalg/sums_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Names of an operation and its operands in messages.
struct Names {
  std::string_view operation;
  std::string_view left;
  std::string_view right;
};

std::string both(const Names& names, const Shape& left, const Shape& right) {
  return std::string(names.operation) + ": " + std::string(names.left) + " is " + to_string(left) +
         " and " + std::string(names.right) + " is " + to_string(right);
}

// Every arrangement of two matrices whose rows are as long.
std::string arrangements(const Names& names, const Shape& left, const Shape& right) {
  std::string hint;
  const auto consider = [&](const std::string& how, bool turn_left, bool turn_right) {
    const Shape a = turn_left ? Shape{left.size(1), left.size(0)} : Shape(left.sizes());
    const Shape b = turn_right ? Shape{right.size(1), right.size(0)} : Shape(right.sizes());
    if (a.size(1) != b.size(1)) return;
    hint += (hint.empty() ? "with " : "; with ") + how + " transposed it fits: " + to_string(a) +
            " and " + to_string(b) + " gives " + to_string(Shape{a.size(0), b.size(0)});
  };
  consider(std::string(names.right), false, true);
  consider(std::string(names.left), true, false);
  consider("both", true, true);
  return hint;
}

void check_same_axis(const Names& names, const Shape& left, const Shape& right,
                     std::string_view what) {
  if (left.size(-1) != right.size(-1)) {
    throw_shape_error(
        both(names, left, right) + ", but " + std::string(what) +
            " must have as many elements in both",
        left.rank() == 2 && right.rank() == 2 ? arrangements(names, left, right) : "");
  }
  const std::string& left_name = left.name(-1);
  const std::string& right_name = right.name(-1);
  if (!left_name.empty() && !right_name.empty() && left_name != right_name) {
    throw_shape_error(both(names, left, right) + ", but axis " + left_name + " of " +
                      std::string(names.left) + " would meet axis " + right_name + " of " +
                      std::string(names.right));
  }
}

void check_vectors(const Names& names, const Shape& left, const Shape& right) {
  if (left.rank() != 1 || right.rank() != 1) {
    throw_shape_error(both(names, left, right) + ", but both must be vectors");
  }
  check_same_axis(names, left, right, "the vectors");
}

// Calls `body(x, y, n)` for the pairs of elements from `begin` to `end`, a block at a time.
template <class T, class Body>
void for_pairs(TensorView<const T> u, TensorView<const T> v, Index begin, Index end,
               const Body& body) {
  const Index stride_u = u.strides()[0];
  const Index stride_v = v.strides()[0];
  if (stride_u == 1 && stride_v == 1) {
    for (Index i = begin; i < end; i += detail::block_elements) {
      body(u.data() + i, v.data() + i,
           static_cast<std::size_t>(std::min(detail::block_elements, end - i)));
    }
    return;
  }
  constexpr Index at_once = 512;
  T copy_u[at_once];
  T copy_v[at_once];
  for (Index first = begin; first < end; first += at_once) {
    const Index n = std::min(at_once, end - first);
    for (Index i = 0; i < n; ++i) {
      copy_u[i] = u.data()[(first + i) * stride_u];
      copy_v[i] = v.data()[(first + i) * stride_v];
    }
    body(static_cast<const T*>(copy_u), static_cast<const T*>(copy_v), static_cast<std::size_t>(n));
  }
}

// `of_pairs(x, y, n)` over all pairs of elements, combined in their order.
template <class T, class OfPairs, class Combine>
double over_pairs(TensorView<const T> u, TensorView<const T> v, const OfPairs& of_pairs,
                  const Combine& combine) {
  const std::vector<double> results = detail::in_pieces(u.count(), [&](Index begin, Index end) {
    double result = 0;
    for_pairs(u, v, begin, end, [&](const T* x, const T* y, std::size_t n) {
      result = combine(result, of_pairs(x, y, n));
    });
    return result;
  });
  return std::accumulate(results.begin(), results.end(), 0.0, combine);
}

double plus(double a, double b) { return a + b; }

template <class T>
double plain_dot(TensorView<const T> u, TensorView<const T> v) {
  return over_pairs(
      u, v, [](const T* x, const T* y, std::size_t n) { return detail::dot_run(x, y, n); }, plus);
}

// The differences of a block, in double, for `run(differences, n)`.
template <class T, class Run>
double over_differences(TensorView<const T> x, TensorView<const T> y, const Run& run,
                        double (*combine)(double, double)) {
  return over_pairs(
      x, y,
      [&](const T* a, const T* b, std::size_t n) {
        double differences[detail::block_elements];
        for (std::size_t i = 0; i < n; ++i) {
          differences[i] = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        }
        return run(static_cast<const double*>(differences), n);
      },
      combine);
}

// 2^-exponent brings the largest magnitude near 1; subnormal numbers as near as a scale can.
int exponent_of(double largest) { return std::clamp(std::ilogb(largest), -1000, 1000); }

[[noreturn]] void refuse_zero(std::string_view operation, const std::string& who) {
  throw_argument_error(
      std::string(operation) + ": " + who + " is a zero vector, but a zero vector has no direction",
      "ask for 0 or NaN in its place with zero_vector");
}

double direction_of_zero(ZeroVector policy) {
  return policy == ZeroVector::zero ? 0 : std::numeric_limits<double>::quiet_NaN();
}

// x / |x|. Returns false, and leaves `out` alone, when x is a zero vector.
template <class T>
bool normalize_one(TensorView<const T> x, T* out) {
  double length = norm(x);
  if (length == 0) return false;
  // Where the length is beyond double, or so small that it has few digits, x is scaled first.
  int exponent = 0;
  if (!std::is_same_v<T, float> && (length < 0x1p-960 || std::isinf(length))) {
    const double largest = norm(x, Norm::infinity);
    if (std::isfinite(largest)) {
      exponent = exponent_of(largest);
      Tensor<T> scaled(x);
      for (Index i = 0; i < x.count(); ++i) {
        scaled.data()[i] = static_cast<T>(std::ldexp(static_cast<double>(x(i)), -exponent));
      }
      length = norm(scaled);
    }
  }
  const double scale = std::ldexp(1.0, -exponent);
  for (Index i = 0; i < x.count(); ++i) {
    out[i] = static_cast<T>(static_cast<double>(x(i)) * scale / length);
  }
  return true;
}

std::string row_text(const Shape& shape, Index row, std::string_view name) {
  if (shape.rank() == 1) return std::string(name);
  std::string position;
  for (Index axis = shape.rank() - 2; axis >= 0; --axis) {
    position = std::to_string(row % shape.size(axis)) + (position.empty() ? "" : ", ") + position;
    row /= shape.size(axis);
  }
  return "row " + position + " of " + std::string(name);
}

template <class T>
Tensor<T> normalized(TensorView<const T> x, std::string_view operation, std::string_view name,
                     const DirectionOptions& options) {
  if (x.rank() == 0) {
    throw_shape_error(std::string(operation) + ": " + std::string(name) +
                      " is a scalar, but a direction takes a vector");
  }
  Tensor<T> result = Tensor<T>::uninitialized(x.shape());
  const Index d = x.size(-1);
  Index n_rows = 1;
  for (Index axis = 0; axis + 1 < x.rank(); ++axis) n_rows *= x.size(axis);
  std::vector<char> is_zero(static_cast<std::size_t>(n_rows), 0);
  const Index at_once = std::max<Index>(1, detail::piece_elements / std::max<Index>(1, d));
  parallel_for(n_rows, at_once, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      Index offset = 0;
      Index left = row;
      for (Index axis = x.rank() - 2; axis >= 0; --axis) {
        offset += left % x.size(axis) * x.strides()[static_cast<std::size_t>(axis)];
        left /= x.size(axis);
      }
      T* const out = result.data() + row * d;
      if (normalize_one(TensorView<const T>(x.data() + offset, {d}, {x.strides().back()}), out)) {
        continue;
      }
      is_zero[static_cast<std::size_t>(row)] = 1;
      std::fill_n(out, d, static_cast<T>(direction_of_zero(options.zero_vector)));
    }
  });
  const auto first = std::find(is_zero.begin(), is_zero.end(), 1);
  if (options.zero_vector == ZeroVector::error && first != is_zero.end()) {
    refuse_zero(operation, row_text(x.shape(), first - is_zero.begin(), name));
  }
  return result;
}

}  // namespace

template <class T>
double dot(TensorView<const T> u, TensorView<const T> v) {
  check_vectors({"dot", "u", "v"}, u.shape(), v.shape());
  return plain_dot(u, v);
}

template <class T>
double distance(TensorView<const T> x, TensorView<const T> y) {
  check_vectors({"distance", "x", "y"}, x.shape(), y.shape());
  return detail::safe_length<T>(
      [&](double scale) {
        return over_differences(
            x, y,
            [&](const double* differences, std::size_t n) {
              return detail::sum_squares_run(differences, n, scale);
            },
            plus);
      },
      [&] {
        return over_differences(
            x, y,
            [](const double* differences, std::size_t n) {
              return detail::largest_magnitude_run(differences, n);
            },
            detail::larger);
      });
}

template <class T>
Tensor<T> normalize(TensorView<const T> x, const DirectionOptions& options) {
  return normalized(x, "normalize", "x", options);
}

template <class T>
double cosine_similarity(TensorView<const T> a, TensorView<const T> b,
                         const DirectionOptions& options) {
  check_vectors({"cosine_similarity", "a", "b"}, a.shape(), b.shape());
  const double length_a = norm(a);
  const double length_b = norm(b);
  if (length_a == 0 || length_b == 0) {
    if (options.zero_vector == ZeroVector::error) {
      refuse_zero("cosine_similarity", length_a == 0 ? "a" : "b");
    }
    return direction_of_zero(options.zero_vector);
  }
  const double lengths = length_a * length_b;
  // Products of the elements may have left the range of double where this has, or nearly.
  const bool is_safe = lengths > 0x1p-800 && lengths < 0x1p1000;
  const double cosine = is_safe ? plain_dot(a, b) / lengths : dot(normalize(a), normalize(b));
  return std::isnan(cosine) ? cosine : std::clamp(cosine, -1.0, 1.0);
}

template <class T>
Tensor<T> cosine_similarities(TensorView<const T> a, TensorView<const T> b,
                              const DirectionOptions& options) {
  const Names names{"cosine_similarities", "a", "b"};
  if (a.rank() != 2 || b.rank() != 2) {
    throw_shape_error(both(names, a.shape(), b.shape()) + ", but both must be matrices");
  }
  check_same_axis(names, a.shape(), b.shape(), "the rows");
  const Tensor<T> unit_a = normalized(a, names.operation, names.left, options);
  const Tensor<T> unit_b = normalized(b, names.operation, names.right, options);
  std::string row_name = a.shape().name(0);
  std::string column_name = b.shape().name(0);
  if (column_name == row_name) column_name.clear();
  Tensor<T> table = Tensor<T>::uninitialized(
      Shape({a.size(0), b.size(0)}, {std::move(row_name), std::move(column_name)}));
  blas::gemm(T{1}, unit_a.view(), unit_b.view().transpose(), T{0}, table.view());
  // Rows without elements are zero vectors; the product, a sum of nothing, knows no NaN.
  if (a.size(1) == 0) {
    std::fill_n(table.data(), table.count(),
                static_cast<T>(direction_of_zero(options.zero_vector)));
  }
  for (Index i = 0; i < table.count(); ++i) {
    T& cosine = table.data()[i];
    if (!std::isnan(cosine)) cosine = std::clamp(cosine, T{-1}, T{1});
  }
  return table;
}

template double dot(TensorView<const float>, TensorView<const float>);
template double dot(TensorView<const double>, TensorView<const double>);
template double distance(TensorView<const float>, TensorView<const float>);
template double distance(TensorView<const double>, TensorView<const double>);
template Tensor<float> normalize(TensorView<const float>, const DirectionOptions&);
template Tensor<double> normalize(TensorView<const double>, const DirectionOptions&);
template double cosine_similarity(TensorView<const float>, TensorView<const float>,
                                  const DirectionOptions&);
template double cosine_similarity(TensorView<const double>, TensorView<const double>,
                                  const DirectionOptions&);
template Tensor<float> cosine_similarities(TensorView<const float>, TensorView<const float>,
                                           const DirectionOptions&);
template Tensor<double> cosine_similarities(TensorView<const double>, TensorView<const double>,
                                            const DirectionOptions&);

}  // namespace eckart

#include "eckart/linalg/solve.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/lu_solver.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/minimum_norm.h"
#include "eckart/linalg/positive_definite.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {
namespace {

const SingularText solve_text{
    "a x = b has one answer for every b only when no row depends on others",
    "lstsq gives the closest answer, classify_system says whether there is an exact one"};

// Powers of two that bring the diagonal of a positive definite matrix, scaled from both sides, near
// 1: rows in different units do not make it near singular.
template <class T>
std::vector<T> symmetric_scales(TensorView<const T> a) {
  std::vector<T> scales;
  for (Index i = 0; i < a.size(0); ++i) {
    int exponent = 0;
    std::frexp(a(i, i), &exponent);
    scales.push_back(std::ldexp(T{1}, -exponent / 2));
  }
  return scales;
}

template <class T>
void multiply_columns(Tensor<T>& x, const std::vector<T>& scales) {
  for (Index row = 0; row < x.size(0); ++row) {
    T* const elements = x.data() + row * x.size(1);
    for (std::size_t i = 0; i < scales.size(); ++i) elements[i] *= scales[i];
  }
}

template <class T>
T scaled_norm(TensorView<const T> a, const std::vector<T>& scales) {
  T norm{};
  for (std::size_t row = 0; row < scales.size(); ++row) {
    T sum{};
    for (std::size_t column = 0; column < scales.size(); ++column) {
      sum += std::abs(a(row, column) * scales[row] * scales[column]);
    }
    norm = std::max(norm, sum);
  }
  return norm;
}

// Right-hand sides in the rows of `x` (n_rhs x n).
template <class T>
void solve_positive_definite(TensorView<const T> a, Tensor<T>& x) {
  const Index n = a.size(0);
  Tensor<T> factor =
      factor_positive_definite("solve", a, "without the kind it takes any square matrix");
  if (x.count() == 0) return;
  const std::vector<T> scales = symmetric_scales(a);
  for (Index row = 0; row < n; ++row) {
    for (Index column = 0; column <= row; ++column) {
      factor(row, column) *= scales[static_cast<std::size_t>(row)];
    }
  }
  const T reciprocal = blas::pocon(false, n, factor.data(), n, scaled_norm(a, scales));
  if (!(reciprocal >= std::numeric_limits<T>::epsilon())) {
    throw_singular("solve", a, reciprocal, solve_text);
  }
  multiply_columns(x, scales);
  blas::potrs(false, n, x.size(0), factor.data(), n, x.data(), n);
  multiply_columns(x, scales);
}

template <class T>
void solve_triangular(TensorView<const T> a, bool lower, Tensor<T>& x) {
  const Index n = a.size(0);
  if (x.count() == 0) return;
  // Rows of a are LAPACK's columns: a lower triangle is the transpose of its upper one.
  const Tensor<T> rows = row_major_copy(a);
  const blas::LapackInt zero =
      blas::trtrs(!lower, true, false, n, x.size(0), rows.data(), n, x.data(), n);
  if (zero == 0) return;
  const std::string at = std::to_string(zero - 1);
  throw_argument_error("solve: a is " + to_string(a.shape()) + " and singular: it has 0 at (" + at +
                           ", " + at + "), but no diagonal element of a triangular matrix may be 0",
                       solve_text.hint);
}

// A determinant as sign * 2^exponent * mantissa, mantissa in [1/2, 1) or 0.
struct ScaledDeterminant {
  double mantissa = 1;
  Index exponent = 0;
};

template <class T>
ScaledDeterminant scaled_determinant(std::string_view operation, TensorView<const T> a) {
  check_square(operation, "a", a.shape());
  check_factorable(operation, a);
  ScaledDeterminant result;
  const Index n = a.size(0);
  if (n == 0) return result;
  Tensor<T> factors = row_major_copy(a);  // the transpose has the same determinant
  std::vector<blas::LapackInt> pivots(static_cast<std::size_t>(n));
  blas::getrf(n, n, factors.data(), n, pivots.data());
  for (Index i = 0; i < n; ++i) {
    const bool exchanged = pivots[static_cast<std::size_t>(i)] != i + 1;
    int exponent = 0;
    result.mantissa = std::frexp(
        result.mantissa * static_cast<double>(factors(i, i)) * (exchanged ? -1 : 1), &exponent);
    result.exponent += exponent;
  }
  return result;
}

}  // namespace

template <class T>
Tensor<T> solve(TensorView<const T> a, TensorView<const T> b, const SolveOptions& options) {
  // A matrix that is no square one fits lstsq alone, whatever b is.
  if (a.rank() == 2) check_square("solve", "a", a.shape(), "lstsq solves systems of any shape");
  check_right_side("solve", a.shape(), b.shape());
  check_factorable("solve", a);
  check_finite("solve", "b", b);
  Tensor<T> x = transposed_copy(as_columns(b));
  switch (options.kind) {
    case MatrixKind::general:
      LuSolver<T>("solve", a, solve_text).solve(x);
      break;
    case MatrixKind::positive_definite:
      solve_positive_definite(a, x);
      break;
    case MatrixKind::lower_triangular:
      solve_triangular(a, true, x);
      break;
    case MatrixKind::upper_triangular:
      solve_triangular(a, false, x);
      break;
  }
  check_answer<T>("solve", b.shape(), x.view());
  return transposed_copy<T>(x.view()).reshaped(answer_shape(a.shape(), b.shape()));
}

template <class T>
Tensor<T> inverse(TensorView<const T> a) {
  check_square("inverse", "a", a.shape(), "pinv gives the pseudo-inverse of a matrix of any shape");
  check_factorable("inverse", a);
  const Index n = a.size(0);
  Tensor<T> x({n, n});
  for (Index i = 0; i < n; ++i) x(i, i) = T{1};
  LuSolver<T>("inverse", a,
              {"only a matrix with no row that depends on others has an inverse",
               "pinv gives the pseudo-inverse, lstsq solves without either"})
      .solve(x);
  const bool named = a.shape().has_names();
  return transposed_copy<T>(x.view()).reshaped(
      shape_with_names({n, n}, {named ? a.shape().name(1) : "", named ? a.shape().name(0) : ""}));
}

template <class T>
T determinant(TensorView<const T> a) {
  const ScaledDeterminant result = scaled_determinant("determinant", a);
  // ldexp itself gives infinity and 0 beyond these.
  const Index exponent = std::clamp<Index>(result.exponent, -10000, 10000);
  return static_cast<T>(std::ldexp(result.mantissa, static_cast<int>(exponent)));
}

template <class T>
LogDeterminant<T> log_determinant(TensorView<const T> a) {
  const ScaledDeterminant result = scaled_determinant("log_determinant", a);
  if (result.mantissa == 0) return {T{0}, -std::numeric_limits<T>::infinity()};
  const double log_abs =
      std::log(std::abs(result.mantissa)) + static_cast<double>(result.exponent) * std::log(2.0);
  return {result.mantissa > 0 ? T{1} : T{-1}, static_cast<T>(log_abs)};
}

#define ECKART_INSTANTIATE(T)                                                              \
  template Tensor<T> solve(TensorView<const T>, TensorView<const T>, const SolveOptions&); \
  template Tensor<T> inverse(TensorView<const T>);                                         \
  template T determinant(TensorView<const T>);                                             \
  template LogDeterminant<T> log_determinant(TensorView<const T>);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart

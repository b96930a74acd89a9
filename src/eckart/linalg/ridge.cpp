#include "eckart/linalg/ridge.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/minimum_norm.h"
#include "eckart/linalg/numerical_rank.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

void check_strength(std::string_view operation, double strength) {
  if (strength >= 0 && std::isfinite(strength)) return;
  throw_argument_error(std::string(operation) + ": strength is " + number_text(strength) +
                       ", but it must be a number from 0");
}

template <class T>
void check_arguments(std::string_view operation, TensorView<const T> a, TensorView<const T> b) {
  check_right_side(operation, a.shape(), b.shape());
  check_factorable(operation, a);
  check_finite(operation, "b", b);
}

// strength / (s^2 + strength): the share of a component that ridge leaves in the residual. Squares
// of the ratio alone, since those of s may overflow.
double left_share(double s, double strength) {
  if (strength == 0) return s > 0 ? 0 : 1;
  const double ratio = s / std::sqrt(strength);
  return 1 / (1 + ratio * ratio);
}

// The SVD of a, and u^T b.
template <class T>
struct Factored {
  Svd<T> factors;
  Index rank;
  Tensor<T> coefficients;  // rank x n_rhs
};

template <class T>
Factored<T> factored(TensorView<const T> a, TensorView<const T> b) {
  Svd<T> factors = svd(a);
  const Index rank = numerical_rank<T>(factors.s.view(), a.shape(), {});
  Tensor<T> coefficients({rank, b.size(1)});
  blas::gemm(T{1}, std::as_const(factors.u).view().slice(1, {0, rank}).transpose(), b, T{0},
             coefficients.view());
  return {std::move(factors), rank, std::move(coefficients)};
}

template <class T>
Tensor<T> answer(const Factored<T>& problem, double strength) {
  const Tensor<T>& s = problem.factors.s;
  Tensor<T> scaled = problem.coefficients;
  for (Index row = 0; row < problem.rank; ++row) {
    const double value = static_cast<double>(s(row));
    const T factor = static_cast<T>(1 / (value + strength / value));
    for (Index column = 0; column < scaled.size(1); ++column) scaled(row, column) *= factor;
  }
  const TensorView<const T> vt = problem.factors.vt.view().slice(0, {0, problem.rank});
  Tensor<T> x({vt.size(1), scaled.size(1)});
  blas::gemm(T{1}, vt.transpose(), std::as_const(scaled).view(), T{0}, x.view());
  return x;
}

// What no strength can fit: b - u u^T b, and 1 - (u u^T)_ii of every row. Both are 0 where u is
// square, and not left to rounding there: their quotient is the error of a row.
template <class T>
struct Unreachable {
  Tensor<double> residual;           // m x n_rhs
  std::vector<double> leverage_gap;  // m
};

template <class T>
Unreachable<T> unreachable(const Factored<T>& problem, TensorView<const T> b) {
  const Index m = b.size(0);
  Unreachable<T> result{Tensor<double>(Shape{m, b.size(1)}),
                        std::vector<double>(static_cast<std::size_t>(m), 0.0)};
  if (problem.rank == m) return result;
  for (Index row = 0; row < m; ++row) {
    double gap = 1;
    for (Index i = 0; i < problem.rank; ++i) {
      const double u = static_cast<double>(problem.factors.u(row, i));
      gap -= u * u;
    }
    result.leverage_gap[static_cast<std::size_t>(row)] = std::max(gap, 0.0);
    for (Index column = 0; column < b.size(1); ++column) {
      double left = static_cast<double>(b(row, column));
      for (Index i = 0; i < problem.rank; ++i) {
        left -= static_cast<double>(problem.factors.u(row, i)) *
                static_cast<double>(problem.coefficients(i, column));
      }
      result.residual(row, column) = left;
    }
  }
  return result;
}

template <class T>
double loo_error(const Factored<T>& problem, const Unreachable<T>& rest, double strength) {
  const Index m = rest.residual.size(0);
  const Index n_rhs = rest.residual.size(1);
  // A row whose own share is all but rounding can't be predicted from the others.
  const double rounding = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
  std::vector<double> left;
  for (Index i = 0; i < problem.rank; ++i) {
    left.push_back(left_share(static_cast<double>(problem.factors.s(i)), strength));
  }
  double sum = 0;
  for (Index row = 0; row < m; ++row) {
    double gap = rest.leverage_gap[static_cast<std::size_t>(row)];
    std::vector<double> weights(left.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double u = static_cast<double>(problem.factors.u(row, i));
      weights[i] = u * left[i];
      gap += u * weights[i];
    }
    // With a square u nothing cancels in the gap, however small it is.
    if (gap <= (problem.rank == m ? 0.0 : rounding)) return std::numeric_limits<double>::infinity();
    for (Index column = 0; column < n_rhs; ++column) {
      double residual = rest.residual(row, column);
      for (std::size_t i = 0; i < left.size(); ++i) {
        residual += weights[i] * static_cast<double>(problem.coefficients(i, column));
      }
      sum += residual / gap * (residual / gap);
    }
  }
  return sum / static_cast<double>(std::max<Index>(m * n_rhs, 1));
}

std::vector<double> default_strengths(double largest) {
  if (!std::isnormal(largest * largest * 1e-9) || !std::isfinite(largest * largest * 1e3)) {
    throw_argument_error("ridge_cv: a's largest singular value is " + number_text(largest) +
                             ", but strengths in the units of its square must be in the range of "
                             "a double",
                         "a times a constant has the same answers divided by it");
  }
  std::vector<double> strengths;
  for (int half_decade = -18; half_decade <= 6; ++half_decade) {
    strengths.push_back(std::pow(10.0, half_decade / 2.0) * largest * largest);
  }
  return strengths;
}

}  // namespace

template <class T>
Ridge<T> ridge(TensorView<const T> a, TensorView<const T> b, double strength) {
  check_arguments("ridge", a, b);
  check_strength("ridge", strength);
  const TensorView<const T> sides = as_columns(b);
  const Factored<T> problem = factored(a, sides);
  Tensor<T> x = answer(problem, strength);
  const T norm = residual_norm<T>(a, x.view(), sides);
  return {std::move(x).reshaped(answer_shape(a.shape(), b.shape())), norm, strength, problem.rank,
          condition_of<T>(problem.factors.s.view(), problem.rank)};
}

template <class T>
RidgeCv<T> ridge_cv(TensorView<const T> a, TensorView<const T> b, const RidgeCvOptions& options) {
  check_arguments("ridge_cv", a, b);
  for (const double strength : options.strengths) check_strength("ridge_cv", strength);
  if (a.size(0) == 0) {
    throw_shape_error("ridge_cv: a is " + to_string(a.shape()) +
                      ", but there must be a row to leave out");
  }
  const TensorView<const T> sides = as_columns(b);
  const Factored<T> problem = factored(a, sides);
  const Unreachable<T> rest = unreachable(problem, sides);
  const double largest = problem.rank > 0 ? static_cast<double>(problem.factors.s(0)) : 1;
  RidgeCv<T> result{};
  result.rank = problem.rank;
  result.condition_number = condition_of<T>(problem.factors.s.view(), problem.rank);
  result.strengths = options.strengths.empty() ? default_strengths(largest) : options.strengths;
  result.strength = result.strengths.front();
  double least = std::numeric_limits<double>::infinity();
  for (const double strength : result.strengths) {
    const double error = loo_error(problem, rest, strength);
    result.loo_errors.push_back(error);
    if (error < least || (error == least && strength > result.strength)) {
      least = error;
      result.strength = strength;
    }
  }
  Tensor<T> x = answer(problem, result.strength);
  result.residual_norm = residual_norm<T>(a, x.view(), sides);
  result.x = std::move(x).reshaped(answer_shape(a.shape(), b.shape()));
  return result;
}

#define ECKART_INSTANTIATE(T)                                                \
  template Ridge<T> ridge(TensorView<const T>, TensorView<const T>, double); \
  template RidgeCv<T> ridge_cv(TensorView<const T>, TensorView<const T>, const RidgeCvOptions&);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart

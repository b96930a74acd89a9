#include "eckart/linalg/lu_solver.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/singular_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace eckart {
namespace {

// The power of two that brings `magnitude` into [1/2, 1), as far as T has both it and its inverse.
template <class T>
T scale_of(T magnitude) {
  constexpr int limit = std::numeric_limits<T>::max_exponent - 2;
  if (magnitude == T{0}) return T{1};
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  return std::ldexp(T{1}, std::clamp(-exponent, -limit, limit));
}

template <class T>
T norm_1(const Tensor<T>& columns) {
  T largest{};
  for (Index column = 0; column < columns.size(0); ++column) {
    T sum{};
    for (Index row = 0; row < columns.size(1); ++row) sum += std::abs(columns(column, row));
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

template <class T>
void throw_singular(std::string_view operation, TensorView<const T> a, T reciprocal,
                    const SingularText& text) {
  std::string what = " and singular: ";
  if (reciprocal > T{0}) {
    what = " and singular to working precision (reciprocal condition number " +
           number_text(static_cast<double>(reciprocal)) + ", below " +
           number_text(static_cast<double>(std::numeric_limits<T>::epsilon())) + "): ";
  }
  throw_argument_error(std::string(operation) + ": a is " + to_string(a.shape()) + what +
                           dependent_row_text(a) + ", but " + text.rule,
                       text.hint);
}

template <class T>
void LuSolver<T>::scale(TensorView<const T> a) {
  for (Index row = 0; row < n_; ++row) {
    T largest{};
    for (Index column = 0; column < n_; ++column) {
      largest = std::max(largest, std::abs(a(row, column)));
    }
    row_scales_.push_back(scale_of(largest));
  }
  for (Index column = 0; column < n_; ++column) {
    T* const elements = factors_.data() + column * n_;
    T largest{};
    for (Index row = 0; row < n_; ++row) {
      elements[row] *= row_scales_[static_cast<std::size_t>(row)];
      largest = std::max(largest, std::abs(elements[row]));
    }
    column_scales_.push_back(scale_of(largest));
    for (Index row = 0; row < n_; ++row) elements[row] *= column_scales_.back();
  }
}

template <class T>
LuSolver<T>::LuSolver(std::string_view operation, TensorView<const T> a, const SingularText& text)
    : n_(a.size(0)), factors_(transposed_copy(a)), pivots_(static_cast<std::size_t>(n_)) {
  if (n_ == 0) return;
  scale(a);
  const T norm = norm_1(factors_);
  const bool exactly = blas::getrf(n_, n_, factors_.data(), n_, pivots_.data()) > 0;
  const T reciprocal = exactly ? T{0} : blas::gecon(n_, factors_.data(), n_, norm);
  if (!(reciprocal >= std::numeric_limits<T>::epsilon())) {
    throw_singular(operation, a, reciprocal, text);
  }
}

template <class T>
void LuSolver<T>::solve(Tensor<T>& b) const {
  const Index n_rhs = b.size(0);
  if (n_ == 0 || n_rhs == 0) return;
  const auto multiply = [&](const std::vector<T>& scales) {
    for (Index rhs = 0; rhs < n_rhs; ++rhs) {
      T* const elements = b.data() + rhs * n_;
      for (Index i = 0; i < n_; ++i) elements[i] *= scales[static_cast<std::size_t>(i)];
    }
  };
  multiply(row_scales_);
  blas::getrs(false, n_, n_rhs, factors_.data(), n_, pivots_.data(), b.data(), n_);
  multiply(column_scales_);
}

template void throw_singular(std::string_view, TensorView<const float>, float, const SingularText&);
template void throw_singular(std::string_view, TensorView<const double>, double,
                             const SingularText&);
template class LuSolver<float>;
template class LuSolver<double>;

}  // namespace eckart

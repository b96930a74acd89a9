#include "eckart/linalg/cholesky.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/positive_definite.h"

#include <algorithm>
#include <string>

namespace eckart {
namespace {

// What elimination leaves of diagonal element `at` (from 0): a_kk - ||l_k||^2 with L l_k = a_k, where
// L is the factor of the leading block before it.
template <class T>
double pivot_at(TensorView<const T> a, Index at) {
  double pivot = static_cast<double>(a(at, at));
  if (at == 0) return pivot;
  const TensorView<const T> block = a.slice(0, {0, at}).slice(1, {0, at});
  Tensor<T> factor = row_major_copy(block);
  blas::potrf(false, at, factor.data(), at);
  Tensor<T> row = Tensor<T>(a.select(0, at).slice(0, {0, at}));
  blas::trtrs(false, true, false, at, 1, factor.data(), at, row.data(), at);
  for (Index i = 0; i < at; ++i) {
    pivot -= static_cast<double>(row(i)) * static_cast<double>(row(i));
  }
  return pivot;
}

}  // namespace

template <class T>
Tensor<T> factor_positive_definite(std::string_view operation, TensorView<const T> a,
                                   const std::string& hint) {
  check_symmetric(operation, "a", a, hint);
  const Index n = a.size(0);
  Tensor<T> factor = row_major_copy(a);
  if (n == 0) return factor;
  // The lower triangle of rows is LAPACK's upper triangle of columns.
  const blas::LapackInt failed = blas::potrf(false, n, factor.data(), n);
  if (failed > 0) {
    const std::string order = std::to_string(failed);
    throw_argument_error(
        std::string(operation) + ": a is " + to_string(a.shape()) + " and its pivot " + order +
            " is " + number_text(pivot_at(a, failed - 1)) + " (the leading minor of order " +
            order + " is not positive), but every pivot of a positive definite " +
            "matrix is above 0",
        hint);
  }
  for (Index row = 0; row < n; ++row) {
    std::fill(factor.data() + row * n + row + 1, factor.data() + (row + 1) * n, T{0});
  }
  return factor;
}

template <class T>
Tensor<T> cholesky(TensorView<const T> a) {
  check_square("cholesky", "a", a.shape());
  check_factorable("cholesky", a);
  Tensor<T> l =
      factor_positive_definite("cholesky", a, "lu takes any matrix, eigh any symmetric one");
  const bool named = a.shape().has_names();
  return std::move(l).reshaped(
      shape_with_names({a.size(0), a.size(0)}, {named ? a.shape().name(0) : "", ""}));
}

template Tensor<float> factor_positive_definite(std::string_view, TensorView<const float>,
                                                const std::string&);
template Tensor<double> factor_positive_definite(std::string_view, TensorView<const double>,
                                                 const std::string&);
template Tensor<float> cholesky(TensorView<const float>);
template Tensor<double> cholesky(TensorView<const double>);

}  // namespace eckart

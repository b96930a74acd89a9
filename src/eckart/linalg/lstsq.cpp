#include "eckart/linalg/lstsq.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/minimum_norm.h"
#include "eckart/linalg/norms.h"
#include "eckart/linalg/numerical_rank.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Answers as n x n_rhs.
template <class T>
struct Answer {
  Tensor<T> x;
  Index rank;
  T condition_number;
  LstsqMethod method;
};

// The R of LAPACK's columns (n columns of m elements).
template <class T>
Tensor<T> upper_triangle(const Tensor<T>& columns) {
  const Index n = columns.size(0);
  Tensor<T> r({n, n});
  for (Index column = 0; column < n; ++column) {
    for (Index row = 0; row <= column; ++row) r(row, column) = columns(column, row);
  }
  return r;
}

template <class T>
Answer<T> by_svd(TensorView<const T> a, TensorView<const T> b, const RankOptions& options) {
  const Svd<T> factors = svd(a);
  const Index rank = numerical_rank<T>(factors.s.view(), a.shape(), options);
  return {minimum_norm(factors, rank, b), rank, condition_of<T>(factors.s.view(), rank),
          LstsqMethod::svd};
}

template <class T>
Answer<T> by_qr(TensorView<const T> a, TensorView<const T> b, const RankOptions& options) {
  const Index m = a.size(0);
  const Index n = a.size(1);
  const Index n_rhs = b.size(1);
  Tensor<T> columns = transposed_copy(a);
  std::vector<T> tau(static_cast<std::size_t>(n));
  blas::geqrf(m, n, columns.data(), m, tau.data());
  Tensor<T> rotated = transposed_copy(b);  // one right-hand side a row
  blas::ormqr(true, m, n_rhs, n, columns.data(), m, tau.data(), rotated.data(), m);
  const Tensor<T> r = upper_triangle(columns);
  const Tensor<T> s = svd_values(r);
  const Index rank = numerical_rank<T>(s.view(), a.shape(), options);
  const T condition = condition_of<T>(s.view(), rank);
  if (rank < n) {
    const TensorView<const T> top = std::as_const(rotated).view().slice(1, {0, n}).transpose();
    return {minimum_norm(svd(r), rank, top), rank, condition, LstsqMethod::svd};
  }
  blas::trtrs(false, false, false, n, n_rhs, columns.data(), m, rotated.data(), m);
  const TensorView<const T> top = std::as_const(rotated).view().slice(1, {0, n});
  return {transposed_copy(top), rank, condition, LstsqMethod::qr};
}

}  // namespace

std::string_view to_string(LstsqMethod method) { return method == LstsqMethod::qr ? "qr" : "svd"; }

template <class T>
Tensor<T> minimum_norm(const Svd<T>& factors, Index rank, TensorView<const T> b) {
  const TensorView<const T> u = factors.u.view().slice(1, {0, rank});
  const TensorView<const T> vt = factors.vt.view().slice(0, {0, rank});
  Tensor<T> coefficients({rank, b.size(1)});
  blas::gemm(T{1}, u.transpose(), b, T{0}, coefficients.view());
  for (Index row = 0; row < rank; ++row) {
    for (Index column = 0; column < b.size(1); ++column)
      coefficients(row, column) /= factors.s(row);
  }
  Tensor<T> x({vt.size(1), b.size(1)});
  blas::gemm(T{1}, vt.transpose(), std::as_const(coefficients).view(), T{0}, x.view());
  return x;
}

template <class T>
T euclidean_norm(TensorView<const T> a) {
  return static_cast<T>(norm(a));
}

template <class T>
T residual_norm(TensorView<const T> a, TensorView<const T> x, TensorView<const T> b) {
  Tensor<T> residual = Tensor<T>(b);
  blas::gemm(T{-1}, a, x, T{1}, residual.view());
  return euclidean_norm<T>(residual.view());
}

Shape answer_shape(const Shape& a, const Shape& b) {
  std::vector<Index> sizes = b.sizes();
  sizes[0] = a.size(1);
  std::vector<std::string> names{a.has_names() ? a.name(1) : ""};
  if (b.rank() == 2) names.push_back(b.has_names() ? b.name(1) : "");
  return shape_with_names(std::move(sizes), std::move(names));
}

template <class T>
LeastSquares<T> lstsq(TensorView<const T> a, TensorView<const T> b, const RankOptions& options) {
  check_right_side("lstsq", a.shape(), b.shape());
  check_factorable("lstsq", a);
  check_finite("lstsq", "b", b);
  check_tolerance("lstsq", options);
  const TensorView<const T> sides = as_columns(b);
  Answer<T> answer = a.size(0) >= a.size(1) && a.size(1) > 0 && sides.size(1) > 0
                         ? by_qr(a, sides, options)
                         : by_svd(a, sides, options);
  check_answer<T>("lstsq", b.shape(), answer.x.view());
  const T norm = residual_norm<T>(a, answer.x.view(), sides);
  return {std::move(answer.x).reshaped(answer_shape(a.shape(), b.shape())), norm, answer.rank,
          answer.condition_number, answer.method};
}

#define ECKART_INSTANTIATE(T)                                                              \
  template Tensor<T> minimum_norm(const Svd<T>&, Index, TensorView<const T>);              \
  template T residual_norm(TensorView<const T>, TensorView<const T>, TensorView<const T>); \
  template T euclidean_norm(TensorView<const T>);                                          \
  template LeastSquares<T> lstsq(TensorView<const T>, TensorView<const T>, const RankOptions&);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart

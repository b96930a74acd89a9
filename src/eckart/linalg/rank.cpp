#include "eckart/linalg/rank.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/numerical_rank.h"
#include "eckart/linalg/signs.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace eckart {
namespace {

// The last n - rank columns of the Q of a QR factorisation of the first `rank` rows of vt.
template <class T>
Tensor<T> complement(const Tensor<T>& vt, Index rank) {
  const Index n = vt.size(1);
  Tensor<T> basis({n, n});  // rows here, columns to LAPACK
  std::copy_n(vt.data(), rank * n, basis.data());
  std::vector<T> tau(static_cast<std::size_t>(rank));
  if (rank > 0) blas::geqrf(n, rank, basis.data(), n, tau.data());
  blas::orgqr(n, n, rank, basis.data(), n, tau.data());
  const TensorView<const T> view = basis.view();
  return transposed_copy(view.slice(0, {rank, n}));
}

}  // namespace

void check_tolerance(std::string_view operation, const RankOptions& options) {
  if (!options.tolerance) return;
  if (*options.tolerance >= 0 && std::isfinite(*options.tolerance)) return;
  throw_argument_error(std::string(operation) + ": tolerance is " +
                       number_text(*options.tolerance) + ", but it must be a number from 0");
}

template <class T>
Index numerical_rank(TensorView<const T> s, const Shape& shape, const RankOptions& options) {
  if (s.size(0) == 0) return 0;
  const double longer = static_cast<double>(std::max(shape.size(0), shape.size(1)));
  const double rounding =
      static_cast<double>(s(0)) * longer * static_cast<double>(std::numeric_limits<T>::epsilon());
  const double tolerance = options.tolerance.value_or(rounding);
  Index rank = 0;
  while (rank < s.size(0) && static_cast<double>(s(rank)) > tolerance) ++rank;
  return rank;
}

template <class T>
T condition_of(TensorView<const T> s, Index rank) {
  const Index k = s.size(0);
  if (rank < k || k == 0) return std::numeric_limits<T>::infinity();
  return s(0) / s(k - 1);
}

template <class T>
Tensor<T> null_space_of(const Svd<T>& factors, Index rank) {
  const Index k = factors.vt.size(0);
  const Index n = factors.vt.size(1);
  const TensorView<const T> vt = factors.vt.view();
  const bool named = vt.shape().has_names();
  const Shape shape = shape_with_names(
      {n, n - rank}, {named ? vt.shape().name(1) : "", std::string(named ? component_axis : "")});
  if (shape.count() == 0) return Tensor<T>(shape);
  Tensor<T> basis = k == n ? transposed_copy(vt.slice(0, {rank, n})) : complement(factors.vt, rank);
  fix_signs(basis.view());
  return std::move(basis).reshaped(shape);
}

template <class T>
Index matrix_rank(TensorView<const T> a, const RankOptions& options) {
  check_factorable("matrix_rank", a);
  check_tolerance("matrix_rank", options);
  const Tensor<T> s = svd_values(a);
  return numerical_rank<T>(s.view(), a.shape(), options);
}

template <class T>
Tensor<T> null_space(TensorView<const T> a, const RankOptions& options) {
  check_factorable("null_space", a);
  check_tolerance("null_space", options);
  const Svd<T> factors = svd(a);
  return null_space_of(factors, numerical_rank<T>(factors.s.view(), a.shape(), options));
}

template <class T>
Tensor<T> column_space(TensorView<const T> a, const RankOptions& options) {
  check_factorable("column_space", a);
  check_tolerance("column_space", options);
  const Svd<T> factors = svd(a);
  const Index rank = numerical_rank<T>(factors.s.view(), a.shape(), options);
  return Tensor<T>(factors.u.view().slice(1, {0, rank}));
}

template <class T>
T condition_number(TensorView<const T> a) {
  check_factorable("condition_number", a);
  if (a.count() == 0) {
    throw_shape_error("condition_number: a is " + to_string(a.shape()) +
                      ", but an empty matrix has no singular values");
  }
  const Tensor<T> s = svd_values(a);
  return condition_of<T>(s.view(), numerical_rank<T>(s.view(), a.shape(), {}));
}

#define ECKART_INSTANTIATE(T)                                                           \
  template Index numerical_rank(TensorView<const T>, const Shape&, const RankOptions&); \
  template T condition_of(TensorView<const T>, Index);                                  \
  template Tensor<T> null_space_of(const Svd<T>&, Index);                               \
  template Index matrix_rank(TensorView<const T>, const RankOptions&);                  \
  template Tensor<T> null_space(TensorView<const T>, const RankOptions&);               \
  template Tensor<T> column_space(TensorView<const T>, const RankOptions&);             \
  template T condition_number(TensorView<const T>);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart

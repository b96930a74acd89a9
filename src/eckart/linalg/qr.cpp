#include "eckart/linalg/qr.h"

#include "eckart/blas/lapack.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/matrix_checks.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

namespace eckart {
namespace {

// r from LAPACK's columns (m x n, as an n x m tensor), before q takes their place.
template <class T>
Tensor<T> triangle_of(const Tensor<T>& columns, Index k) {
  const Index n = columns.size(0);
  const Index m = columns.size(1);
  Tensor<T> r({k, n});
  for (Index column = 0; column < n; ++column) {
    for (Index row = 0; row <= std::min(column, k - 1); ++row) {
      r(row, column) = columns.data()[column * m + row];
    }
  }
  return r;
}

// q and r from the reflectors, with no diagonal element of r below 0.
template <class T>
Qr<T> unpack(Tensor<T>& columns, const std::vector<T>& tau) {
  const Index m = columns.size(1);
  const Index k = static_cast<Index>(tau.size());
  Tensor<T> r = triangle_of(columns, k);
  blas::orgqr(m, k, k, columns.data(), m, tau.data());
  for (Index i = 0; i < k; ++i) {
    if (!(r(i, i) < T{0})) continue;
    for (Index column = i; column < r.size(1); ++column) r(i, column) = -r(i, column);
    T* const q_column = columns.data() + i * m;
    for (Index row = 0; row < m; ++row) q_column[row] = -q_column[row];
  }
  const TensorView<const T> q(columns.data(), {k, m});
  return {transposed_copy(q), std::move(r)};
}

// The sizes of q and r are those of `a`'s factors; their outer axes have its names.
template <class T>
Qr<T> with_names_of(const Shape& a, Qr<T> factors) {
  if (!a.has_names()) return factors;
  const Index k = factors.q.size(1);
  const std::string component(component_axis);
  return {std::move(factors.q).reshaped(shape_with_names({a.size(0), k}, {a.name(0), component})),
          std::move(factors.r).reshaped(shape_with_names({k, a.size(1)}, {component, a.name(1)}))};
}

template <class T>
Qr<T> empty_factors(const Shape& a) {
  return {Tensor<T>(Shape{a.size(0), 0}), Tensor<T>(Shape{0, a.size(1)})};
}

}  // namespace

template <class T>
Qr<T> qr(TensorView<const T> a) {
  check_factorable("qr", a);
  const Index m = a.size(0);
  const Index n = a.size(1);
  if (a.count() == 0) return with_names_of(a.shape(), empty_factors<T>(a.shape()));
  Tensor<T> columns = transposed_copy(a);
  std::vector<T> tau(static_cast<std::size_t>(std::min(m, n)));
  blas::geqrf(m, n, columns.data(), m, tau.data());
  return with_names_of(a.shape(), unpack(columns, tau));
}

template <class T>
PivotedQr<T> qr_pivoted(TensorView<const T> a) {
  check_factorable("qr_pivoted", a);
  const Index m = a.size(0);
  const Index n = a.size(1);
  std::vector<Index> permutation(static_cast<std::size_t>(n));
  std::iota(permutation.begin(), permutation.end(), Index{0});
  Qr<T> factors = empty_factors<T>(a.shape());
  if (a.count() > 0) {
    Tensor<T> columns = transposed_copy(a);
    std::vector<T> tau(static_cast<std::size_t>(std::min(m, n)));
    std::vector<blas::LapackInt> pivots(static_cast<std::size_t>(n));
    blas::geqp3(m, n, columns.data(), m, pivots.data(), tau.data());
    std::transform(pivots.begin(), pivots.end(), permutation.begin(),
                   [](blas::LapackInt pivot) { return Index{pivot} - 1; });
    factors = unpack(columns, tau);
  }
  // r's columns are a's in another order, so that its column axis keeps no name.
  const bool named = a.shape().has_names();
  const Shape outer = shape_with_names({m, n}, {named ? a.shape().name(0) : "", ""});
  factors = with_names_of(outer, std::move(factors));
  return {std::move(factors.q), std::move(factors.r), std::move(permutation)};
}

template Qr<float> qr(TensorView<const float>);
template Qr<double> qr(TensorView<const double>);
template PivotedQr<float> qr_pivoted(TensorView<const float>);
template PivotedQr<double> qr_pivoted(TensorView<const double>);

}  // namespace eckart

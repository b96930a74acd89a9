#include "eckart/linalg/polar.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/minimum_norm.h"
#include "eckart/linalg/solve.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace eckart {
namespace {

template <class T>
Tensor<T> product(TensorView<const T> a, TensorView<const T> b) {
  Tensor<T> c({a.size(0), b.size(1)});
  blas::gemm(T{1}, a, b, T{0}, c.view());
  return c;
}

template <class T>
Tensor<T> with_rows_scaled(const Tensor<T>& matrix, const Tensor<T>& factors) {
  Tensor<T> scaled = matrix;
  for (Index row = 0; row < scaled.size(0); ++row) {
    for (Index column = 0; column < scaled.size(1); ++column) scaled(row, column) *= factors(row);
  }
  return scaled;
}

// A copy divided by its largest magnitude, and that: products of such neither overflow nor vanish.
template <class T>
struct Scaled {
  Tensor<T> matrix;
  T scale;
};

template <class T>
Scaled<T> scaled(TensorView<const T> a) {
  Scaled<T> result{Tensor<T>(a), T{0}};
  for_each_element([&](const T& x) { result.scale = std::max(result.scale, std::abs(x)); }, a);
  if (result.scale == T{0}) return result;
  for_each_element([&](T& x) { x /= result.scale; }, result.matrix.view());
  return result;
}

void check_shapes(const Shape& a, const Shape& b) {
  check_matrix("procrustes", "a", a);
  check_matrix("procrustes", "b", b);
  if (same_sizes(a, b)) return;
  std::string hint;
  if (a.size(0) == b.size(1) && a.size(1) == b.size(0)) hint = "with b transposed it fits";
  throw_shape_error("procrustes: a is " + to_string(a) + " and b is " + to_string(b) +
                        ", but both must have the same shape",
                    hint);
}

}  // namespace

template <class T>
Polar<T> polar(TensorView<const T> a) {
  check_factorable("polar", a);
  const Svd<T> factors = svd(a);
  const TensorView<const T> vt = factors.vt.view();
  const Tensor<T> s_vt = with_rows_scaled(factors.vt, factors.s);
  Tensor<T> u = product<T>(factors.u.view(), vt);
  Tensor<T> p = product<T>(vt.transpose(), s_vt.view());
  for (Index row = 0; row < p.size(0); ++row) {
    for (Index column = 0; column < row; ++column) {
      p(row, column) = p(column, row) = (p(row, column) + p(column, row)) / 2;
    }
  }
  const bool named = a.shape().has_names();
  const std::string columns = named ? a.shape().name(1) : "";
  return {std::move(u).reshaped(a.shape()),
          std::move(p).reshaped(shape_with_names({a.size(1), a.size(1)}, {"", columns}))};
}

template <class T>
Procrustes<T> procrustes(TensorView<const T> a, TensorView<const T> b,
                         const ProcrustesOptions& options) {
  check_shapes(a.shape(), b.shape());
  check_lapack_size("procrustes", "a", a.shape());
  check_finite("procrustes", "a", a);
  check_finite("procrustes", "b", b);
  const Scaled<T> from = scaled(a);
  const Scaled<T> to = scaled(b);
  const Tensor<T> overlap = product<T>(from.matrix.view().transpose(), to.matrix.view());
  Svd<T> factors = svd(overlap);
  const Index n = overlap.size(0);
  Tensor<T> rotation = product<T>(factors.u.view(), factors.vt.view());
  if (!options.reflection && n > 0 && determinant(rotation) < T{0}) {
    // The component that a reflection costs least is turned round.
    factors.s(n - 1) = -factors.s(n - 1);
    for (Index column = 0; column < n; ++column) {
      factors.vt(n - 1, column) = -factors.vt(n - 1, column);
    }
    rotation = product<T>(factors.u.view(), factors.vt.view());
  }
  double scale = options.scaling ? 0 : 1;
  if (options.scaling && from.scale > T{0}) {
    double trace = 0;
    for (Index i = 0; i < n; ++i) trace += static_cast<double>(factors.s(i));
    const double norm = static_cast<double>(euclidean_norm<T>(from.matrix.view()));
    scale = trace / (norm * norm) * static_cast<double>(to.scale) / static_cast<double>(from.scale);
  }
  Tensor<T> residual = Tensor<T>(b);
  blas::gemm(static_cast<T>(scale), a, std::as_const(rotation).view(), T{-1}, residual.view());
  const bool named = a.shape().has_names() && b.shape().has_names();
  return {std::move(rotation).reshaped(shape_with_names(
              {n, n}, {named ? a.shape().name(1) : "", named ? b.shape().name(1) : ""})),
          static_cast<T>(scale), euclidean_norm<T>(residual.view())};
}

#define ECKART_INSTANTIATE(T)                                                 \
  template Polar<T> polar(TensorView<const T>);                               \
  template Procrustes<T> procrustes(TensorView<const T>, TensorView<const T>, \
                                    const ProcrustesOptions&);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart

#include "eckart/linalg/orthonormalize.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace eckart {
namespace {

// CholeskyQR with a Gram matrix in double keeps a basis whose condition is at most this; beyond it
// the eigenvectors say which directions are left.
constexpr double largest_condition = 1e6;

template <class T>
void subtract_projection(TensorView<const T> basis, TensorView<T> y) {
  if (basis.size(1) == 0) return;
  Tensor<T> coefficients = Tensor<T>::uninitialized({basis.size(1), y.size(1)});
  blas::gemm<T>(T{1}, basis.transpose(), y, T{0}, coefficients.view());
  blas::gemm<T>(T{-1}, basis, coefficients, T{1}, y);
}

template <class T>
void multiply_in_place(TensorView<T> y, const Tensor<double>& by) {
  Tensor<T> rounded = Tensor<T>::uninitialized(by.shape());
  for (Index i = 0; i < by.count(); ++i) rounded.data()[i] = static_cast<T>(by.data()[i]);
  const Tensor<T> copy{TensorView<const T>(y)};
  blas::gemm<T>(T{1}, copy, rounded, T{0}, y.slice(1, {0, by.size(1)}));
}

// Inverse of the transposed lower Cholesky factor of g (b x b), which is what y is multiplied by;
// empty when g is not well enough conditioned.
Tensor<double> inverse_factor(const Tensor<double>& g) {
  const Index b = g.size(0);
  Tensor<double> factor(g);
  // Row-major, the lower triangle is LAPACK's upper one: g = L L^T with L row-major lower.
  if (blas::potrf(false, b, factor.data(), b) != 0) return Tensor<double>({0, 0});
  double least = factor(0, 0), largest = factor(0, 0);
  for (Index i = 0; i < b; ++i) {
    least = std::min(least, factor(i, i));
    largest = std::max(largest, factor(i, i));
    for (Index j = i + 1; j < b; ++j) factor(i, j) = 0;
  }
  if (!(least * largest_condition > largest)) return Tensor<double>({0, 0});
  // L^-T, row-major: solving with LAPACK's upper triangle R = L^T, column by column.
  Tensor<double> inverse({b, b});
  for (Index i = 0; i < b; ++i) inverse(i, i) = 1;
  blas::trtrs<double>(false, false, false, b, b, factor.data(), b, inverse.data(), b);
  // LAPACK's result, column-major, is R^-1; row-major it reads as its transpose.
  return Tensor<double>(TensorView<const double>(inverse.view().transpose()));
}

// Eigenvectors of g over the roots of their eigenvalues, those above `least` alone.
Tensor<double> inverse_root(const Tensor<double>& g, double least) {
  const Index b = g.size(0);
  Tensor<double> vectors(g);
  Tensor<double> values({b});
  blas::syevd(b, vectors.data(), b, values.data());
  Index n_kept = 0;
  while (n_kept < b && values(b - 1 - n_kept) > least) ++n_kept;
  Tensor<double> result({b, n_kept});
  for (Index j = 0; j < n_kept; ++j) {
    const Index from = b - 1 - j;
    const double scale = 1 / std::sqrt(values(from));
    for (Index i = 0; i < b; ++i) result(i, j) = vectors(from, i) * scale;
  }
  return result;
}

template <class T>
double squared_norm(TensorView<T> y) {
  double sum = 0;
  for_each_element(
      [&](const T& element) { sum += static_cast<double>(element) * static_cast<double>(element); },
      y);
  return sum;
}

}  // namespace

template <class T>
Index orthonormalize(TensorView<const T> basis, TensorView<T> y) {
  Index n_kept = y.size(1);
  if (n_kept == 0) return 0;
  // What is left of a column that lies in the basis is rounding of this size.
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  const double before = squared_norm(y);
  double least = before * 100 * unit * unit * static_cast<double>(y.size(1));
  // The second pass brings it to machine precision; a third one only where the first lost much.
  for (int pass = 0; pass < 3 && n_kept > 0; ++pass) {
    const TensorView<T> kept = y.slice(1, {0, n_kept});
    subtract_projection(basis, kept);
    const Tensor<double> g = blas::gram<T>(TensorView<const T>(kept));
    Tensor<double> by = inverse_factor(g);
    const bool is_well_conditioned = by.size(0) != 0;
    if (!is_well_conditioned) by = inverse_root(g, least);
    if (pass == 0 && is_well_conditioned) {
      // No direction may be rounding only because all are.
      double largest = 0;
      for (Index i = 0; i < g.size(0); ++i) largest = std::max(largest, g(i, i));
      if (largest <= least) return 0;
    }
    if (by.size(1) > 0) multiply_in_place(kept, by);
    n_kept = by.size(1);
    least = 0.01;  // from now on, columns have length 1
    if (pass == 1 && is_well_conditioned) break;
  }
  return n_kept;
}

template Index orthonormalize(TensorView<const float>, TensorView<float>);
template Index orthonormalize(TensorView<const double>, TensorView<double>);

}  // namespace eckart

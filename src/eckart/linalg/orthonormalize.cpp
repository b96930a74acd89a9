#include "eckart/linalg/orthonormalize.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

// Whether the columns of y are stored one behind the other, as the rows of a matrix.
template <class T>
bool lies_in_columns(const TensorView<T>& y) {
  return y.strides()[0] == 1 && y.strides()[1] == y.size(0) && y.size(0) > 1;
}

template <class T>
Tensor<T> copy_of(TensorView<const T> y) {
  if (!lies_in_columns(y)) return Tensor<T>(y);
  return Tensor<T>(y.transpose());
}

template <class T>
void multiply_in_place(TensorView<T> y, const Tensor<double>& by) {
  Tensor<T> rounded = Tensor<T>::uninitialized(by.shape());
  for (Index i = 0; i < by.count(); ++i) rounded.data()[i] = static_cast<T>(by.data()[i]);
  const bool turned = lies_in_columns(y);
  const Tensor<T> copy = copy_of<T>(y);
  const TensorView<const T> from = turned ? copy.view().transpose() : copy.view();
  blas::gemm<T>(T{1}, from, rounded, T{0}, y.slice(1, {0, by.size(1)}));
}

// y^T y in double.
template <class T>
Tensor<double> gram_of(TensorView<const T> y) {
  if (!lies_in_columns(y)) return blas::gram<T>(y);
  const Index b = y.size(1);
  Tensor<double> rows = Tensor<double>::uninitialized({b, y.size(0)});
  std::copy_n(y.data(), rows.count(), rows.data());
  Tensor<double> g = Tensor<double>::uninitialized({b, b});
  blas::gemm<double>(1, rows, rows.view().transpose(), 0, g.view());
  return g;
}

// Inverse of the transposed lower Cholesky factor of a Gram matrix, which is what y is multiplied
// by: b x b, or empty when the matrix is not well enough conditioned.
struct InverseFactor {
  Tensor<double> matrix{{0, 0}};
  double least_pivot = 0;  // of the factor: what the first columns leave of some column

  bool empty() const { return matrix.size(0) == 0; }
};

InverseFactor inverse_factor(const Tensor<double>& g) {
  const Index b = g.size(0);
  Tensor<double> factor(g);
  // Row-major, the lower triangle is LAPACK's upper one: g = L L^T with L row-major lower.
  if (blas::potrf(false, b, factor.data(), b) != 0) return {};
  double least = factor(0, 0), largest = factor(0, 0);
  for (Index i = 0; i < b; ++i) {
    least = std::min(least, factor(i, i));
    largest = std::max(largest, factor(i, i));
    for (Index j = i + 1; j < b; ++j) factor(i, j) = 0;
  }
  if (!(least * largest_condition > largest)) return {};
  // L^-T, row-major: solving with LAPACK's upper triangle R = L^T, column by column.
  Tensor<double> inverse({b, b});
  for (Index i = 0; i < b; ++i) inverse(i, i) = 1;
  blas::trtrs<double>(false, false, false, b, b, factor.data(), b, inverse.data(), b);
  // LAPACK's result, column-major, is R^-1; row-major it reads as its transpose.
  return {Tensor<double>(TensorView<const double>(inverse.view().transpose())), least};
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
  const auto add = [&](const T& element) {
    sum += static_cast<double>(element) * static_cast<double>(element);
  };
  for_each_element(add, lies_in_columns(y) ? y.transpose() : y);
  return sum;
}

}  // namespace

template <class T>
Index orthonormalize(TensorView<const T> basis, TensorView<T> y, double largest_error) {
  Index n_kept = y.size(1);
  if (n_kept == 0) return 0;
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  const double before = squared_norm(y);
  // What is left of a column that lies in the basis is rounding of this size.
  double least = before * 100 * unit * unit * static_cast<double>(y.size(1));
  // A pass leaves errors of the rounding, times what it took away of a column. A second one brings
  // them to machine precision; a third one only where the first lost much.
  double length = std::sqrt(before / static_cast<double>(n_kept));
  const double enough = std::max(largest_error, 4 * unit);
  for (int pass = 0; pass < 3 && n_kept > 0; ++pass) {
    const TensorView<T> kept = y.slice(1, {0, n_kept});
    subtract_projection(basis, kept);
    const Tensor<double> g = gram_of<T>(kept);
    InverseFactor factor = inverse_factor(g);
    const bool is_well_conditioned = !factor.empty();
    if (pass == 0 && is_well_conditioned) {
      // No direction may be rounding only because all are.
      double largest = 0;
      for (Index i = 0; i < g.size(0); ++i) largest = std::max(largest, g(i, i));
      if (largest <= least) return 0;
    }
    const Tensor<double> by =
        is_well_conditioned ? std::move(factor.matrix) : inverse_root(g, least);
    if (by.size(1) > 0) multiply_in_place(kept, by);
    n_kept = by.size(1);
    if (is_well_conditioned && (pass == 1 || unit * length <= enough * factor.least_pivot)) break;
    least = 0.01;  // from now on, columns have length 1
    length = 1;
  }
  return n_kept;
}

template Index orthonormalize(TensorView<const float>, TensorView<float>, double);
template Index orthonormalize(TensorView<const double>, TensorView<double>, double);

}  // namespace eckart

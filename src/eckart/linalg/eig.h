// Eigenvalues and vectors of any square matrix: complex numbers, and not always enough vectors.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <complex>

namespace eckart {

/// a v = v diag(values), up to rounding.
template <class T>
struct Eig {
  Tensor<std::complex<T>> values;   // n, by descending magnitude
  Tensor<std::complex<T>> vectors;  // n x n, columns of norm 1
  /// How many of the vectors are linearly independent.
  Index n_independent;
  /// n_independent < n: the vectors are no basis, and `a` can't be diagonalised.
  bool is_defective;
};

/// Eigenvalue decomposition of a square matrix; of a symmetric one, `eigh` is faster and exact.
/// `a`: n x n, finite. Result: n values, those of equal magnitude by descending real, then imaginary
/// part, so that a conjugate pair stands together, the positive imaginary part first; n x n vectors,
/// each turned so that its component of largest magnitude is real and positive.
/// A matrix is called defective when the vectors of values within eps^(1/3) ||a|| of each other
/// depend on each other to 16 sqrt(eps): rounding moves a double value of a defective matrix by about
/// sqrt(eps), so that no sharper statement is possible. In a larger Jordan block, values lie further
/// apart and n_independent may be too large, but not n.
/// Cost: about 25 n^3 FLOPs, and SVDs of groups of close values. Accuracy: each value within eps
/// ||a|| times its own condition number, which is large where vectors nearly depend on each other
/// (Golub and Van Loan, Matrix Computations, 2013, section 7.2).
/// Throws ShapeError when `a` is not square, ArgumentError when it is not finite or too large.
template <class T>
Eig<T> eig(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> Eig<detail::Element<A>> eig(const A& a) {
  return eig(detail::read_only(a));
}

}  // namespace eckart

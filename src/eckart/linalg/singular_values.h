// All singular values of a matrix, without vectors.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

#include <string>

namespace eckart {

struct SingularValues {
  Tensor<double> values;  // descending, min(m, n) of them
  /// Values below this are not resolved: they are some number between 0 and it.
  double floor = 0;
  std::string method;  // "svd in double" or "Gram matrix in double"
};

/// All singular values of an m x n matrix of float or double.
///
/// Of a float matrix they are the square roots of the eigenvalues of its Gram matrix, accumulated
/// in double, where products of floats are exact: faster than LAPACK's SVD of floats and more
/// accurate than it. Their absolute error is at most 1e-7 times the largest; those below 3e-7 of
/// the largest are not resolved (`floor`). Small float matrices and all of double go through
/// LAPACK's SVD in double, with an error of some 1e-15 times the largest.
/// Cost: max(m, n) min(m, n)^2 + 4/3 min(m, n)^3 FLOPs in double; memory for min(m, n)^2 doubles.
/// Throws ShapeError unless a has two axes, and ArgumentError when it has a NaN or an infinity, or
/// when the iteration did not converge. See docs/algorithms/singular_values.md.
template <class T>
SingularValues singular_values(TensorView<const T> a);

inline SingularValues singular_values(const Tensor<float>& a) { return singular_values(a.view()); }
inline SingularValues singular_values(const Tensor<double>& a) { return singular_values(a.view()); }

}  // namespace eckart

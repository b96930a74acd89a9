// Mean and scatter of rows, collected piece by piece: what the covariance solver of PCA needs of
// its training set, whether that is one array, many files or the shares of many machines.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

namespace eckart {

/// What is known of the rows seen so far. `merged` is associative up to rounding, so that rows may
/// be collected in any pieces; a state without rows changes nothing.
struct PcaState {
  Index n_samples = 0;
  Tensor<double> mean;     // d (feature)
  Tensor<double> scatter;  // d x d: sum of (x - mean) (x - mean)^T over the rows, both triangles
};

/// What the products of two centred elements are rounded to. Sums of them over blocks of rows are
/// in double either way.
enum class PcaProducts { in_double, in_float };

/// The state of the rows of x (n x d, finite). Rows are centred at the mean of their block before
/// they are multiplied, and the exact correction is added where blocks meet (Chan, Golub, LeVeque:
/// "Updating formulae and a pairwise algorithm for computing sample variances", 1979), so that
/// offsets and drifts of the columns cost no digits.
/// Cost: n d^2 FLOPs, in float twice as fast; memory: x is read once, beside it some d x d.
/// Accuracy: double products give the eigenvalues of the scatter to about 1e-16 of the largest;
/// float products to about 2e-7 of the scatter's largest diagonal element.
/// Throws ShapeError unless x is a matrix; ArgumentError, with the position, for NaN and infinity.
/// T is float or double; double rows are always multiplied in double.
template <class T>
PcaState pca_state(TensorView<const T> x, PcaProducts products = PcaProducts::in_double);
template <class T>
PcaState pca_state(const Tensor<T>& x, PcaProducts products = PcaProducts::in_double) {
  return pca_state(x.view(), products);
}

/// The state of both sets of rows together. Cost: d^2. Throws ShapeError when the numbers of
/// columns differ.
PcaState merged(PcaState a, const PcaState& b);

}  // namespace eckart

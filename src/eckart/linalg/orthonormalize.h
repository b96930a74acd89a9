// Orthonormal bases by products alone. Internal.
#pragma once

#include "eckart/core/tensor_view.h"

namespace eckart {

/// Makes the columns of y (m x b) orthonormal and orthogonal to those of `basis` (m x l,
/// orthonormal), to machine precision or to `largest_error`, whichever is more, spanning what y spanned beside it. Directions that are no more than
/// rounding are dropped: the result's first columns are those kept, whose number is returned.
/// CholeskyQR twice with Gram matrices in double (Yamamoto, Nakatsukasa, Yanagisawa, Fukaya,
/// ETNA 44, 2015); where the Gram matrix is near singular, its eigenvectors take the place of the
/// Cholesky factor (Stathopoulos, Wu, SIAM J. Sci. Comput. 23, 2002).
/// Cost: 8 m l b + 8 m b^2 FLOPs.
template <class T>
Index orthonormalize(TensorView<const T> basis, TensorView<T> y, double largest_error = 0);

}  // namespace eckart

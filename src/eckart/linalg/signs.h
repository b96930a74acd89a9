// The sign of a singular vector or an eigenvector is free. It is fixed here, so that results do not
// depend on the machine or on LAPACK's version. Internal.
#pragma once

#include "eckart/core/tensor_view.h"

#include <vector>

namespace eckart {

/// For each column of `columns` (n x k) the number of its component of largest magnitude; of
/// components that are equal to rounding (to sqrt(eps)) the first.
template <class T>
std::vector<Index> leading_components(TensorView<const T> columns);

/// Turns the columns of `columns` (n x k) whose leading component is negative, together with the
/// same rows of `partner` (k x anything): the product columns * partner does not change.
template <class T>
void fix_signs(TensorView<T> columns, TensorView<T> partner);
/// The same for columns that have no partner.
template <class T>
void fix_signs(TensorView<T> columns);

}  // namespace eckart

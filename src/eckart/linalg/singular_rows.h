// Why a square matrix is singular, in words: which row depends on which. Internal.
#pragma once

#include "eckart/core/tensor_view.h"

#include <string>

namespace eckart {

/// `row 2 is 2 times row 1`, `row 2 is zero`, `row 3 is row 1 + 2 times row 2`, `row 9 is a
/// combination of the 8 rows before it`; where no row depends on others to rounding, the one that
/// comes closest: `row 9 is within 3e-16 of …, relative to its length`. Rows count from 1. Of a
/// square, finite matrix. Cost: 4/3 n^3 FLOPs.
template <class T>
std::string dependent_row_text(TensorView<const T> a);

}  // namespace eckart

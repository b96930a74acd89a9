// A general square matrix, factored once for any number of right-hand sides. Internal.
#pragma once

#include "eckart/blas/lapack.h"
#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// What a message about a singular matrix says after it.
struct SingularText {
  std::string rule;
  std::string hint;
};

/// Throws the ArgumentError of a singular matrix (reciprocal condition number 0), or of one that is
/// so to working precision, saying which row depends on which.
template <class T>
[[noreturn]] void throw_singular(std::string_view operation, TensorView<const T> a, T reciprocal,
                                 const SingularText& text);

/// LU of the matrix with its rows and columns scaled by powers of two to a largest magnitude near 1:
/// that costs no accuracy, and a matrix whose rows or columns differ in their units alone does not
/// count as singular.
template <class T>
class LuSolver {
 public:
  /// `a` is square and finite. Throws ArgumentError when it is singular, exactly or to rounding: when
  /// the reciprocal condition number of the scaled matrix is below eps.
  LuSolver(std::string_view operation, TensorView<const T> a, const SingularText& text);

  /// Solves for the right-hand sides in the rows of `b` (n_rhs x n, row-major), in place.
  void solve(Tensor<T>& b) const;

 private:
  void scale(TensorView<const T> a);

  Index n_;
  Tensor<T> factors_;
  std::vector<blas::LapackInt> pivots_;
  std::vector<T> row_scales_;
  std::vector<T> column_scales_;
};

}  // namespace eckart

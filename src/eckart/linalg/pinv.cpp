#include "eckart/linalg/pinv.h"

#include "eckart/blas/gemm.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/numerical_rank.h"
#include "eckart/linalg/svd.h"

#include <string>
#include <utility>

namespace eckart {

template <class T>
Tensor<T> pinv(TensorView<const T> a, const RankOptions& options) {
  check_factorable("pinv", a);
  check_tolerance("pinv", options);
  Svd<T> factors = svd(a);
  const Index rank = numerical_rank<T>(factors.s.view(), a.shape(), options);
  for (Index row = 0; row < rank; ++row) {
    for (Index column = 0; column < a.size(1); ++column) {
      factors.vt(row, column) /= factors.s(row);
    }
  }
  const TensorView<const T> vt = std::as_const(factors.vt).view().slice(0, {0, rank});
  const TensorView<const T> u = std::as_const(factors.u).view().slice(1, {0, rank});
  const bool named = a.shape().has_names();
  Tensor<T> inverse(shape_with_names(
      {a.size(1), a.size(0)}, {named ? a.shape().name(1) : "", named ? a.shape().name(0) : ""}));
  blas::gemm(T{1}, vt.transpose(), u.transpose(), T{0}, inverse.view());
  return inverse;
}

template Tensor<float> pinv(TensorView<const float>, const RankOptions&);
template Tensor<double> pinv(TensorView<const double>, const RankOptions&);

}  // namespace eckart

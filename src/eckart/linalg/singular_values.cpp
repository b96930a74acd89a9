#include "eckart/linalg/singular_values.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

namespace eckart {
namespace {

// Up to this size the SVD in double costs little more, and resolves every value.
constexpr Index largest_svd = 256;
// Where rounding of the Gram matrix, at 1e-16 of its largest eigenvalue, is 1e-3 of an eigenvalue.
constexpr double gram_floor = 3e-7;

void check_converged(blas::LapackInt info) {
  if (info != 0) {
    throw_argument_error("singular_values: the iteration did not converge for " +
                         std::to_string(info) + " values");
  }
}

template <class T>
SingularValues by_svd(TensorView<const T> a) {
  Tensor<double> copy = Tensor<double>::uninitialized({a.size(0), a.size(1)});
  for_each_element([](double& to, const T& from) { to = static_cast<double>(from); }, copy.view(),
                   a);
  return {svd_values(copy), 0, "svd in double"};
}

SingularValues by_gram(TensorView<const float> a) {
  Tensor<double> gram = blas::gram(a.size(0) >= a.size(1) ? a : a.transpose());
  const Index n = gram.size(0);
  Tensor<double> eigenvalues({n});
  check_converged(blas::syevd_values(n, gram.data(), n, eigenvalues.data()));
  SingularValues result;
  result.method = "Gram matrix in double";
  result.values = Tensor<double>::uninitialized({n});
  for (Index i = 0; i < n; ++i) {
    result.values(i) = std::sqrt(std::max(eigenvalues(n - 1 - i), 0.0));
  }
  result.floor = gram_floor * result.values(0);
  return result;
}

}  // namespace

template <class T>
SingularValues singular_values(TensorView<const T> a) {
  if (a.rank() != 2) {
    throw_shape_error("singular_values: a is " + to_string(a.shape()) +
                      ", but must be a matrix, with two axes");
  }
  check_finite<T>("singular_values", "a", a);
  if constexpr (std::is_same_v<T, float>) {
    if (std::min(a.size(0), a.size(1)) > largest_svd) return by_gram(a);
  }
  return by_svd(a);
}

template SingularValues singular_values(TensorView<const float>);
template SingularValues singular_values(TensorView<const double>);

}  // namespace eckart

#include "eckart/linalg/lu.h"

#include "eckart/blas/lapack.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/matrix_checks.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

namespace eckart {

template <class T>
Lu<T> lu(TensorView<const T> a) {
  check_factorable("lu", a);
  const Index m = a.size(0);
  const Index n = a.size(1);
  const Index k = std::min(m, n);
  const bool named = a.shape().has_names();
  Lu<T> result{Tensor<T>(shape_with_names({m, k}, {named ? a.shape().name(0) : "", ""})),
               Tensor<T>(shape_with_names({k, n}, {"", named ? a.shape().name(1) : ""})),
               std::vector<Index>(static_cast<std::size_t>(m))};
  std::iota(result.permutation.begin(), result.permutation.end(), Index{0});
  if (k == 0) return result;
  Tensor<T> columns = transposed_copy(a);
  std::vector<blas::LapackInt> pivots(static_cast<std::size_t>(k));
  blas::getrf(m, n, columns.data(), m, pivots.data());
  for (std::size_t i = 0; i < pivots.size(); ++i) {
    std::swap(result.permutation[i], result.permutation[static_cast<std::size_t>(pivots[i] - 1)]);
  }
  const Tensor<T> rows = transposed_copy<T>(columns.view());
  for (Index row = 0; row < m; ++row) {
    const T* const from = rows.data() + row * n;
    const Index below = std::min(row, k);
    std::copy_n(from, below, result.l.data() + row * k);
    if (row >= k) continue;
    result.l(row, row) = T{1};
    std::copy_n(from + row, n - row, result.u.data() + row * n + row);
  }
  return result;
}

template Lu<float> lu(TensorView<const float>);
template Lu<double> lu(TensorView<const double>);

}  // namespace eckart

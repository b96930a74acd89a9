#include "eckart/linalg/svd.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/signs.h"

#include <algorithm>
#include <string>

namespace eckart {
namespace {

// gesdd's work space has 4 k^2 + 7 k elements, a number that must fit 31 bits.
constexpr Index max_divide_and_conquer = 23000;

// What LAPACK is given and gives. A row-major m x n matrix is LAPACK's n x m matrix, the transpose,
// so that its u is our vt and its vt our u.
template <class T>
struct Transposed {
  Index rows;     // n
  Index columns;  // m
  T* s;
  T* u = nullptr;
  T* vt = nullptr;

  blas::LapackInt run(SvdMethod method, T* a) const {
    const Index k = std::min(rows, columns);
    const auto routine = method == SvdMethod::divide_and_conquer ? blas::gesdd<T> : blas::gesvd<T>;
    return routine(rows, columns, a, rows, s, u, rows, vt, k);
  }
};

template <class T>
void decompose(TensorView<const T> a, SvdMethod method, const Transposed<T>& problem) {
  Tensor<T> work = row_major_copy(a);
  if (problem.run(method, work.data()) == 0) return;
  if (method == SvdMethod::divide_and_conquer) {
    work = row_major_copy(a);
    if (problem.run(SvdMethod::qr_iteration, work.data()) == 0) return;
  }
  throw_argument_error("svd: a is " + to_string(a.shape()) +
                       ", but LAPACK's iteration does not converge on it");
}

}  // namespace

template <class T>
Svd<T> svd(TensorView<const T> a, const SvdOptions& options) {
  check_matrix("svd", "a", a.shape());
  check_lapack_size("svd", "a", a.shape(), "low_rank takes matrices of any size");
  const Index m = a.size(0);
  const Index n = a.size(1);
  const Index k = std::min(m, n);
  if (k > max_divide_and_conquer && options.method == SvdMethod::divide_and_conquer) {
    throw_argument_error("svd: a is " + to_string(a.shape()) +
                             ", but divide and conquer takes at most " +
                             std::to_string(max_divide_and_conquer) + " rows or columns",
                         "method = qr_iteration takes it, svd_values gives the values alone, and "
                         "low_rank the largest values with their vectors");
  }
  check_finite("svd", "a", a);
  const bool named = a.shape().has_names();
  const std::string rows = named ? a.shape().name(0) : "";
  const std::string columns = named ? a.shape().name(1) : "";
  const std::string component(named ? component_axis : "");
  Svd<T> result{Tensor<T>::uninitialized(shape_with_names({m, k}, {rows, component})),
                Tensor<T>::uninitialized(shape_with_names({k}, {component})),
                Tensor<T>::uninitialized(shape_with_names({k, n}, {component, columns}))};
  if (k == 0) return result;
  decompose<T>(a, options.method, {n, m, result.s.data(), result.vt.data(), result.u.data()});
  fix_signs(result.u.view(), result.vt.view());
  return result;
}

template <class T>
Tensor<T> svd_values(TensorView<const T> a, const SvdOptions& options) {
  check_factorable("svd_values", a);
  const Index k = std::min(a.size(0), a.size(1));
  const std::string component(a.shape().has_names() ? component_axis : "");
  Tensor<T> values = Tensor<T>::uninitialized(shape_with_names({k}, {component}));
  if (k > 0) decompose<T>(a, options.method, {a.size(1), a.size(0), values.data()});
  return values;
}

template Svd<float> svd(TensorView<const float>, const SvdOptions&);
template Svd<double> svd(TensorView<const double>, const SvdOptions&);
template Tensor<float> svd_values(TensorView<const float>, const SvdOptions&);
template Tensor<double> svd_values(TensorView<const double>, const SvdOptions&);

}  // namespace eckart

#include "eckart/linalg/eigh.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/signs.h"

#include <algorithm>
#include <string>
#include <utility>

namespace eckart {
namespace {

// Divide and conquer has 1 + 6 n + 2 n^2 elements of work space, a number that must fit 31 bits.
constexpr Index max_divide_and_conquer = 32000;

// Vectors as LAPACK gives them: one a row.
template <class T>
struct Pairs {
  Tensor<T> values;
  Tensor<T> rows;
};

[[noreturn]] void throw_not_converged(const Shape& shape) {
  throw_argument_error("eigh: a is " + to_string(shape) +
                       ", but LAPACK's iteration does not converge on it");
}

template <class T>
Pairs<T> all_pairs(TensorView<const T> a) {
  const Index n = a.size(0);
  Pairs<T> pairs{Tensor<T>::uninitialized({n}), transposed_copy(a)};
  if (n > 0 && blas::syevd(n, pairs.rows.data(), n, pairs.values.data()) > 0) {
    throw_not_converged(a.shape());
  }
  return pairs;
}

template <class T>
Pairs<T> some_pairs(TensorView<const T> a, Index first, Index k) {
  const Index n = a.size(0);
  Tensor<T> work = transposed_copy(a);
  Pairs<T> pairs{Tensor<T>::uninitialized({k}), Tensor<T>::uninitialized({k, n})};
  if (blas::syevr(n, work.data(), n, first, first + k - 1, pairs.values.data(), pairs.rows.data(),
                  n) == 0) {
    return pairs;
  }
  pairs = all_pairs(a);
  const Slice range{first, first + k};
  return {Tensor<T>(std::as_const(pairs.values).view().slice(0, range)),
          Tensor<T>(std::as_const(pairs.rows).view().slice(0, range))};
}

}  // namespace

template <class T>
Eigh<T> eigh(TensorView<const T> a, const EighOptions& options) {
  check_square("eigh", "a", a.shape(), "svd takes matrices of any shape");
  check_lapack_size("eigh", "a", a.shape());
  const Index n = a.size(0);
  const Index k = options.k.value_or(n);
  if (k < 0 || k > n) {
    throw_argument_error("eigh: k is " + std::to_string(k) + " and a is " + to_string(a.shape()) +
                         ", but k must be from 0 to " + std::to_string(n));
  }
  if (k == n && n > max_divide_and_conquer) {
    throw_argument_error("eigh: a is " + to_string(a.shape()) +
                             ", but all values with vectors take at most " +
                             std::to_string(max_divide_and_conquer) + " rows",
                         "with a smaller k it fits");
  }
  check_finite("eigh", "a", a);
  check_symmetric("eigh", "a", a,
                  "eig takes any square matrix; (a + a^T) / 2 is the symmetric part of a");
  const Index first = options.which == Which::largest ? n - k : 0;
  Pairs<T> pairs{Tensor<T>(Shape{0}), Tensor<T>(Shape{0, n})};
  if (k == n) {
    pairs = all_pairs(a);
  } else if (k > 0) {
    pairs = some_pairs(a, first, k);
  }
  const bool named = a.shape().has_names();
  const std::string component(named ? component_axis : "");
  Eigh<T> result{std::move(pairs.values).reshaped(shape_with_names({k}, {component})),
                 transposed_copy<T>(pairs.rows.view())};
  result.vectors =
      std::move(result.vectors)
          .reshaped(shape_with_names({n, k}, {named ? a.shape().name(0) : "", component}));
  fix_signs(result.vectors.view());
  return result;
}

template Eigh<float> eigh(TensorView<const float>, const EighOptions&);
template Eigh<double> eigh(TensorView<const double>, const EighOptions&);

}  // namespace eckart

#include "eckart/linalg/system.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/minimum_norm.h"
#include "eckart/linalg/numerical_rank.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace eckart {

std::string_view to_string(Solutions solutions) {
  switch (solutions) {
    case Solutions::none:
      return "none";
    case Solutions::one:
      return "one";
    case Solutions::infinitely_many:
      break;
  }
  return "infinitely many";
}

template <class T>
LinearSystem<T> classify_system(TensorView<const T> a, TensorView<const T> b,
                                const RankOptions& options) {
  check_matrix("classify_system", "a", a.shape());
  check_right_side("classify_system", a.shape(), b.shape());
  if (b.rank() != 1) {
    throw_shape_error("classify_system: b is " + to_string(b.shape()) + ", but it must be a vector",
                      "each column of b is a system of its own: b.select(1, column)");
  }
  check_factorable("classify_system", a);
  check_finite("classify_system", "b", b);
  check_tolerance("classify_system", options);
  const TensorView<const T> side = as_columns(b);
  const Svd<T> factors = svd(a);
  const Index rank = numerical_rank<T>(factors.s.view(), a.shape(), options);
  Tensor<T> x = minimum_norm(factors, rank, side);
  const T residual = residual_norm<T>(a, x.view(), side);
  const double largest = factors.s.count() > 0 ? static_cast<double>(factors.s(0)) : 0;
  const double rounding = 8 * static_cast<double>(std::max(a.size(0), a.size(1))) *
                          static_cast<double>(std::numeric_limits<T>::epsilon()) *
                          (largest * static_cast<double>(euclidean_norm<T>(x.view())) +
                           static_cast<double>(euclidean_norm<T>(b)));
  x = std::move(x).reshaped(answer_shape(a.shape(), b.shape()));
  LinearSystem<T> system{Solutions::none, {}, {}, null_space_of(factors, rank), rank, residual};
  if (static_cast<double>(residual) > rounding) {
    system.least_squares = std::move(x);
    return system;
  }
  system.solutions = rank == a.size(1) ? Solutions::one : Solutions::infinitely_many;
  system.particular = std::move(x);
  return system;
}

template LinearSystem<float> classify_system(TensorView<const float>, TensorView<const float>,
                                             const RankOptions&);
template LinearSystem<double> classify_system(TensorView<const double>, TensorView<const double>,
                                              const RankOptions&);

}  // namespace eckart

#include "eckart/linalg/eig.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace eckart {
namespace {

// LAPACK's values and vectors (one a row, a pair's parts in two rows) as complex numbers, in our
// order.
template <class T>
class Eigenpairs {
 public:
  explicit Eigenpairs(TensorView<const T> a)
      : n_(a.size(0)),
        real_(static_cast<std::size_t>(n_)),
        imaginary_(static_cast<std::size_t>(n_)),
        rows_(Tensor<T>::uninitialized({n_, n_})),
        order_(static_cast<std::size_t>(n_)) {
    std::iota(order_.begin(), order_.end(), Index{0});
    if (n_ == 0) return;
    Tensor<T> work = transposed_copy(a);
    if (blas::geev(n_, work.data(), n_, real_.data(), imaginary_.data(), rows_.data(), n_) > 0) {
      throw_argument_error("eig: a is " + to_string(a.shape()) +
                           ", but LAPACK's iteration does not converge on it");
    }
    std::stable_sort(order_.begin(), order_.end(), [this](Index i, Index j) {
      const std::complex<T> x = value(i);
      const std::complex<T> y = value(j);
      if (std::abs(x) != std::abs(y)) return std::abs(x) > std::abs(y);
      if (x.real() != y.real()) return x.real() > y.real();
      return x.imag() > y.imag();
    });
  }

  std::complex<T> value_at(Index place) const {
    return value(order_[static_cast<std::size_t>(place)]);
  }

  // Component `row` of the vector at a place of our order.
  std::complex<T> component(Index row, Index place) const {
    const Index i = order_[static_cast<std::size_t>(place)];
    const T imaginary = imaginary_[static_cast<std::size_t>(i)];
    if (imaginary > T{0}) return {rows_(i, row), rows_(i + 1, row)};
    if (imaginary < T{0}) return {rows_(i - 1, row), -rows_(i, row)};
    return {rows_(i, row), T{0}};
  }

 private:
  std::complex<T> value(Index i) const {
    return {real_[static_cast<std::size_t>(i)], imaginary_[static_cast<std::size_t>(i)]};
  }

  Index n_;
  std::vector<T> real_;
  std::vector<T> imaginary_;
  Tensor<T> rows_;
  std::vector<Index> order_;
};

// Turned so that the largest component (of those equal to rounding, the first) is real and positive.
template <class T>
void turn_column(Tensor<std::complex<T>>& vectors, Index column) {
  const T rounding = std::sqrt(std::numeric_limits<T>::epsilon());
  T largest{};
  for (Index row = 0; row < vectors.size(0); ++row) {
    largest = std::max(largest, std::abs(vectors(row, column)));
  }
  Index leading = 0;
  while (std::abs(vectors(leading, column)) < (1 - rounding) * largest) ++leading;
  const T magnitude = std::abs(vectors(leading, column));
  if (magnitude == T{0}) return;
  const std::complex<T> turn = std::conj(vectors(leading, column)) / magnitude;
  for (Index row = 0; row < vectors.size(0); ++row) vectors(row, column) *= turn;
  vectors(leading, column) = magnitude;
}

// Numbers of the values' groups: within a group, each is within `distance` of another.
template <class T>
std::vector<std::vector<Index>> groups_of(const Tensor<std::complex<T>>& values, T distance) {
  const Index n = values.size(0);
  std::vector<std::vector<Index>> groups;
  std::vector<bool> taken(static_cast<std::size_t>(n), false);
  for (Index first = 0; first < n; ++first) {
    if (taken[static_cast<std::size_t>(first)]) continue;
    taken[static_cast<std::size_t>(first)] = true;
    std::vector<Index> group{first};
    for (std::size_t at = 0; at < group.size(); ++at) {
      for (Index other = first + 1; other < n; ++other) {
        if (taken[static_cast<std::size_t>(other)]) continue;
        if (std::abs(values(group[at]) - values(other)) > distance) continue;
        taken[static_cast<std::size_t>(other)] = true;
        group.push_back(other);
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// The rank of some complex columns: half that of the real matrix [re -im; im re].
template <class T>
Index independent_columns(const Tensor<std::complex<T>>& vectors, const std::vector<Index>& group) {
  const Index n = vectors.size(0);
  const Index k = static_cast<Index>(group.size());
  if (k == 1) return 1;
  Tensor<T> real({2 * n, 2 * k});
  for (Index column = 0; column < k; ++column) {
    for (Index row = 0; row < n; ++row) {
      const std::complex<T> element = vectors(row, group[static_cast<std::size_t>(column)]);
      real(row, column) = element.real();
      real(n + row, k + column) = element.real();
      real(row, k + column) = -element.imag();
      real(n + row, column) = element.imag();
    }
  }
  const T tolerance = 16 * std::sqrt(std::numeric_limits<T>::epsilon());
  const Tensor<T> s = svd_values(real);
  return std::count_if(s.data(), s.data() + s.count(), [&](T value) { return value > tolerance; }) /
         2;
}

}  // namespace

template <class T>
Eig<T> eig(TensorView<const T> a) {
  check_square("eig", "a", a.shape(), "svd takes matrices of any shape");
  check_factorable("eig", a);
  const Index n = a.size(0);
  const Eigenpairs<T> pairs(a);
  const bool named = a.shape().has_names();
  const std::string component(named ? component_axis : "");
  Eig<T> result{Tensor<std::complex<T>>(shape_with_names({n}, {component})),
                Tensor<std::complex<T>>(
                    shape_with_names({n, n}, {named ? a.shape().name(0) : "", component})),
                0, false};
  for (Index place = 0; place < n; ++place) {
    result.values(place) = pairs.value_at(place);
    for (Index row = 0; row < n; ++row) result.vectors(row, place) = pairs.component(row, place);
    turn_column(result.vectors, place);
  }
  T largest{};
  for_each_element([&](const T& element) { largest = std::max(largest, std::abs(element)); }, a);
  const T distance = std::cbrt(std::numeric_limits<T>::epsilon()) * largest;
  for (const std::vector<Index>& group : groups_of(result.values, distance)) {
    result.n_independent += independent_columns(result.vectors, group);
  }
  result.is_defective = result.n_independent < n;
  return result;
}

template Eig<float> eig(TensorView<const float>);
template Eig<double> eig(TensorView<const double>);

}  // namespace eckart

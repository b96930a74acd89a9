#include "eckart/linalg/project.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/minimum_norm.h"
#include "eckart/linalg/norms.h"
#include "eckart/linalg/numerical_rank.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace eckart {
namespace {

// What would make a vector of a.
std::string arrangement(const Shape& a, const Shape& onto) {
  if (a.rank() != 2) return {};
  if (onto.rank() == 1 && onto.size(0) == a.size(0)) return "with a and onto swapped it fits";
  if (a.size(0) != 1 && a.size(1) != 1) return {};
  return "as a vector of " + counted(a.count(), "element") + " it is one";
}

void check_shapes(const Shape& a, const Shape& onto) {
  const std::string both = "project: a is " + to_string(a) + " and onto is " + to_string(onto);
  if (a.rank() != 1) throw_shape_error(both + ", but a must be a vector", arrangement(a, onto));
  if (onto.rank() != 1 && onto.rank() != 2) {
    throw_shape_error(both + ", but onto must be a vector or a matrix");
  }
  if (onto.size(0) != a.size(0)) {
    std::string hint;
    if (onto.rank() == 2 && onto.size(1) == a.size(0)) {
      hint = "with onto transposed it fits: its " + counted(onto.size(0), "row") + " then " +
             (onto.size(0) == 1 ? "spans" : "span") + " the space";
    }
    throw_shape_error(both + ", but onto's " +
                          counted(onto.size(0), onto.rank() == 1 ? "element" : "row") +
                          " must equal a's " + counted(a.size(0), "element"),
                      hint);
  }
  if (!a.has_names() || !onto.has_names() || onto.name(0).empty()) return;
  if (a.name(0) == onto.name(0)) return;
  throw_shape_error(both + ", but onto's rows must be a's axis " + a.name(0));
}

template <class T>
Projection<T> onto_vector(TensorView<const T> a, TensorView<const T> onto) {
  // Both are scaled to a largest magnitude of 1: squares of the elements may leave T's range.
  const double scale = norm(onto, Norm::infinity);
  if (scale == 0) {
    throw_argument_error("project: onto is " + to_string(onto.shape()) +
                         " and zero, but a zero vector has no direction");
  }
  double onto_onto = 0;
  for_each_element(
      [&](const T& element) {
        const double unit = static_cast<double>(element) / scale;
        onto_onto += unit * unit;
      },
      onto);
  // The dot product of what is left, again: the second pass takes the rounding of the first away.
  const double a_scale = std::max(norm(a, Norm::infinity), 1e-300);
  std::vector<double> left;
  for_each_element([&](const T& x) { left.push_back(static_cast<double>(x) / a_scale); }, a);
  double coefficient = 0;
  for (int pass = 0; pass < 2; ++pass) {
    double dot = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      dot += left[i] * (static_cast<double>(onto(i)) / scale);
    }
    coefficient += dot / onto_onto;
    for (std::size_t i = 0; i < left.size(); ++i) {
      left[i] -= dot / onto_onto * (static_cast<double>(onto(i)) / scale);
    }
  }
  Projection<T> result{Tensor<T>(a), Tensor<T>(a), Tensor<T>(Shape{1}),
                       static_cast<T>(coefficient * std::sqrt(onto_onto) * a_scale)};
  for (Index i = 0; i < a.size(0); ++i) {
    result.projection(i) =
        static_cast<T>(coefficient * (static_cast<double>(onto(i)) / scale) * a_scale);
    result.residual(i) = static_cast<T>(left[static_cast<std::size_t>(i)] * a_scale);
  }
  result.coefficients(0) = static_cast<T>(coefficient * a_scale / scale);
  return result;
}

template <class T>
Projection<T> onto_columns(TensorView<const T> a, TensorView<const T> onto) {
  const Svd<T> factors = svd(onto);
  const Index rank = numerical_rank<T>(factors.s.view(), onto.shape(), {});
  const TensorView<const T> basis = factors.u.view().slice(1, {0, rank});
  Tensor<T> left = Tensor<T>(a);
  Tensor<T> on_basis({rank});
  for (int pass = 0; pass < 2; ++pass) {
    blas::gemv(T{1}, basis.transpose(), std::as_const(left).view(), T{0}, on_basis.view());
    blas::gemv(T{-1}, basis, std::as_const(on_basis).view(), T{1}, left.view());
  }
  Tensor<T> projection = Tensor<T>(a);
  for (Index i = 0; i < a.size(0); ++i) projection(i) -= left(i);
  const Shape coefficients =
      shape_with_names({onto.size(1)}, {onto.shape().has_names() ? onto.shape().name(1) : ""});
  return {std::move(projection), std::move(left),
          minimum_norm(factors, rank, as_columns(a)).reshaped(coefficients), std::nullopt};
}

}  // namespace

template <class T>
Projection<T> project(TensorView<const T> a, TensorView<const T> onto) {
  check_shapes(a.shape(), onto.shape());
  check_lapack_size("project", "onto", onto.shape());
  check_finite("project", "a", a);
  check_finite("project", "onto", onto);
  return onto.rank() == 1 ? onto_vector(a, onto) : onto_columns(a, onto);
}

template Projection<float> project(TensorView<const float>, TensorView<const float>);
template Projection<double> project(TensorView<const double>, TensorView<const double>);

}  // namespace eckart

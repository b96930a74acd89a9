#include "eckart/linalg/linear_operator.h"

#include "eckart/blas/bf16_tiles.h"
#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/norms.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Rows that are looked at, or subtracted, together.
constexpr Index block_rows = 512;
// Columns of the identity that are multiplied together.
constexpr Index block_columns = 128;

template <class T>
double frobenius(TensorView<const T> a) {
  return norm(a, Norm::frobenius);
}

// Calls `body(first, block)` for blocks of rows of a - b.
template <class T, class Body>
void for_each_difference(TensorView<const T> a, TensorView<const T> b, const Body& body) {
  const Index n = a.size(1);
  Tensor<T> block = Tensor<T>::uninitialized({std::min(block_rows, a.size(0)), n});
  for (Index first = 0; first < a.size(0); first += block_rows) {
    const Index count = std::min(block_rows, a.size(0) - first);
    parallel_for(count, 16, [&](Index begin, Index end) {
      const Slice rows{first + begin, first + end};
      for_each_element([](T& to, const T& x, const T& y) { to = x - y; },
                       block.view().slice(0, {begin, end}), a.slice(0, rows), b.slice(0, rows));
    });
    body(first, TensorView<const T>(block.view().slice(0, {0, count})));
  }
}

// Norm of block - u vt for rows of a block.
template <class T>
double distance_of(TensorView<const T> block, TensorView<const T> u, TensorView<const T> vt) {
  Tensor<T> rest(block);
  blas::gemm<T>(T{-1}, u, vt, T{1}, rest.view());
  return frobenius<T>(rest.view());
}

// Rounds the rows that `write(rows, to)` writes, or that lie in `a`, `stride` apart.
template <class T, class Write>
std::shared_ptr<const blas::TileMatrix> round_rows(const Shape& shape, const Write& write,
                                                   const T* a = nullptr, Index stride = 0) {
  if constexpr (std::is_same_v<T, float>) {
    if (!blas::has_bf16_tiles()) return nullptr;
    const Index n = shape.size(1);
    return std::make_shared<const blas::TileMatrix>(
        shape.size(0), n, [&](Index first, Index count, float* scratch) -> blas::FloatRows {
          if (a != nullptr) return {a + first * stride, stride};
          write(Slice{first, first + count}, TensorView<float>(scratch, {count, n}, {n, 1}));
          return {scratch, n};
        });
  }
  return nullptr;
}

}  // namespace

template <class T>
std::shared_ptr<const blas::TileMatrix> LinearOperator<T>::rounded() const {
  return nullptr;
}

template <class T>
Tensor<T> LinearOperator<T>::dense() const {
  const Shape shape = this->shape();
  Tensor<T> result(shape);
  const Index n = shape.size(1);
  for (Index first = 0; first < n; first += block_columns) {
    const Index count = std::min(block_columns, n - first);
    Tensor<T> identity({n, count});
    for (Index i = 0; i < count; ++i) identity(first + i, i) = T{1};
    Tensor<T> columns({shape.size(0), count});
    apply(identity, columns);
    for_each_element([](T& to, const T& from) { to = from; },
                     result.view().slice(1, {first, first + count}),
                     TensorView<const T>(columns.view()));
  }
  return result;
}

template <class T>
double LinearOperator<T>::frobenius_norm() const {
  return frobenius<T>(dense().view());
}

template <class T>
double LinearOperator<T>::distance(TensorView<const T> u, TensorView<const T> vt) const {
  const Tensor<T> matrix = dense();
  return distance_of<T>(matrix, u, vt);
}

template <class T>
void LinearOperator<T>::check_finite(const char*) const {}

template <class T>
MatrixOperator<T>::MatrixOperator(TensorView<const T> a) : a_(std::move(a)) {
  check_matrix("low_rank", "a", a_.shape());
}

template <class T>
void MatrixOperator<T>::apply(TensorView<const T> x, TensorView<T> y) const {
  blas::gemm<T>(T{1}, a_, x, T{0}, y);
}

template <class T>
void MatrixOperator<T>::apply_adjoint(TensorView<const T> x, TensorView<T> y) const {
  blas::gemm<T>(T{1}, a_.transpose(), x, T{0}, y);
}

template <class T>
std::shared_ptr<const blas::TileMatrix> MatrixOperator<T>::rounded() const {
  const auto write = [&](Slice rows, TensorView<T> to) {
    for_each_element([](T& element, const T& from) { element = from; }, to, a_.slice(0, rows));
  };
  const bool lies_in_rows = a_.strides()[1] == 1;
  return round_rows<T>(a_.shape(), write, lies_in_rows ? a_.data() : nullptr, a_.strides()[0]);
}

template <class T>
double MatrixOperator<T>::frobenius_norm() const {
  return frobenius<T>(a_);
}

template <class T>
double MatrixOperator<T>::distance(TensorView<const T> u, TensorView<const T> vt) const {
  double norm = 0;
  for (Index first = 0; first < a_.size(0); first += block_rows) {
    const Slice rows{first, first + block_rows};
    norm = std::hypot(norm, distance_of<T>(a_.slice(0, rows), u.slice(0, rows), vt));
  }
  return norm;
}

template <class T>
void MatrixOperator<T>::check_finite(const char* operation) const {
  eckart::check_finite<T>(operation, "a", a_);
}

template <class T>
DifferenceOperator<T>::DifferenceOperator(TensorView<const T> a, TensorView<const T> b)
    : a_(std::move(a)), b_(std::move(b)) {
  check_matrix("low_rank", "a", a_.shape());
  if (!same_sizes(a_.shape(), b_.shape())) {
    throw_shape_error("low_rank: a is " + to_string(a_.shape()) + " and b is " +
                      to_string(b_.shape()) + ", but the matrices of a difference have one shape");
  }
}

template <class T>
void DifferenceOperator<T>::apply(TensorView<const T> x, TensorView<T> y) const {
  for_each_difference<T>(a_, b_, [&](Index first, TensorView<const T> block) {
    blas::gemm<T>(T{1}, block, x, T{0}, y.slice(0, {first, first + block.size(0)}));
  });
}

template <class T>
void DifferenceOperator<T>::apply_adjoint(TensorView<const T> x, TensorView<T> y) const {
  for_each_element([](T& to) { to = T{0}; }, y);
  for_each_difference<T>(a_, b_, [&](Index first, TensorView<const T> block) {
    blas::gemm<T>(T{1}, block.transpose(), x.slice(0, {first, first + block.size(0)}), T{1}, y);
  });
}

template <class T>
std::shared_ptr<const blas::TileMatrix> DifferenceOperator<T>::rounded() const {
  const auto write = [&](Slice rows, TensorView<T> to) {
    for_each_element([](T& element, const T& left, const T& right) { element = left - right; }, to,
                     a_.slice(0, rows), b_.slice(0, rows));
  };
  return round_rows<T>(a_.shape(), write);
}

template <class T>
Tensor<T> DifferenceOperator<T>::dense() const {
  Tensor<T> result = Tensor<T>::uninitialized(a_.shape());
  for_each_element([](T& to, const T& x, const T& y) { to = x - y; }, result.view(), a_, b_);
  return result;
}

template <class T>
double DifferenceOperator<T>::frobenius_norm() const {
  double norm = 0;
  for_each_difference<T>(a_, b_, [&](Index, TensorView<const T> block) {
    norm = std::hypot(norm, frobenius<T>(block));
  });
  return norm;
}

template <class T>
double DifferenceOperator<T>::distance(TensorView<const T> u, TensorView<const T> vt) const {
  double norm = 0;
  for_each_difference<T>(a_, b_, [&](Index first, TensorView<const T> block) {
    norm = std::hypot(norm, distance_of<T>(block, u.slice(0, {first, first + block.size(0)}), vt));
  });
  return norm;
}

template <class T>
void DifferenceOperator<T>::check_finite(const char* operation) const {
  eckart::check_finite<T>(operation, "a", a_);
  eckart::check_finite<T>(operation, "b", b_);
}

template <class T>
ProductOperator<T>::ProductOperator(TensorView<const T> left, TensorView<const T> right)
    : left_(std::move(left)), right_(std::move(right)) {
  check_matrix("low_rank", "left", left_.shape());
  check_matrix("low_rank", "right", right_.shape());
  if (left_.size(1) != right_.size(0)) {
    throw_shape_error("low_rank: left is " + to_string(left_.shape()) + " and right is " +
                      to_string(right_.shape()) + ", but left's " +
                      counted(left_.size(1), "column") + " must equal right's " +
                      counted(right_.size(0), "row"));
  }
}

template <class T>
Shape ProductOperator<T>::shape() const {
  if (!left_.shape().has_names() && !right_.shape().has_names()) {
    return Shape({left_.size(0), right_.size(1)});
  }
  std::string row = left_.shape().name(0), column = right_.shape().name(1);
  if (row == column) column.clear();  // one name stands once in a shape
  return Shape({left_.size(0), right_.size(1)}, {row, column});
}

template <class T>
void ProductOperator<T>::apply(TensorView<const T> x, TensorView<T> y) const {
  Tensor<T> between = Tensor<T>::uninitialized({left_.size(1), x.size(1)});
  blas::gemm<T>(T{1}, right_, x, T{0}, between.view());
  blas::gemm<T>(T{1}, left_, between, T{0}, y);
}

template <class T>
void ProductOperator<T>::apply_adjoint(TensorView<const T> x, TensorView<T> y) const {
  Tensor<T> between = Tensor<T>::uninitialized({left_.size(1), x.size(1)});
  blas::gemm<T>(T{1}, left_.transpose(), x, T{0}, between.view());
  blas::gemm<T>(T{1}, right_.transpose(), between, T{0}, y);
}

template <class T>
double ProductOperator<T>::frobenius_norm() const {
  // ||L R||_F^2 is the sum of the entrywise product of L^T L and R R^T, which is as large as the
  // square of the inner size, but needs their squares to be in the range of double.
  const double left_norm = frobenius<T>(left_), right_norm = frobenius<T>(right_);
  constexpr double safe = 1e70;
  const auto is_safe = [&](double norm) { return norm < safe && norm > 1 / safe; };
  if (left_norm == 0 || right_norm == 0) return 0;
  if (!is_safe(left_norm) || !is_safe(right_norm)) return LinearOperator<T>::frobenius_norm();
  const Tensor<double> left = blas::gram<T>(left_);
  const Tensor<double> right = blas::gram<T>(right_.transpose());
  double sum = 0;
  for (Index i = 0; i < left.count(); ++i) sum += left.data()[i] * right.data()[i];
  // Where the product's norm is a small part of the factors' norms, the sum has cancelled.
  const double norm = std::sqrt(std::max(sum, 0.0));
  if (norm < 1e-6 * left_norm * right_norm) return LinearOperator<T>::frobenius_norm();
  return norm;
}

template <class T>
void ProductOperator<T>::check_finite(const char* operation) const {
  eckart::check_finite<T>(operation, "left", left_);
  eckart::check_finite<T>(operation, "right", right_);
}

template class LinearOperator<float>;
template class LinearOperator<double>;
template class MatrixOperator<float>;
template class MatrixOperator<double>;
template class DifferenceOperator<float>;
template class DifferenceOperator<double>;
template class ProductOperator<float>;
template class ProductOperator<double>;

}  // namespace eckart

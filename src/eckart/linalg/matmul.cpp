#include "eckart/linalg/matmul.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/threads.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matmul_shapes.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/pieces.h"
#include "eckart/linalg/vectors.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eckart {
namespace {

// Products of fewer multiplications than this share the threads between them; each larger one has
// them all.
constexpr Index least_alone = Index{1} << 21;

template <class T>
TensorView<const T> without_names(TensorView<const T> view) {
  return TensorView<const T>(view.data(), view.shape().without_names(), view.strides());
}

// A vector as the row (on the left) or the column (on the right) that it stands for.
template <class T>
TensorView<const T> as_matrix(TensorView<const T> view, bool is_row) {
  if (view.rank() > 1) return without_names(view);
  const Index n = view.size(0);
  const Index stride = view.strides()[0];
  return is_row ? TensorView<const T>(view.data(), {1, n}, {n * stride, stride})
                : TensorView<const T>(view.data(), {n, 1}, {stride, 1});
}

// The operand's own last two axes, behind the leading axes of the result.
template <class T>
TensorView<const T> stretched(TensorView<const T> view, const Shape& batch) {
  std::vector<Index> sizes = batch.sizes();
  sizes.push_back(view.size(-2));
  sizes.push_back(view.size(-1));
  return view.broadcast_to(Shape(std::move(sizes)));
}

// Where matrix number `i` of a batch begins.
template <class T>
TensorView<const T> matrix_of(TensorView<const T> view, Index i) {
  Index offset = 0;
  for (Index axis = view.rank() - 3; axis >= 0; --axis) {
    offset += i % view.size(axis) * view.strides()[static_cast<std::size_t>(axis)];
    i /= view.size(axis);
  }
  const std::vector<Index>& strides = view.strides();
  return TensorView<const T>(view.data() + offset, {view.size(-2), view.size(-1)},
                             {strides[strides.size() - 2], strides.back()});
}

// One matrix on the right for the whole batch on the left, whose rows lie in order: one product.
template <class T>
bool multiply_as_one(TensorView<const T> a, TensorView<const T> b,
                     const detail::MatmulShapes& shapes, Tensor<T>& result) {
  if (b.rank() != 2 || !a.is_row_major()) return false;
  const Index rows = shapes.batch.count() * shapes.m;
  blas::gemm(T{1}, a.reshape({rows, shapes.k}), b, T{0}, result.view().reshape({rows, shapes.n}));
  return true;
}

template <class T>
void multiply_batch(TensorView<const T> a, TensorView<const T> b,
                    const detail::MatmulShapes& shapes, Tensor<T>& result) {
  const TensorView<const T> all_a = stretched(a, shapes.batch);
  const TensorView<const T> all_b = stretched(b, shapes.batch);
  const Index size = shapes.m * shapes.n;
  const auto multiply = [&](Index i) {
    blas::gemm(T{1}, matrix_of(all_a, i), matrix_of(all_b, i), T{0},
               TensorView<T>(result.data() + i * size, {shapes.m, shapes.n}));
  };
  const Index n_products = shapes.batch.count();
  const Index work = std::max<Index>(1, size * shapes.k);
  if (n_products == 1 || work >= least_alone) {
    for (Index i = 0; i < n_products; ++i) multiply(i);
    return;
  }
  blas::with_own_threads([&] {
    parallel_for(n_products, std::max<Index>(1, (least_alone / 8) / work),
                 [&](Index begin, Index end) {
                   for (Index i = begin; i < end; ++i) multiply(i);
                 });
  });
}

// The same element order under a result's shape, names included.
template <class T>
Tensor<T> shaped(Tensor<T> tensor, const Shape& shape) {
  std::vector<std::string> names = shape.names();
  tensor = std::move(tensor).reshaped(shape.without_names());
  return names.empty() ? std::move(tensor) : std::move(tensor).named(std::move(names));
}

}  // namespace

template <class T>
Tensor<T> matmul(TensorView<const T> a, TensorView<const T> b, const MatmulOptions& options) {
  const detail::MatmulShapes shapes = detail::matmul_shapes(a.shape(), b.shape(), options);
  Tensor<T> result = Tensor<T>::uninitialized(shapes.result.without_names());
  if (a.rank() == 1 && b.rank() == 1) {
    *result.data() = static_cast<T>(dot(without_names(a), without_names(b)));
  } else if (result.count() > 0) {
    const TensorView<const T> left = as_matrix(a, true);
    const TensorView<const T> right = as_matrix(b, false);
    if (!multiply_as_one(left, right, shapes, result)) multiply_batch(left, right, shapes, result);
  }
  return shaped(std::move(result), shapes.result);
}

template <class T>
Tensor<T> linear(TensorView<const T> x, TensorView<const T> w) {
  const MatmulOptions options{.operation = "linear", .left = "x", .right = "w"};
  if (w.rank() != 2) {
    throw_shape_error("linear: w is " + to_string(w.shape()) + ", but it must be a matrix");
  }
  return matmul(x, w, options);
}

template <class T>
Tensor<T> linear(TensorView<const T> x, TensorView<const T> w, TensorView<const T> b) {
  if (w.rank() == 2) {
    const std::string& axis = w.shape().name(1);
    const bool fits = b.rank() == 1 && b.size(0) == w.size(1);
    if (!fits || (!axis.empty() && !b.shape().name(0).empty() && b.shape().name(0) != axis)) {
      throw_shape_error("linear: w is " + to_string(w.shape()) + " and b is " +
                        to_string(b.shape()) + ", but b must have an element for each of w's " +
                        counted(w.size(1), "column"));
    }
  }
  Tensor<T> result = linear(x, w);
  const Index n = w.size(1);
  if (result.count() == 0) return result;
  parallel_for(result.count() / n, std::max<Index>(1, detail::piece_elements / n),
               [&](Index begin, Index end) {
                 for (Index row = begin; row < end; ++row) {
                   T* const out = result.data() + row * n;
                   for (Index i = 0; i < n; ++i) out[i] += b(i);
                 }
               });
  return result;
}

template <class T>
Tensor<T> outer(TensorView<const T> u, TensorView<const T> v) {
  if (u.rank() != 1 || v.rank() != 1) {
    throw_shape_error("outer: u is " + to_string(u.shape()) + " and v is " + to_string(v.shape()) +
                      ", but both must be vectors");
  }
  std::string row_name = u.shape().name(0);
  std::string column_name = v.shape().name(0);
  if (column_name == row_name) column_name.clear();
  Tensor<T> result = Tensor<T>::uninitialized(
      Shape({u.size(0), v.size(0)}, {std::move(row_name), std::move(column_name)}));
  const Index n = v.size(0);
  parallel_for(u.size(0), std::max<Index>(1, detail::piece_elements / std::max<Index>(1, n)),
               [&](Index begin, Index end) {
                 for (Index i = begin; i < end; ++i) {
                   for (Index j = 0; j < n; ++j) result.data()[i * n + j] = u(i) * v(j);
                 }
               });
  return result;
}

template Tensor<float> matmul(TensorView<const float>, TensorView<const float>,
                              const MatmulOptions&);
template Tensor<double> matmul(TensorView<const double>, TensorView<const double>,
                               const MatmulOptions&);
template Tensor<float> linear(TensorView<const float>, TensorView<const float>);
template Tensor<double> linear(TensorView<const double>, TensorView<const double>);
template Tensor<float> linear(TensorView<const float>, TensorView<const float>,
                              TensorView<const float>);
template Tensor<double> linear(TensorView<const double>, TensorView<const double>,
                               TensorView<const double>);
template Tensor<float> outer(TensorView<const float>, TensorView<const float>);
template Tensor<double> outer(TensorView<const double>, TensorView<const double>);

}  // namespace eckart

#include "eckart/linalg/elementwise.h"

#include "eckart/core/broadcast.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/pieces.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace eckart::detail {
namespace {

std::string_view name_of(Arithmetic operation) {
  switch (operation) {
    case Arithmetic::add:
      return "add";
    case Arithmetic::subtract:
      return "subtract";
    case Arithmetic::multiply:
      return "multiply";
    case Arithmetic::divide:
      break;
  }
  return "divide";
}

// A view stretched to the result's sizes.
template <class T>
TensorView<const T> stretched(TensorView<const T> view, const Shape& shape) {
  return TensorView<const T>(view.data(), view.shape().without_names(), view.strides())
      .broadcast_to(shape);
}

template <class T, class Body>
void combine_run(const T* a, Index stride_a, const T* b, Index stride_b, T* out, Index n,
                 const Body& body) {
  // Loops of their own for what vector instructions can take.
  if (stride_a == 1 && stride_b == 1) {
    for (Index i = 0; i < n; ++i) out[i] = body(a[i], b[i]);
  } else if (stride_a == 1 && stride_b == 0) {
    const T number = *b;
    for (Index i = 0; i < n; ++i) out[i] = body(a[i], number);
  } else if (stride_a == 0 && stride_b == 1) {
    const T number = *a;
    for (Index i = 0; i < n; ++i) out[i] = body(number, b[i]);
  } else {
    for (Index i = 0; i < n; ++i) out[i] = body(a[i * stride_a], b[i * stride_b]);
  }
}

// Whether the elements of a view that was stretched from `source` to `shape` are as one long run.
template <class T>
bool is_one_run(TensorView<const T> source, const Shape& shape) {
  return source.count() == 1 || (source.count() == shape.count() && source.is_row_major());
}

template <class T, class Body>
void combine(TensorView<const T> a, TensorView<const T> b, Tensor<T>& out, const Body& body) {
  const Shape shape = out.shape().without_names();
  if (out.count() == 0) return;
  if (is_one_run(a, shape) && is_one_run(b, shape)) {
    const Index stride_a = a.count() == 1 ? 0 : 1;
    const Index stride_b = b.count() == 1 ? 0 : 1;
    parallel_for(out.count(), piece_elements, [&](Index begin, Index end) {
      combine_run(a.data() + begin * stride_a, stride_a, b.data() + begin * stride_b, stride_b,
                  out.data() + begin, end - begin, body);
    });
    return;
  }
  const TensorView<const T> wide_a = stretched(a, shape);
  const TensorView<const T> wide_b = stretched(b, shape);
  const Index n = shape.size(-1);
  const Index rows_at_once = std::max<Index>(1, piece_elements / n);
  parallel_for(out.count() / n, rows_at_once, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      Index offset_a = 0;
      Index offset_b = 0;
      Index left = row;
      for (Index axis = shape.rank() - 2; axis >= 0; --axis) {
        const Index at = left % shape.size(axis);
        offset_a += at * wide_a.strides()[static_cast<std::size_t>(axis)];
        offset_b += at * wide_b.strides()[static_cast<std::size_t>(axis)];
        left /= shape.size(axis);
      }
      combine_run(wide_a.data() + offset_a, wide_a.strides().back(), wide_b.data() + offset_b,
                  wide_b.strides().back(), out.data() + row * n, n, body);
    }
  });
}

}  // namespace

template <class T>
Tensor<T> elementwise(Arithmetic operation, TensorView<const T> a, TensorView<const T> b,
                      const ElementwiseOptions& options) {
  Tensor<T> out = Tensor<T>::uninitialized(broadcast_shape(
      a.shape(), b.shape(), {.outer = options.outer, .operation = name_of(operation)}));
  switch (operation) {
    case Arithmetic::add:
      combine(a, b, out, [](T x, T y) { return x + y; });
      break;
    case Arithmetic::subtract:
      combine(a, b, out, [](T x, T y) { return x - y; });
      break;
    case Arithmetic::multiply:
      combine(a, b, out, [](T x, T y) { return x * y; });
      break;
    case Arithmetic::divide:
      combine(a, b, out, [](T x, T y) { return x / y; });
      break;
  }
  return out;
}

template Tensor<float> elementwise(Arithmetic, TensorView<const float>, TensorView<const float>,
                                   const ElementwiseOptions&);
template Tensor<double> elementwise(Arithmetic, TensorView<const double>, TensorView<const double>,
                                    const ElementwiseOptions&);

}  // namespace eckart::detail

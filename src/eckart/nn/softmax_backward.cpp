#include "eckart/nn/softmax_backward.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/sums_simd.h"
#include "eckart/nn/rows.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// `view` with the given axis exchanged for the last.
template <class T>
TensorView<T> with_last(TensorView<T> view, Index axis) {
  std::vector<Index> axes;
  for (Index i = 0; i < view.rank(); ++i) axes.push_back(i);
  std::swap(axes[static_cast<std::size_t>(axis)], axes.back());
  return view.permute(axes);
}

}  // namespace

template <class T>
Tensor<T> softmax_backward(TensorView<const T> d_w, TensorView<const T> w,
                           const SoftmaxBackwardOptions& options) {
  if (!same_sizes(d_w.shape(), w.shape())) {
    throw_shape_error("softmax_backward: d_w is " + to_string(d_w.shape()) + " and w is " +
                      to_string(w.shape()) + ", but both must have the same sizes");
  }
  if (!(options.temperature >= 0)) {
    throw_argument_error("softmax_backward: temperature is " + number_text(options.temperature) +
                         ", but it must be at least 0");
  }
  const Index axis = options.axis.in(w.shape());
  Tensor<T> result(w.shape());
  if (options.temperature == 0 || std::isinf(options.temperature)) return result;
  const TensorView<const T> weights = with_last(w, axis);
  const TensorView<const T> d = with_last(d_w, axis);
  const TensorView<T> out = with_last(result.view(), axis);
  const Index n = weights.size(-1);
  const Index step = out.strides().back();
  parallel_for(detail::row_count(weights), detail::rows_at_once(n), [&](Index begin, Index end) {
    detail::Rows<T> w_rows(weights);
    detail::Rows<T> d_rows(d);
    for (Index row = begin; row < end; ++row) {
      const T* const w_row = w_rows(row);
      const T* const d_row = d_rows(row);
      const double mean = detail::dot_run(w_row, d_row, static_cast<std::size_t>(n));
      T* const to = detail::row_begin(out, row);
      for (Index i = 0; i < n; ++i) {
        to[i * step] = static_cast<T>(static_cast<double>(w_row[i]) *
                                      (static_cast<double>(d_row[i]) - mean) / options.temperature);
      }
    }
  });
  return result;
}

template Tensor<float> softmax_backward(TensorView<const float>, TensorView<const float>,
                                        const SoftmaxBackwardOptions&);
template Tensor<double> softmax_backward(TensorView<const double>, TensorView<const double>,
                                         const SoftmaxBackwardOptions&);

}  // namespace eckart

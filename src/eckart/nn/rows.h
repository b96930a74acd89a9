// An array as vectors along its last axis. Internal.
#pragma once

#include "eckart/core/parallel.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/pieces.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace eckart::detail {

/// How many vectors stand along the last axis; the view has one.
template <class T>
Index row_count(TensorView<T> x) {
  return x.count() == 0 ? 0 : x.count() / x.size(-1);
}

/// Vectors that a thread takes at once: enough to outweigh handing them to it.
inline Index rows_at_once(Index n) {
  return std::max<Index>(1, piece_elements / std::max<Index>(n, 1));
}

/// Where vector number `row` begins.
template <class T>
T* row_begin(TensorView<T> x, Index row) {
  Index offset = 0;
  for (Index axis = x.rank() - 2; axis >= 0; --axis) {
    offset += row % x.size(axis) * x.strides()[static_cast<std::size_t>(axis)];
    row /= x.size(axis);
  }
  return x.data() + offset;
}

/// Vectors with adjacent elements: those of a view, or copies of them.
template <class T>
class Rows {
 public:
  explicit Rows(TensorView<const T> x) : x_(x), n_(x.size(-1)) {
    if (x.strides().back() != 1) copy_.resize(static_cast<std::size_t>(n_));
  }

  /// Vector number `row`, until the next call.
  const T* operator()(Index row) {
    const T* const from = row_begin(x_, row);
    const Index stride = x_.strides().back();
    if (stride == 1) return from;
    for (Index i = 0; i < n_; ++i) copy_[static_cast<std::size_t>(i)] = from[i * stride];
    return copy_.data();
  }

 private:
  TensorView<const T> x_;
  Index n_;
  std::vector<T> copy_;
};

/// Calls `body(row, elements)` for every vector of x along its last axis, on several threads.
template <class T, class Body>
void for_rows(TensorView<const T> x, const Body& body) {
  parallel_for(row_count(x), rows_at_once(x.size(-1)), [&](Index begin, Index end) {
    Rows<T> rows(x);
    for (Index row = begin; row < end; ++row) body(row, rows(row));
  });
}

}  // namespace eckart::detail

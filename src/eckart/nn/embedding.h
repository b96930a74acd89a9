// A table of vectors, one for each token of the vocabulary.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <vector>

namespace eckart {

/// Rows `ids` of a table (vocab x d_model), in that order: what a product of one-hot rows with the
/// table gives, without forming it. The table may be a view of any strides.
/// Returns ids.size() x d_model, the axes named token and as the table's where it has names.
/// Cost: one pass over the result. Accuracy: copies.
/// Throws ShapeError unless the table is a matrix; ArgumentError, naming it, its position and the
/// vocabulary's size, for an id below 0 or beyond the table.
template <class T>
Tensor<T> embedding(TensorView<const T> table, const std::vector<Index>& ids);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> embedding(const A& table,
                                                                const std::vector<Index>& ids) {
  return embedding(detail::read_only(table), ids);
}

/// The same for an array of ids of any shape. Returns … x d_model, with the ids' names.
template <class T>
Tensor<T> embedding(TensorView<const T> table, TensorView<const Index> ids);
template <class A, class I>
requires(detail::ArrayLike<A>&& detail::ArrayLike<I>&& std::is_same_v<detail::Element<I>, Index> &&
         !(detail::is_read_only_view<A> &&
           detail::is_read_only_view<I>)) Tensor<detail::Element<A>> embedding(const A& table,
                                                                               const I& ids) {
  return embedding(detail::read_only(table), detail::read_only(ids));
}

}  // namespace eckart

// Putting arrays together and taking rows of them. Transposing and slicing are methods of views.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/axis.h"

#include <string>
#include <vector>

namespace eckart {

struct StackOptions {
  Index axis = 0;         // where the new axis stands in the result; negative: from its end
  std::string name = {};  // of the new axis; empty: unnamed
};

/// Arrays of one shape as one array with an axis more: `stack<float>({u, v})` of two vectors of 3
/// is 2x3. Returns that array; names are those of the parts. Cost: one pass.
/// Throws ShapeError when there is no part, the parts differ in sizes or names, or the axis is not
/// one of the result's.
template <class T>
Tensor<T> stack(const std::vector<TensorView<const T>>& parts, const StackOptions& options = {});

/// Arrays one behind the other along an axis: `concatenate<float>({a, b}, "token")`. Their other
/// axes have the same sizes. Returns the joined array; names are those of the parts. Cost: one pass.
/// Throws ShapeError when there is no part, a part lacks the axis, or other sizes or names differ.
template <class T>
Tensor<T> concatenate(const std::vector<TensorView<const T>>& parts, const Axis& axis = 0);

/// Positions `ids` of one axis, in that order and as often as they stand there: rows of a table by
/// number. Returns the array with that axis of size ids.size() and the same names. Cost: one pass
/// over the result. Throws ShapeError when there is no such axis; ArgumentError, naming it, for an
/// id below 0 or beyond the axis.
template <class T>
Tensor<T> gather(TensorView<const T> table, const std::vector<Index>& ids, const Axis& axis = 0);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> gather(const A& table,
                                                             const std::vector<Index>& ids,
                                                             const Axis& axis = 0) {
  return gather(detail::read_only(table), ids, axis);
}

}  // namespace eckart

// Positions that are added to a token's vector or to its scores: learned, sinusoidal, ALiBi.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"
#include "eckart/nn/rotary.h"

#include <vector>

namespace eckart {

/// Rows `positions` of a table of learned positions (position x d_model).
/// Returns positions.size() x d_model, the axes named token and as the table's where it has names.
/// Cost: one pass over the result.
/// Throws ShapeError unless the table is a matrix; ArgumentError, naming it and the table's length,
/// for a position below 0 or beyond the table.
template <class T>
Tensor<T> learned_positions(TensorView<const T> table, const std::vector<Index>& positions);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> learned_positions(
    const A& table, const std::vector<Index>& positions) {
  return learned_positions(detail::read_only(table), positions);
}

/// Column 2i of row p is sin(p / 10000^(2i / d_model)), column 2i + 1 the cosine of the same angle
/// (Vaswani et al., "Attention is all you need", arXiv 1706.03762, section 3.5).
/// Returns n_positions x d_model (token, d_model). Cost: a sine and a cosine for each pair, in double.
/// Accuracy: rounded to T; angles are off by 2^-52 of themselves.
/// Throws ArgumentError for a size below 0.
template <class T>
Tensor<T> sinusoidal_positions(Index n_positions, Index d_model);

/// One slope a head: slope x (key position - query position) is added to the scores (Press, Smith,
/// Lewis, "Train short, test long", arXiv 2108.12409). Of n heads, n a power of 2, head h has
/// 2^(-8 (h + 1) / n); otherwise the first m heads have those of the largest power of 2 below, m, and
/// the others those of 2 m heads at 0, 2, 4, …, as BLOOM and MPT do.
/// Returns n_heads (head), all above 0. Accuracy: correctly rounded, or nearly so.
/// Throws ArgumentError when n_heads is below 1.
template <class T>
Tensor<T> alibi_slopes(Index n_heads);

}  // namespace eckart

// How many solutions a system of equations has, and which.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"
#include "eckart/linalg/rank.h"

#include <string_view>

namespace eckart {

enum class Solutions { none, one, infinitely_many };
/// `none`, `one`, `infinitely many`.
std::string_view to_string(Solutions solutions);

template <class T>
struct LinearSystem {
  Solutions solutions;
  /// A solution: the one there is, or of infinitely many the one with the smallest norm; n, empty
  /// when there is none.
  Tensor<T> particular;
  /// Where there is no solution, the answer with the smallest residual (of several, the one with the
  /// smallest norm); n, empty when there are solutions.
  Tensor<T> least_squares;
  /// An orthonormal basis (n x (n - rank)) of what may be added without changing a x.
  Tensor<T> null_space;
  Index rank;
  T residual_norm;  // ||b - a x|| of the answer that is given
};

/// Classifies a x = b, for `a` of any shape.
/// `a`: m x n, finite. `b`: m, finite. `options.tolerance` says which singular values count as 0.
/// There is a solution when the residual of least squares is rounding: at most 8 max(m, n) eps
/// (s[0] ||x|| + ||b||), s[0] being a's largest singular value; that decides about data that was
/// computed, too, where a strict comparison would say none.
/// Cost: that of `svd`, and of `null_space`. Accuracy: that of `lstsq`.
/// Throws ShapeError when `b` is no vector of m, ArgumentError when anything is not finite or too
/// large, or the tolerance is not a number from 0.
template <class T>
LinearSystem<T> classify_system(TensorView<const T> a, TensorView<const T> b,
                                const RankOptions& options = {});
template <class A, class B>
requires detail::Arrays<A, B> LinearSystem<detail::Element<A>> classify_system(
    const A& a, const B& b, const RankOptions& options = {}) {
  return classify_system(detail::read_only(a), detail::read_only(b), options);
}

}  // namespace eckart

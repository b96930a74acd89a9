// Products, distances and directions of vectors.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

namespace eckart {

/// What stands for the direction of a zero vector, which has none.
enum class ZeroVector {
  error,  // ArgumentError
  zero,   // a cosine of 0, a vector of zeros
  nan,
};

struct DirectionOptions {
  ZeroVector zero_vector = ZeroVector::error;
};

/// The sum of u_i v_i. u and v have n elements each.
/// Returns a double, also for floats, whose products are exact in it.
/// Cost: one pass at the memory's speed. Accuracy: the error is at most
/// (540 + n / 65536) 2^-53 sum |u_i v_i|; the same bits for every number of threads.
/// Throws ShapeError when u or v is no vector, or their sizes or names differ.
template <class T>
double dot(TensorView<const T> u, TensorView<const T> v);
template <class U, class V>
requires detail::Arrays<U, V>
double dot(const U& u, const V& v) { return dot(detail::read_only(u), detail::read_only(v)); }

/// The length of x - y (n elements each), which neither overflows nor underflows on the way.
/// Returns a double. Cost: one pass. Accuracy: differences of floats are exact but for rounding to
/// double; then as `norm`. Throws ShapeError as `dot`.
template <class T>
double distance(TensorView<const T> x, TensorView<const T> y);
template <class X, class Y>
requires detail::Arrays<X, Y>
double distance(const X& x, const Y& y) {
  return distance(detail::read_only(x), detail::read_only(y));
}

/// x over its length: a vector, or each vector along the last axis (the rows of a matrix).
/// Returns the shape of x. Cost: two passes. Accuracy: each element to a few eps of T, whatever the
/// scale of x. A NaN makes all elements NaN; an infinity is NaN in its place and 0 elsewhere.
/// Throws ShapeError for a scalar; ArgumentError for a zero vector, unless another policy is asked.
template <class T>
Tensor<T> normalize(TensorView<const T> x, const DirectionOptions& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> normalize(
    const A& x, const DirectionOptions& options = {}) {
  return normalize(detail::read_only(x), options);
}

/// The cosine of the angle between a and b (n elements each), from -1 to 1.
/// Returns a double. Cost: three passes. Accuracy: (n / 65536 + 600) 2^-53; never beyond 1.
/// Throws ShapeError as `dot`; ArgumentError for a zero vector, unless another policy is asked.
template <class T>
double cosine_similarity(TensorView<const T> a, TensorView<const T> b,
                         const DirectionOptions& options = {});
template <class A, class B>
requires detail::Arrays<A, B>
double cosine_similarity(const A& a, const B& b, const DirectionOptions& options = {}) {
  return cosine_similarity(detail::read_only(a), detail::read_only(b), options);
}

/// Cosines of all rows of a (n_a x d) with all rows of b (n_b x d).
/// Returns n_a x n_b. Cost: 2 n_a n_b d FLOPs and unit copies of a and b. Accuracy: about
/// sqrt(d) eps of T, at most d eps; never beyond 1.
/// Throws ShapeError when a or b is no matrix or the sizes or names of their columns differ;
/// ArgumentError, naming the first, for a row of zeros, unless another policy is asked.
template <class T>
Tensor<T> cosine_similarities(TensorView<const T> a, TensorView<const T> b,
                              const DirectionOptions& options = {});
template <class A, class B>
requires detail::Arrays<A, B> Tensor<detail::Element<A>> cosine_similarities(
    const A& a, const B& b, const DirectionOptions& options = {}) {
  return cosine_similarities(detail::read_only(a), detail::read_only(b), options);
}

}  // namespace eckart

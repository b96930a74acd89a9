// Products of matrices, batched and over named axes.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <string>
#include <string_view>
#include <vector>

namespace eckart {

struct MatmulOptions {
  /// Allow the leading axes of both operands to be stretched: all pairs of a 3x1 and a 1x4 batch.
  bool outer = false;
  /// How a message names the operation and its operands.
  std::string_view operation = "matmul";
  std::string_view left = "a";
  std::string_view right = "b";
};

/// The product a b. a is … x m x k and b … x k x n, each with any number of leading axes, which are
/// broadcast; a vector is a row on the left (k), a column on the right (k).
/// Returns … x m x n, without the axes that vectors lack; two vectors give a scalar. The rows keep
/// their name, the columns too unless it is the rows' (x x^T: then they have none).
/// Cost: 2 m n k FLOPs a product; operands with a unit stride in a row or column are not copied.
/// Accuracy: each element to k eps sum |a_i b_i| at most, sums in T, the same bits for every number
/// of threads (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.5).
/// Throws ShapeError, listing every arrangement that fits, when a's columns and b's rows differ in
/// size or in name; when the leading axes don't broadcast, or both would be stretched and
/// `options.outer` is false; for a scalar.
template <class T>
Tensor<T> matmul(TensorView<const T> a, TensorView<const T> b, const MatmulOptions& options = {});
template <class A, class B>
requires detail::Arrays<A, B> Tensor<detail::Element<A>> matmul(const A& a, const B& b,
                                                                const MatmulOptions& options = {}) {
  return matmul(detail::read_only(a), detail::read_only(b), options);
}

/// x w + b. x is … x d_in, w d_in x d_out, b d_out. A PyTorch Linear stores d_out x d_in: give its
/// `transpose()`, which copies nothing.
/// Returns … x d_out. Cost, accuracy and errors: as `matmul`.
template <class T>
Tensor<T> linear(TensorView<const T> x, TensorView<const T> w, TensorView<const T> b);
/// The same without a bias.
template <class T>
Tensor<T> linear(TensorView<const T> x, TensorView<const T> w);
template <class X, class W, class B>
requires detail::Arrays<X, W, B> Tensor<detail::Element<X>> linear(const X& x, const W& w,
                                                                   const B& b) {
  return linear(detail::read_only(x), detail::read_only(w), detail::read_only(b));
}
template <class X, class W>
requires detail::Arrays<X, W> Tensor<detail::Element<X>> linear(const X& x, const W& w) {
  return linear(detail::read_only(x), detail::read_only(w));
}

/// The m x n table of u_i v_j of vectors u (m) and v (n). Cost: m n products, correctly rounded.
/// Throws ShapeError unless both are vectors.
template <class T>
Tensor<T> outer(TensorView<const T> u, TensorView<const T> v);
template <class U, class V>
requires detail::Arrays<U, V> Tensor<detail::Element<U>> outer(const U& u, const V& v) {
  return outer(detail::read_only(u), detail::read_only(v));
}

struct ContractOptions {
  /// Axes of both that are not summed over but kept, each position with its own product.
  std::vector<std::string> keep = {};
};

/// The sum over all axes whose names stand in both x and w, as in Einstein's convention: x
/// (token, head, d_head) with w (head, d_head, d_model) gives (token, d_model).
/// Returns x's axes that are not summed over, in their order, then those that w has alone. Cost: as
/// the products of the matrices that the axes are packed into, and a copy of an operand whose axes
/// don't lie in that order. Accuracy: as `matmul`.
/// Throws ShapeError when no axis is shared, a shared one differs in size, or `keep` names an axis
/// that one of them lacks.
template <class T>
Tensor<T> contract(TensorView<const T> x, TensorView<const T> w,
                   const ContractOptions& options = {});
template <class X, class W>
requires detail::Arrays<X, W> Tensor<detail::Element<X>> contract(
    const X& x, const W& w, const ContractOptions& options = {}) {
  return contract(detail::read_only(x), detail::read_only(w), options);
}

}  // namespace eckart

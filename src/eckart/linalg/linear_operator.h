// A matrix as what it does to vectors: enough to find its largest singular values without forming
// it.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

#include <memory>

namespace eckart {

namespace blas {
class TileMatrix;
}

/// An m x n matrix known by its products. Derive from it for matrices that are not stored whole.
template <class T>
class LinearOperator {
 public:
  LinearOperator() = default;
  LinearOperator(const LinearOperator&) = delete;
  LinearOperator& operator=(const LinearOperator&) = delete;
  virtual ~LinearOperator() = default;

  /// Two axes, m and n, with their names.
  virtual Shape shape() const = 0;
  /// y := A x, with x n x b and y m x b, both with unit stride along their rows.
  virtual void apply(TensorView<const T> x, TensorView<T> y) const = 0;
  /// y := A^T x, with x m x b and y n x b.
  virtual void apply_adjoint(TensorView<const T> x, TensorView<T> y) const = 0;

  /// The matrix rounded to bf16, where the machine multiplies such much faster than `apply` does;
  /// null elsewhere, and by default.
  virtual std::shared_ptr<const blas::TileMatrix> rounded() const;
  /// The matrix itself, for exact methods. By default the product with the identity: n columns.
  virtual Tensor<T> dense() const;
  /// Frobenius norm, accumulated in double. By default from products with the identity.
  virtual double frobenius_norm() const;
  /// Frobenius norm of A - u vt, with u m x r and vt r x n, entry by entry. By default from products
  /// with the identity.
  virtual double distance(TensorView<const T> u, TensorView<const T> vt) const;
  /// Throws ArgumentError, naming `operation`, when a stored entry is NaN or infinite. By default
  /// nothing is looked at.
  virtual void check_finite(const char* operation) const;
};

/// A stored matrix, which must outlive the operator.
template <class T>
class MatrixOperator : public LinearOperator<T> {
 public:
  explicit MatrixOperator(TensorView<const T> a);
  Shape shape() const override { return a_.shape(); }
  void apply(TensorView<const T> x, TensorView<T> y) const override;
  void apply_adjoint(TensorView<const T> x, TensorView<T> y) const override;
  std::shared_ptr<const blas::TileMatrix> rounded() const override;
  Tensor<T> dense() const override { return Tensor<T>(a_); }
  double frobenius_norm() const override;
  double distance(TensorView<const T> u, TensorView<const T> vt) const override;
  void check_finite(const char* operation) const override;

 private:
  TensorView<const T> a_;
};

/// a - b of two stored matrices of the same sizes, subtracted block by block before anything is
/// multiplied: where they are close, A x - B x would lose the difference's digits.
template <class T>
class DifferenceOperator : public LinearOperator<T> {
 public:
  /// Throws ShapeError when the sizes differ.
  DifferenceOperator(TensorView<const T> a, TensorView<const T> b);
  Shape shape() const override { return a_.shape(); }
  void apply(TensorView<const T> x, TensorView<T> y) const override;
  void apply_adjoint(TensorView<const T> x, TensorView<T> y) const override;
  std::shared_ptr<const blas::TileMatrix> rounded() const override;
  Tensor<T> dense() const override;
  double frobenius_norm() const override;
  double distance(TensorView<const T> u, TensorView<const T> vt) const override;
  void check_finite(const char* operation) const override;

 private:
  TensorView<const T> a_;
  TensorView<const T> b_;
};

/// left right, of factors m x k and k x n: never formed but for `dense`.
template <class T>
class ProductOperator : public LinearOperator<T> {
 public:
  /// Throws ShapeError when left's columns are not as many as right's rows.
  ProductOperator(TensorView<const T> left, TensorView<const T> right);
  Shape shape() const override;
  void apply(TensorView<const T> x, TensorView<T> y) const override;
  void apply_adjoint(TensorView<const T> x, TensorView<T> y) const override;
  double frobenius_norm() const override;
  void check_finite(const char* operation) const override;

 private:
  TensorView<const T> left_;
  TensorView<const T> right_;
};

}  // namespace eckart

// A tensor of a base and the same tensor of a tuned model: their difference, read in blocks.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/checkpoint.h"
#include "eckart/linalg/linear_operator.h"
#include "eckart/model/logical_tensors.h"

namespace eckart {

/// Both have the same axes, but that the tuned one may have more or fewer rows. They must outlive
/// it.
struct WeightPair {
  const Checkpoint* base_file = nullptr;
  const LogicalTensor* base = nullptr;  // none: zeros
  const Checkpoint* tuned_file = nullptr;
  const LogicalTensor* tuned = nullptr;

  Index rows() const;     // of the tuned one; a single number is one row
  Index columns() const;  // the product of the axes after the first
};

struct PairNorms {
  double base = 0;               // Frobenius norms
  double difference = 0;         // rows that the base has not count whole
  double shared_difference = 0;  // of the rows that both have
  bool is_same = false;          // every value
  bool is_rounded = false;       // the tuned one is the base, rounded to its own dtype
};

/// One pass over both. Throws ArgumentError, naming tensor, file and place, for a NaN or an infinity.
PairNorms compare(const WeightPair& pair);

/// Rows [first, first + n) of tuned - base, n x columns, subtracted in float from the stored values:
/// where both are narrower than float and close, exactly.
Tensor<float> load_difference(const WeightPair& pair, Index first, Index n);

/// The difference as a matrix that is read anew in every product: for matrices that are too large
/// to be held in float.
class DifferenceReader : public LinearOperator<float> {
 public:
  explicit DifferenceReader(const WeightPair& pair) : pair_(pair) {}
  Shape shape() const override { return Shape({pair_.rows(), pair_.columns()}); }
  void apply(TensorView<const float> x, TensorView<float> y) const override;
  void apply_adjoint(TensorView<const float> x, TensorView<float> y) const override;
  Tensor<float> dense() const override { return load_difference(pair_, 0, pair_.rows()); }
  double frobenius_norm() const override;
  double distance(TensorView<const float> u, TensorView<const float> vt) const override;

 private:
  WeightPair pair_;
};

}  // namespace eckart

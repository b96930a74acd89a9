// The factors of a tensor's difference, before they are rounded. Included by the library alone.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/linear_operator.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/lora/adapter_writer.h"
#include "eckart/lora/extract_plan.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace eckart {

/// The matrices of a tensor as it is stored: itself, or one an expert. One is in memory at a time.
class TensorMatrices {
 public:
  explicit TensorMatrices(const PlannedExtract& tensor);

  const std::string& name() const { return tensor_.name; }
  Index count() const { return count_; }
  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  Index limit() const { return rows_ < columns_ ? rows_ : columns_; }  // the largest rank
  /// Numbers that one rank takes, of all experts together and of a tied module too.
  Index cost() const;
  const LinearOperator<float>& at(Index i);

 private:
  const PlannedExtract& tensor_;
  Index count_ = 1;
  Index rows_ = 0;
  Index columns_ = 0;
  Index held_ = -1;
  Tensor<float> matrix_;
  std::unique_ptr<LinearOperator<float>> operator_;
};

/// difference of matrix i = b[i] a[i], in the orientation that is stored; all of one rank.
struct Decomposition {
  std::vector<Tensor<float>> b;
  std::vector<Tensor<float>> a;
  std::vector<double> energies;  // squared singular values, summed over the experts
  double norm = 0;               // Frobenius, of all matrices together
  double error = 0;              // certified
  std::string method;

  Index rank() const { return static_cast<Index>(energies.size()); }
};

/// Each matrix through low_rank; of experts, the largest rank that one of them needs. Throws
/// ArgumentError, naming the tensor, for a difference that is not finite.
Decomposition decompose(TensorMatrices& matrices, const LowRankOptions& options);
/// The first `rank` of its ranks, which are the best of that rank.
void cut(Decomposition& found, Index rank);
/// The least rank whose squared error is at most this share of the squared norm; all where none is.
Index rank_for(const Decomposition& found, double squared_share);

/// As bytes and text, and back: what a killed run leaves to the next. Sizes are `matrices`'.
std::vector<std::byte> factor_bytes(const Decomposition& found);
std::string describe(const Decomposition& found);
Decomposition read_decomposition(const std::string& note, std::span<const std::byte> bytes,
                                 const TensorMatrices& matrices);

/// The module as it is written: in the orientation of the layer, filled with zeros to `rank`.
NewModule module_of(const PlannedExtract& tensor, Decomposition found, Index rank);
/// ||difference - b a||_F with the factors of such a module.
double distance(TensorMatrices& matrices, const PlannedExtract& tensor, const NewModule& module);

}  // namespace eckart

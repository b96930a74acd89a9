// A matrix of a checkpoint that is multiplied where it lies, in the dtype it is stored in: widened
// block by block inside the product, so that a model takes the memory of its file and no more.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/dtype.h"
#include "eckart/model/logical_tensors.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace eckart {

/// A view of a mapped matrix and which of its axes is the input's.
class StoredMatrix {
 public:
  /// `tensor` is a matrix of `checkpoint`; `input_first` is true where it is stored d_in x d_out.
  /// Throws ArgumentError when it is no matrix or can't be read as numbers (see `why_unreadable`).
  StoredMatrix(std::shared_ptr<const Checkpoint> checkpoint, const LogicalTensor& tensor,
               bool input_first = false);

  const std::string& name() const { return tensor_.name; }
  Index n_inputs() const { return tensor_.shape.size(input_first_ ? 0 : 1); }
  Index n_outputs() const { return tensor_.shape.size(input_first_ ? 1 : 0); }
  bool input_first() const { return input_first_; }
  Dtype dtype() const { return tensor_.dtype; }

  /// Stored rows [first, first + n), widened into `out`, which has room for n times the row.
  void widen_rows(Index first, Index n, std::span<float> out) const;
  /// The bytes of a stored row, where they stand for the values alone: not beside scales.
  const std::byte* row_bytes(Index row) const;
  bool has_scales() const { return !tensor_.sides.empty(); }

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  LogicalTensor tensor_;
  std::span<const std::byte> bytes_;
  bool input_first_ = false;
};

/// x w: x is token x d_in; returns token x d_out. The orientation is the matrix's.
/// Cost: 2 n_tokens d_in d_out FLOPs; up to four tokens one pass over the matrix in the dtype it is
/// stored in, beyond that widened blocks of at most 1 MiB a thread and single-threaded BLAS on them.
/// Accuracy: d_in eps sum |x_i w_i| an element, sums in float. The same bits for every number of
/// threads. Throws ShapeError unless x has d_in columns.
Tensor<float> linear(TensorView<const float> x, const StoredMatrix& w);

/// Rows of a table of rows, widened: ids.size() x (row's elements). Throws ArgumentError, naming
/// the table, for an id out of range.
Tensor<float> gather_rows(const StoredMatrix& table, const std::vector<Index>& ids);

}  // namespace eckart

// Which tensors of two checkpoints are the same one.
#pragma once

#include "eckart/model/logical_tensors.h"

#include <string>
#include <vector>

namespace eckart {

/// A tensor of two checkpoints; one of the two may be missing.
struct TensorPair {
  const LogicalTensor* a = nullptr;
  const LogicalTensor* b = nullptr;
};

struct TensorPairs {
  /// In natural order of the names, those of b where both are there. Every tensor is in one pair.
  std::vector<TensorPair> pairs;
  /// What stands in front of names of the one that the other lacks: `model.`; at most one of the
  /// two is not empty.
  std::string prefix_of_a;
  std::string prefix_of_b;
};

/// Pairs tensors by name; those left over, by the name with one prefix more or less, the same for
/// all: a model saved with and without its head has `model.` in front or not. The lists must outlive
/// the result. Time n log n.
TensorPairs tensor_pairs(const std::vector<LogicalTensor>& a, const std::vector<LogicalTensor>& b);

}  // namespace eckart

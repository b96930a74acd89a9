// What two checkpoints have in common, and how far apart the rest is, tensor by tensor.
#pragma once

#include "eckart/io/checkpoint.h"
#include "eckart/linalg/spectrum.h"
#include "eckart/model/architecture.h"
#include "eckart/model/logical_tensors.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

enum class DifferenceKind { unchanged, changed, reshaped, added, removed };
std::string_view to_string(DifferenceKind kind);

/// One tensor, from a (before) to b (after).
struct TensorDifference {
  std::string name = {};  // in b; in a where b lacks it
  std::string name_a =
      {};  // in a; differs by a prefix, or is what the tensor was tied to. Empty: added
  DifferenceKind kind = DifferenceKind::unchanged;
  TensorKind tensor_kind = TensorKind::parameter;
  std::optional<Shape> shape_a = {};
  std::optional<Shape> shape_b = {};
  std::string storage_a = {};  // `BF16`, `F8_E4M3 with 128x128 scales`; empty where it is missing
  std::string storage_b = {};
  bool same_bytes = false;
  /// What a reader has to know beside the numbers: that it is tied, that only its bytes were
  /// compared and why.
  std::string note = {};

  /// Of unchanged, and of changed ones that could be read as numbers.
  bool has_values = false;
  double norm_a = 0;           // ||a||_F
  double difference_norm = 0;  // ||b - a||_F; an infinity where it has an entry that is no number
  double relative = 0;         // difference_norm / norm_a; an infinity when a is 0
  Index n_different = 0;       // entries
  double largest = 0;          // |b - a|, and where, in row-major order, it stands first
  Index largest_at = 0;
  Index n_not_finite = 0;  // NaN and infinities of b - a
  std::optional<Index> first_not_finite = {};
  /// Of b - a: of matrices whose difference is finite, where asked for. A stack of experts is the
  /// experts one below the other; of other tensors the axes behind the first are the columns.
  std::optional<Spectrum> spectrum = {};
};

/// One side of a comparison; the pointers but `architecture` are not null.
struct ComparedModel {
  const Checkpoint* checkpoint = nullptr;
  const std::vector<LogicalTensor>* tensors = nullptr;
  const Architecture* architecture = nullptr;  // tells which tensors are tied
};

struct CheckpointDifferenceOptions {
  /// Names of tensors (see name_pattern.h), with or without the prefix: those that fit one of
  /// `include`, all where it is empty, and none of `exclude`.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  bool with_spectrum = true;
  SpectrumOptions spectrum = {};
  /// Called with the number of elements of each tensor when it is done, and of all that are to do.
  std::function<void(Index done, Index all)> on_progress = {};
};

struct CheckpointDifference {
  std::vector<TensorDifference> tensors;  // in natural order of their names
  std::string prefix_of_a;                // see TensorPairs
  std::string prefix_of_b;
  double norm_a = 0;  // root of the sum of squares over the changed tensors with values
  double difference_norm = 0;
  double relative = 0;
};

/// Compares every tensor of two checkpoints, however they are stored: in other dtypes, shards or
/// with scales (dequantised), with `model.` in front of the names or not.
/// Tensors of equal bytes are read no further. Others are subtracted in float (in double where one
/// side is F64), a block of rows at a time; a matrix's difference is held whole for its spectrum
/// alone. A tensor that one side lacks because it is tied there is compared with what it is tied to.
/// Cost: one pass over both files, and the spectra (see `spectrum`). Memory: the largest matrix in
/// float. Accuracy: of the norms and the relative change 2^-24, of spectra as of `spectrum`.
/// Throws ArgumentError when a pattern fits no tensor of either.
CheckpointDifference checkpoint_difference(const ComparedModel& a, const ComparedModel& b,
                                           const CheckpointDifferenceOptions& options = {});

}  // namespace eckart

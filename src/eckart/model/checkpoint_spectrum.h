// The spectra of a checkpoint's matrices.
#pragma once

#include "eckart/io/checkpoint.h"
#include "eckart/linalg/spectrum.h"
#include "eckart/model/architecture.h"
#include "eckart/model/logical_matrices.h"
#include "eckart/model/logical_tensors.h"

#include <functional>
#include <string>
#include <vector>

namespace eckart {

struct MatrixSpectrum {
  LogicalMatrix matrix;
  Spectrum spectrum;
};

struct CheckpointSpectrum {
  std::vector<MatrixSpectrum> matrices;
  std::vector<LeftOut> left_out;
};

struct CheckpointSpectrumOptions {
  /// Which matrices, by name (see name_pattern.h): of the tensor, or with the part in brackets.
  std::string pattern = "*";
  SpectrumOptions spectrum = {};
  /// Called with the number of elements of each matrix when it is done, and of all that are to do.
  std::function<void(Index done, Index all)> on_progress = {};
};

/// The spectrum of every matrix (see `logical_matrices` for which they are; `architecture` may be
/// null), rows being outputs. One matrix is in memory at a time, in float, or in double when it is
/// stored as F64.
/// Throws ArgumentError when the pattern fits no matrix, saying what it fits instead.
CheckpointSpectrum checkpoint_spectrum(const Checkpoint& checkpoint,
                                       const std::vector<LogicalTensor>& tensors,
                                       const Architecture* architecture,
                                       const CheckpointSpectrumOptions& options = {});

}  // namespace eckart

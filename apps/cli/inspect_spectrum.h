// Spectra beside the tree of modules.
#pragma once

#include "eckart/model/checkpoint_spectrum.h"
#include "eckart/model/summary.h"

#include <optional>

namespace eckart::cli {

/// Of the matrices that a line of the tree stands for, the medians; absent where none has one.
struct NodeSpectrum {
  std::optional<double> stable_rank;
  std::optional<double> effective_rank;
  std::optional<double> alpha;
};

/// Nothing but absent figures for a module, a vector, or a matrix that can't be read.
NodeSpectrum spectrum_of(const SummaryNode& node, const CheckpointSpectrum& spectra);

}  // namespace eckart::cli

// What an adapter's modules do to their matrices: spectra of the deltas, without forming them.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/checkpoint.h"
#include "eckart/linalg/spectrum.h"
#include "eckart/lora/adapter.h"
#include "eckart/model/logical_tensors.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace eckart {

/// sigma_1 of a delta with a rank-one spike is at least so many times sigma_2.
inline constexpr double spike_ratio = 5;

/// One module. Figures are of scale * B A, DoRA's magnitude and biases left out; those of experts of
/// all together, as of one block-diagonal matrix.
struct ModuleSpectrum {
  Tensor<double> values = Tensor<double>(Shape{0});  // descending; `rank` of them, of experts each
  double frobenius_norm = 0;
  double spectral_norm = 0;  // sigma_1
  /// Of a delta that is not zero: ||D||_F^2 / sigma_1^2; exp(entropy of sigma_i / sum sigma) (Roy,
  /// Vetterli 2007); the fewest values that hold 50%, 90% and 99% of ||D||_F^2.
  std::optional<double> stable_rank = {};
  std::optional<double> effective_rank = {};
  std::optional<std::array<Index, energy_shares.size()>> energy_ranks = {};
  /// sigma_1 >= spike_ratio * sigma_2, of two values or more: one direction does nearly all.
  bool has_spike = false;
  /// ||D||_F / ||W||_F with the base's matrix W. Absent without a base, where the base has no such
  /// tensor or can't be read as numbers, and where W is zero.
  std::optional<double> relative_norm = {};
  Index parameters = 0;  // of factors, bias and magnitude
  std::uint64_t bytes = 0;
};

struct InspectAdapterOptions {
  /// The base whose names the adapter's modules have (see `Adapter::resolve_names`), and its
  /// tensors; null for none.
  const Checkpoint* base = nullptr;
  const std::vector<LogicalTensor>* tensors = nullptr;
  /// Called with the number of modules that are done and of all.
  std::function<void(Index done, Index all)> on_progress = {};
};

/// The spectra of all modules, in their order. Cost: QR of the factors and the SVD of an r x r core a
/// module (see factored_svd.h), and one pass over the base's matrices. Memory: the factors of one
/// module; of the base one piece of a matrix. Throws ArgumentError as `check_finite`.
std::vector<ModuleSpectrum> inspect_adapter(const Adapter& adapter,
                                            const InspectAdapterOptions& options = {});

}  // namespace eckart

// The next token from its logits.
#pragma once

#include "eckart/core/tensor.h"

#include <cstdint>
#include <vector>

namespace eckart {

struct SamplingOptions {
  /// Logits are divided by it: below 1 the likely tokens become likelier. 0: the likeliest always.
  double temperature = 1;
  /// Only the k likeliest tokens; 0: all.
  Index top_k = 0;
  /// Only the likeliest tokens that together have at least this probability (nucleus; Holtzman et
  /// al., arXiv 1904.09751), after `top_k`; 1: all.
  double top_p = 1;
  std::uint64_t seed = 0;
};

/// Throws ArgumentError, naming the option, for a temperature below 0, a top_k below 0 or a top_p
/// that is not above 0 and at most 1.
void check_sampling(const SamplingOptions& options);

/// Probabilities of the tokens under the options, in the order of the ids; 0 for those left out. Of
/// equal logits the lower id is the likelier. logits: vocab. Cost: n log n with top_p, else n.
/// Accuracy: in double. Throws ArgumentError as `check_sampling`, when there are no logits or one is
/// NaN; ShapeError unless they are a vector.
Tensor<double> token_probabilities(TensorView<const float> logits,
                                   const SamplingOptions& options = {});

struct SampledToken {
  Index id = 0;
  /// What the model gives it: at temperature 1, of all tokens.
  double probability = 0;
};

/// Draws a token. `position` numbers the draws: the same seed and position give the same token.
/// Throws as `token_probabilities`.
SampledToken sample_token(TensorView<const float> logits, const SamplingOptions& options,
                          std::uint64_t position);

}  // namespace eckart

// The inverse of counting: how long a context and how large a batch fit a memory.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/dtype.h"
#include "eckart/model/architecture.h"

#include <optional>
#include <string>
#include <vector>

namespace eckart {

struct FitOptions {
  Index bytes = 0;    // of the memory, at least 1
  Index context = 0;  // tokens of a sequence for the largest batch; 0: as the model was made for
  Index batch = 1;    // sequences for the longest context
  std::optional<Dtype> weights_dtype = {};  // nothing: the config's, else BF16
  /// What the weights take in their file, where that has several dtypes or is quantized.
  std::optional<Index> stored_weights_bytes = {};
  Dtype kv_dtype = Dtype::bf16;
  Dtype activation_dtype = Dtype::bf16;
  /// A decoder reads a prompt in pieces of this many tokens, all sequences together.
  Index tokens_at_once = 512;
};

/// A context and a batch with what they take.
struct FitPoint {
  Index context = 0;
  Index batch = 0;
  Index weights_bytes = 0;
  Index kv_cache_bytes = 0;  // windows respected, the latent of latent attention
  /// The largest set of tensors that live at once in a layer, attention fused, for the tokens that
  /// are computed at once (a decoder's pieces, an encoder's whole input), and, of a language model,
  /// one row of F32 logits a sequence.
  Index working_bytes = 0;
  Index total_bytes = 0;
};

struct Fit {
  Index available_bytes = 0;
  Dtype weights_dtype = Dtype::bf16;
  Index weights_bytes = 0;
  /// What is missing for the weights, one token of one sequence and their working memory; 0 when
  /// they fit.
  Index missing_bytes = 0;
  /// Where bytes are missing: the widest of BF16, F8_E4M3 and F4 with which they would fit, if any.
  std::optional<Dtype> dtype_that_fits;
  /// At the batch of the options; nothing when not even one token of each sequence fits.
  std::optional<FitPoint> longest_context;
  /// At the context of the options; nothing when not even one sequence fits.
  std::optional<FitPoint> largest_batch;
  std::vector<std::string> notes;  // the architecture's assumptions and the fit's own
};

/// Contexts and batches up to 2^40 are looked at. Throws ArgumentError when an option is out of
/// range or the weights are beyond 63 bits.
Fit fit(const Architecture& arch, const FitOptions& options);

}  // namespace eckart

// The inverse of counting: how long a context and how large a batch fit a memory.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/dtype.h"
#include "eckart/model/architecture.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// What has to fit: answering, training all parameters, or training a LoRA beside the weights.
enum class FitPurpose { inference, training, lora_training };

struct FitOptions {
  Index bytes = 0;    // of the memory, at least 1
  Index context = 0;  // tokens of a sequence for the largest batch; 0: as the model was made for
  Index batch = 1;    // sequences for the longest context
  std::optional<Dtype> weights_dtype = {};  // nothing: the config's, else BF16
  /// What the weights take in their file, where that has several dtypes or is quantized.
  std::optional<Index> stored_weights_bytes = {};
  Dtype kv_dtype = Dtype::bf16;
  std::optional<Dtype> activation_dtype = {};  // nothing: see the function in count.h
  bool train = false;
  Index lora_rank = 0;  // above 0: a LoRA is trained, whatever `train` says
  std::vector<std::string> lora_targets = {};
  /// A decoder reads a prompt in pieces of this many tokens, all sequences together.
  Index tokens_at_once = 512;
};

/// A context and a batch with what they take.
struct FitPoint {
  Index context = 0;
  Index batch = 0;
  Index weights_bytes = 0;
  Index kv_cache_bytes = 0;  // windows respected, the latent of latent attention
  /// Training: gradients and AdamW's state, and the factors of a LoRA.
  Index trained_bytes = 0;
  /// Training: the activations, score tables included, nothing recomputed (see count.h). Inference:
  /// the largest set of tensors that live at once in a layer, attention fused, for the tokens that
  /// are computed at once (a decoder's pieces, an encoder's whole input), and, of a language model,
  /// one row of F32 logits a sequence.
  Index working_bytes = 0;
  Index total_bytes = 0;
};

struct Fit {
  FitPurpose purpose = FitPurpose::inference;
  Index available_bytes = 0;
  Dtype weights_dtype = Dtype::bf16;
  Index weights_bytes = 0;
  /// What is missing for the weights, one token of one sequence and their working memory; 0 when
  /// they fit.
  Index missing_bytes = 0;
  /// What the context and the batch of the options take, and how much of that is too much.
  FitPoint request;
  Index request_missing_bytes = 0;
  /// Where bytes are missing and not all parameters are trained: the widest of BF16, F8_E4M3 and F4
  /// with which they would fit, if any.
  std::optional<Dtype> dtype_that_fits;
  /// At the batch of the options; nothing when not even one token of each sequence fits.
  std::optional<FitPoint> longest_context;
  /// At the context of the options; nothing when not even one sequence fits.
  std::optional<FitPoint> largest_batch;
  std::vector<std::string> notes;  // the architecture's assumptions and the fit's own
};

/// Contexts and batches up to 2^40 are looked at, contexts of learned positions as far as these go. Throws ArgumentError when an option is out of
/// range or the weights are beyond 63 bits.
Fit fit(const Architecture& arch, const FitOptions& options);
/// What the context and the batch of the options take, whatever memory they say. Throws as `fit`.
FitPoint memory_needed(const Architecture& arch, const FitOptions& options);

/// `inference`, `training`, `LoRA training`.
std::string_view to_string(FitPurpose purpose);

}  // namespace eckart

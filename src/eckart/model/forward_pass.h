// One run of a model over a batch, layer by layer. Included by the library alone.
#pragma once

#include "eckart/model/forward_settings.h"
#include "eckart/model/language_model.h"
#include "eckart/model/model_weights.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart::detail {

/// The model as the pass sees it.
struct ForwardModel {
  const Architecture& architecture;
  const ForwardSettings& settings;
  const ModelWeights& weights;
};

/// Tokens of a batch as rows of one matrix.
struct PassTokens {
  std::vector<Index> ids;
  std::vector<Index> types;
  std::vector<Index> positions;
  std::vector<Index> begin;  // of each sequence, and the end of the last
  /// For each sequence its mask as bytes of bool, or empty.
  std::vector<Tensor<bool>> masks;
  /// Of the rotary positions, where more tokens than these are known to come; 0: of these.
  Index context = 0;

  Index count() const { return static_cast<Index>(ids.size()); }
  Index n_sequences() const { return static_cast<Index>(begin.size()) - 1; }
};

/// Checks a batch and numbers its tokens, the first of which stands at position `past`.
PassTokens pass_tokens(const ForwardModel& model, const std::vector<TokenSequence>& batch,
                       Index past);

class ForwardPass {
 public:
  /// `caches` has a cache a layer, of one sequence, or is null.
  ForwardPass(ForwardModel model, PassTokens tokens, const ForwardOptions& options,
              std::vector<KvCache<float>>* caches)
      : model_(model), tokens_(std::move(tokens)), options_(options), caches_(caches) {}

  ForwardResult run();

 private:
  Tensor<float> embed();
  void run_layer(Index layer, Tensor<float>& x);
  Tensor<float> attend(Index layer, const Tensor<float>& x);
  Tensor<float> mlp(Index layer, const Tensor<float>& x);
  /// Queries, keys and values of all tokens, and where a head's stand in them.
  struct Projected;
  Projected project(Index layer, const Tensor<float>& x) const;
  /// Mixes the values of one sequence into its rows of `mixed`.
  void attend_sequence(Index layer, Index sequence, const Projected& projected,
                       Tensor<float>& mixed);
  AttentionOptions<float> attention_options(Index layer, Index sequence) const;
  RotaryTable<float> rotary_of(Index sequence) const;
  void find_logits();
  void show(std::string_view name, Index layer, TensorView<const float> values) const;

  ForwardModel model_;
  PassTokens tokens_;
  const ForwardOptions& options_;
  std::vector<KvCache<float>>* caches_;
  std::vector<RotaryTable<float>> rotaries_;  // one a sequence
  ForwardResult result_;
};

/// The norm of the model's kind.
Tensor<float> norm(const ForwardSettings& settings, const NormWeights& weights,
                   TensorView<const float> x);
/// Throws ArgumentError, saying why, when the model has no unembedding.
void check_logits(const ForwardModel& model);
/// Rows behind the final norm to logits.
Tensor<float> logits_of(const ForwardModel& model, TensorView<const float> hidden);

}  // namespace eckart::detail

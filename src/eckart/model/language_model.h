// A checkpoint that runs: token ids to hidden states, attention weights and logits.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/checkpoint.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/nn/kv_cache.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

struct ForwardSettings;
struct ModelWeights;

/// One sequence of a batch. Sequences lie one behind the other, without padding between them; a
/// sequence that comes with padding says in `mask` which tokens are none.
struct TokenSequence {
  std::vector<Index> ids;
  /// Token types (BERT's segments), one a token; empty: all 0.
  std::vector<Index> types = {};
  /// False where a token is padding, which no token attends to; empty: all are tokens.
  std::vector<bool> mask = {};
};

enum class Logits { none, last, all };

/// What a forward pass shows of itself while it runs.
struct Intermediate {
  /// `embedding`, `layers.0.q`, `layers.0.attention`, `final_norm`, `logits`, … in the order of
  /// computation.
  std::string_view name;
  Index layer = -1;  // -1: outside of the layers
  /// token x something; queries and keys head x token x d_head. Valid during the call.
  TensorView<const float> values;
};

struct ForwardOptions {
  Logits logits = Logits::none;  // of no token, of each sequence's last one, of every token
  bool hidden_states = false;
  /// Tables of tokens x tokens for each head: computed, and kept unless they are for
  /// `on_intermediate` alone. All layers' together take n_layers n_heads tokens^2 floats.
  bool attention_weights = false;
  bool keeps_attention = true;
  /// Called for every intermediate of each sequence.
  std::function<void(const Intermediate&)> on_intermediate = {};
};

/// Rows of all sequences, one behind the other: sequence i has rows [begin[i], begin[i + 1]).
struct ForwardResult {
  std::vector<Index> begin;
  /// The last layer's states, behind the final norm: token x d_model.
  Tensor<float> last_hidden;
  /// With `hidden_states`: the residual stream before the first layer and behind each layer,
  /// n_layers + 1 of token x d_model. The last is not yet normed where a decoder has a final norm.
  std::vector<Tensor<float>> hidden_states;
  /// With `attention_weights`, where they are kept: of each layer and sequence, head x query x key.
  std::vector<std::vector<Tensor<float>>> attention;
  /// token x vocab, or sequence x vocab for `Logits::last`.
  Tensor<float> logits;
};

/// The keys and values of a sequence that is read or generated bit by bit.
class DecodingState {
 public:
  Index length() const { return length_; }  // tokens so far
  std::uint64_t bytes() const;              // of the keys and values

 private:
  friend class LanguageModel;
  std::shared_ptr<const void> model_;  // whose it is
  std::vector<KvCache<float>> layers_;
  std::vector<Index> ids_;
  Index length_ = 0;
  bool is_broken_ = false;
};

/// A value that is cheap to copy: copies share the mapped file.
class LanguageModel {
 public:
  const Config& config() const;
  const Architecture& architecture() const;
  const Checkpoint& checkpoint() const;
  /// The longest sequence in tokens.
  Index context() const;
  /// Tokens that end a generated text: `eos_token_id` of generation_config.json or config.json.
  const std::vector<Index>& end_ids() const;
  /// What the file holds and config.json does not account for: a sentence each.
  const std::vector<std::string>& warnings() const;
  /// False for base models and encoders without their head: then there are no logits.
  bool has_logits() const;

  /// Runs a batch. Cost: the products of `count` (FLOPs), on all cores; memory: of the activations
  /// and what is asked for, beside the mapped file. Sums in float: states agree with those of double
  /// to about 1e-6 of their norm.
  /// Throws ArgumentError for an empty batch or sequence, an id or a token type out of range, a
  /// sequence longer than the context, types or a mask of another length, and for logits of a model
  /// without an unembedding.
  ForwardResult forward(const std::vector<TokenSequence>& batch,
                        const ForwardOptions& options = {}) const;

  /// An empty sequence for `extend`. Throws ArgumentError for an encoder, whose tokens see those that
  /// follow.
  DecodingState start() const;
  /// Runs further tokens of a sequence: the result has their rows alone. Afterwards the state is
  /// longer by them. With rotary positions of `longrope`, whose frequencies change behind the original
  /// context, the tokens before are run again when it is passed; with `dynamic_ntk` keys keep the
  /// frequencies that they came with, as in transformers. Throws as `forward`; ArgumentError also when
  /// an earlier call with this state failed halfway, or it is another model's.
  ForwardResult extend(DecodingState& state, const std::vector<Index>& ids,
                       const ForwardOptions& options = {}) const;

  /// Rows of a residual stream (token x d_model) through the final norm and the unembedding: what the
  /// model would say if it ended there (logit lens). token x vocab. Throws ArgumentError without an
  /// unembedding, ShapeError for rows of another width.
  Tensor<float> unembed(TensorView<const float> residual) const;

 private:
  friend LanguageModel open_language_model(const std::filesystem::path& path);
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

/// Opens a folder with config.json and weights. Nothing but norms and biases is read into memory.
/// Families: bert, gemma, gemma2, gpt2, gpt_neox, llama, mistral, phi3, qwen2, qwen3, roberta.
/// Throws FileError when config or weights are missing, FormatError naming the tensor when one is
/// missing or contradicts the config, ArgumentError naming what is supported for another family.
LanguageModel open_language_model(const std::filesystem::path& path);

}  // namespace eckart

// Texts to vectors, as a sentence encoder makes them.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/model/language_model.h"
#include "eckart/model/sentence_settings.h"
#include "eckart/model/tokenizer.h"

#include <functional>
#include <string>
#include <vector>

namespace eckart {

/// The ids of a text with its special tokens, cut to `limit` tokens where it has more: tokens of the
/// text's end go, special ones stay. Throws ArgumentError when the special tokens alone are more.
Encoding truncated(const Tokenizer& tokenizer, std::string_view text, Index limit);

struct EmbedOptions {
  /// Cut texts that are longer than the model takes; else they are an error.
  bool truncate = false;
  /// Called with the texts that are done, now and then.
  std::function<void(Index done, Index all)> on_progress = {};
};

struct Embeddings {
  Tensor<float> vectors;         // text x d
  std::vector<Index> n_tokens;   // of each text, as it was read
  std::vector<Index> truncated;  // numbers of the texts that were cut
};

/// One vector for each text. Texts are run many at a time, one behind the other, without padding.
/// Throws ArgumentError, naming the text, when it is no UTF-8, has no tokens, or is longer than the
/// model takes and `truncate` is false.
Embeddings embed_texts(const LanguageModel& model, const Tokenizer& tokenizer,
                       const SentenceSettings& settings, const std::vector<std::string>& texts,
                       const EmbedOptions& options = {});

/// The pooled vector of a text's states (token x d_model, row-major). Cost: one pass, sums in double.
/// Throws ShapeError unless they are that, with at least one token.
std::vector<float> pooled(TensorView<const float> states, const std::vector<Pooling>& poolings);

}  // namespace eckart

// How a folder of sentence-transformers makes one vector of a text's states: modules.json and the
// files that it names.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/nn/activations.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// What becomes of the states of a text's tokens. Of several the vectors stand side by side.
enum class Pooling {
  cls,            // the first token's
  max,            // the largest of each element
  mean,           // their mean
  mean_sqrt,      // their sum over the root of their number
  weighted_mean,  // their mean, weighed by the token's number from 1
  last,           // the last token's
};

/// What is done to the pooled vector: a dense layer, or bringing it to length 1.
struct SentenceStep {
  /// d_in x d_out of a dense layer; nothing: the vector is brought to length 1.
  std::optional<Tensor<float>> w;
  std::optional<Tensor<float>> b;
  std::optional<Activation> activation;
};

struct SentenceSettings {
  /// Empty where modules.json has no pooling.
  std::vector<Pooling> poolings = {Pooling::mean};
  std::vector<SentenceStep> steps;
  /// What stands in front of every text (default_prompt_name), and whether its tokens are pooled.
  std::string prompt;
  bool pools_prompt = true;
  bool lower_cases = false;  // do_lower_case: texts are lower-cased before they are cut into tokens
  /// Tokens that a text is cut to, special ones included; 0: the model's context.
  Index max_tokens = 0;
  /// False where there is no modules.json: the defaults above are taken.
  bool is_from_folder = false;

  /// Whether the vectors come out with length 1: that is the last step.
  bool normalizes() const;
};

/// Reads the folder of a model. Without modules.json: the mean, not normalised, as
/// sentence-transformers takes it. Throws FormatError for a broken file, ArgumentError, naming what is
/// supported, for a module, a pooling or an activation that is not.
SentenceSettings read_sentence_settings(const std::filesystem::path& folder);

/// `mean`, `cls`, …
std::string_view to_string(Pooling pooling);

}  // namespace eckart

// Configs small enough that every number about them can be worked out by hand.
#pragma once

#include <string>

namespace eckart::testing {

/// 872 parameters: embedding and unembedding 10 x 8 each, 2 layers of 352 (q, o 64, k, v 32, three
/// matrices of 48, two norms of 8), a last norm of 8.
inline const std::string tiny_llama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 10,
        "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 6, "max_position_embeddings": 32,
        "tie_word_embeddings": false})";

inline const std::string tiny_bert =
    R"({"model_type": "bert", "vocab_size": 10, "hidden_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 6, "type_vocab_size": 2,
        "max_position_embeddings": 8})";

/// The same config with more settings: `"key": value, …`.
inline std::string with(const std::string& json, const std::string& settings) {
  return json.substr(0, json.size() - 1) + ", " + settings + "}";
}

}  // namespace eckart::testing

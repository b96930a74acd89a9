// Activations. The caches are tested with the other counts.
#include "eckart/core/errors.h"
#include "eckart/model/count.h"

#include "tests/model/golden_configs.h"
#include "tests/model/tiny_configs.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::golden;
using testing::read_json;
using testing::tiny_bert;
using testing::tiny_llama;

// Korthikanti et al., arXiv 2205.05198, equation 1: 34 s b h + 5 a s^2 b bytes a layer in 16 bit.
TEST(Activations, OfAStandardLayerAreThePublishedFormula) {
  const Architecture arch = read_json(
      R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 2048, "n_embd": 12288,
          "n_layer": 2, "n_head": 96})");
  const Activations activations = count_activations(arch, {.context = 2048});
  ASSERT_EQ(activations.per_layer.size(), 1U);
  const Index s = 2048;
  const Index h = 12'288;
  const Index a = 96;
  EXPECT_EQ(activations.per_layer[0].training_bytes, 34 * s * h + 5 * a * s * s);
  EXPECT_EQ(activations.per_layer[0].training_bytes, 2'868'903'936);
  EXPECT_EQ(activations.per_layer[0].training_bytes_fused, 34 * s * h);
  // The paper's outside: an input mask, two inputs, logits in 32 bit.
  EXPECT_EQ(activations.training_outside_layers_bytes, s * (h + 4 * h + 4 * 50'257));
  EXPECT_EQ(activations.training_bytes,
            2 * 2'868'903'936 + activations.training_outside_layers_bytes);
}

TEST(Activations, OfATinyModelByHand) {
  const Activations activations =
      count_activations(read_json(tiny_llama), {.context = 3, .batch = 2});
  ASSERT_EQ(activations.per_layer.size(), 1U);
  const LayerActivations& layer = activations.per_layer[0];
  EXPECT_EQ(layer.n_layers, 2);
  // Two norms' inputs 16; attention's input 8, q 8, k 4, v 4, its output 8; the MLP's input 8 and
  // four of 6: 80 elements of 2 bytes for 6 tokens.
  EXPECT_EQ(layer.training_bytes_fused, 80 * 2 * 6);
  // 4 heads, 3 x 3, 2 sequences, 2 bytes.
  EXPECT_EQ(layer.training_bytes, 960 + 144);
  // The last norm's input, the unembedding's, 10 logits in F32.
  EXPECT_EQ(activations.training_outside_layers_bytes, (16 * 2 + 40) * 6);
  EXPECT_EQ(activations.training_bytes, 2 * 1104 + 432);
  EXPECT_EQ(activations.training_bytes_fused, 2 * 960 + 432);
  // Residual, attention's input and q, k, v; the MLP's step has 28.
  EXPECT_EQ(activations.inference_bytes, 32 * 2 * 6);
  EXPECT_EQ(activations.inference_bytes_with_scores, 384 + 144);
}

TEST(Activations, OfATinyEncoderWithDropoutByHand) {
  const Activations activations = count_activations(read_json(tiny_bert), {.context = 3});
  // Two norms 8, attention 5 x 4, the MLP's input 4 and two of 6; two masks of 4 bytes.
  EXPECT_EQ(activations.per_layer[0].training_bytes_fused, (44 * 2 + 8) * 3);
  // Softmax, dropout's result and its mask: 2 heads, 3 x 3, 5 bytes.
  EXPECT_EQ(activations.per_layer[0].training_bytes, 288 + 2 * 9 * 5);
  // The embedding's norm 4 and the input mask.
  EXPECT_EQ(activations.training_outside_layers_bytes, (4 * 2 + 4) * 3);
}

TEST(Activations, DistilBertDropsBehindItsMlpAlone) {
  const Architecture arch = read_json(
      R"({"model_type": "distilbert", "vocab_size": 10, "dim": 4, "n_layers": 1, "n_heads": 2,
          "hidden_dim": 6, "max_position_embeddings": 8})");
  // As BERT's layer above but for one mask of 4 bytes.
  EXPECT_EQ(count_activations(arch, {.context = 3}).per_layer[0].training_bytes_fused,
            (44 * 2 + 4) * 3);
}

TEST(Activations, PhisSharedInputIsKeptOnce) {
  const Architecture arch = read_json(
      R"({"model_type": "phi", "vocab_size": 10, "hidden_size": 4, "num_hidden_layers": 1,
          "num_attention_heads": 2, "intermediate_size": 6})");
  // One norm's input 4; attention's and the MLP's one input 4, q, k, v, output 16; two of 6.
  EXPECT_EQ(count_activations(arch, {.context = 1}).per_layer[0].training_bytes_fused,
            (4 + 4 + 16 + 12) * 2);
}

TEST(Activations, NormsOfHeadsKeepTheirInput) {
  const std::string config =
      R"({"vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 6, "head_dim": 2, "model_type": )";
  const auto kept = [&](const std::string& family) {
    const Architecture arch = read_json(config + family + "}");
    return count_activations(arch, {.context = 1}).per_layer[0].training_bytes_fused;
  };
  EXPECT_EQ(kept("\"qwen3\"") - kept("\"qwen2\""), (8 + 4) * 2);
}

TEST(Activations, EachActiveExpertKeepsItsOwn) {
  const Architecture arch = read_json(
      R"({"model_type": "mixtral", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 6,
          "num_local_experts": 4, "num_experts_per_tok": 2})");
  // Norms 16, attention 32, the router's input 8 and its 4 scores; two experts with the token's
  // copy 8, four of 6 and the output 8.
  EXPECT_EQ(count_activations(arch, {.context = 1}).per_layer[0].training_bytes_fused,
            (16 + 32 + 8 + 4 + 2 * 40) * 2);
  // Residual, input, 4 scores, two experts with a copy of 8 and gate and up of 6.
  EXPECT_EQ(live_elements_per_token(arch), 8 + 8 + 4 + 2 * (8 + 12));
}

TEST(Activations, TheScoreTableGrowsWithTheSquareOfTheContext) {
  const ScoreTable table =
      count_activations(golden("Llama-3-8B"), {.context = 8192, .batch = 2}).score_table;
  EXPECT_EQ(table.entries_per_head, 67'108'864);
  EXPECT_EQ(table.bytes_per_head, 134'217'728);
  EXPECT_EQ(table.entries_per_layer, Index{67'108'864} * 32 * 2);
  EXPECT_EQ(table.bytes_per_layer, Index{134'217'728} * 32 * 2);
}

}  // namespace
}  // namespace eckart

// What classes and settings beside a family's usual ones make of its table.
#include "eckart/core/errors.h"
#include "eckart/model/architecture.h"
#include "eckart/model/count.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/model/stored.h"
#include "tests/model/tiny_configs.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::architecture_of;
using testing::tiny_bert;
using testing::with;

const TensorSpec* find(const Architecture& arch, const std::string& name) {
  const auto found = std::find_if(arch.tensors.begin(), arch.tensors.end(),
                                  [&](const TensorSpec& spec) { return spec.name == name; });
  return found == arch.tensors.end() ? nullptr : &*found;
}

bool has_note(const Architecture& arch, const std::string& note) {
  return std::find(arch.assumptions.begin(), arch.assumptions.end(), note) !=
         arch.assumptions.end();
}

Architecture of_class(const std::string& type, const std::string& name) {
  return architecture_of(R"({"model_type": ")" + type + R"(", "architectures": [")" + name +
                         R"("], "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 6,
      "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 3,
      "shared_expert_intermediate_size": 3, "head_dim": 2, "max_position_embeddings": 32})");
}

TEST(FamilyVariants, AnsweringQuestionsTheBaseIsATransformer) {
  const std::vector<std::pair<std::string, std::string>> classes = {
      {"llama", "LlamaForQuestionAnswering"},
      {"qwen2", "Qwen2ForQuestionAnswering"},
      {"qwen2_moe", "Qwen2MoeForQuestionAnswering"},
      {"qwen3", "Qwen3ForQuestionAnswering"},
      {"qwen3_moe", "Qwen3MoeForQuestionAnswering"}};
  for (const auto& [type, name] : classes) {
    const Architecture arch = of_class(type, name);
    EXPECT_EQ(arch.base_prefix, "transformer.") << name;
    EXPECT_NE(find(arch, "transformer.embed_tokens.weight"), nullptr) << name;
    EXPECT_NE(find(arch, "qa_outputs.weight"), nullptr) << name;
  }
  EXPECT_EQ(of_class("mistral", "MistralForQuestionAnswering").base_prefix, "model.");
}

TEST(FamilyVariants, PhisTokenClassifierHadAnotherName) {
  for (const auto& [type, name] :
       {std::pair("phi", "PhiForTokenClassification"), {"phi3", "Phi3ForTokenClassification"}}) {
    const Architecture arch = of_class(type, name);
    ASSERT_NE(find(arch, "score.weight"), nullptr) << name;
    EXPECT_EQ(find(arch, "score.weight")->also_named,
              std::vector<std::string>{"classifier.weight"});
    EXPECT_EQ(find(arch, "score.bias")->also_named, std::vector<std::string>{"classifier.bias"});
  }
}

TEST(FamilyVariants, AClassForSomethingThatEndsInModelHasAHead) {
  const Architecture arch = of_class("llama", "LlamaForRewardModel");
  EXPECT_EQ(arch.base_prefix, "model.");
  EXPECT_NE(find(arch, "model.embed_tokens.weight"), nullptr);
  EXPECT_TRUE(has_note(arch,
                       "architectures names a class whose head is unknown: that of "
                       "LlamaForCausalLM is taken"));
}

TEST(FamilyVariants, BloomsOlderNameOfItsWidthWins) {
  const Architecture arch = architecture_of(
      R"({"model_type": "bloom", "vocab_size": 10, "hidden_size": 16, "n_embed": 8, "n_layer": 1,
          "n_head": 4})");
  EXPECT_EQ(arch.d_model, 8);
}

TEST(FamilyVariants, DeepseekWithoutRoutedExpertsIsDense) {
  const std::string json =
      R"({"model_type": "deepseek_v3", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 4,
          "num_attention_heads": 2, "intermediate_size": 6, "n_routed_experts": null,
          "num_nextn_predict_layers": 1})";
  const Architecture arch = architecture_of(json);
  EXPECT_EQ(arch.n_experts, 0);
  const TensorSpec* const up = find(arch, "model.layers.{layer}.mlp.up_proj.weight");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->layers, (std::vector<Index>{0, 1, 2, 3}));
  EXPECT_EQ(find(arch, "model.layers.{layer}.mlp.gate.weight"), nullptr);
  const ParameterCount count = count_parameters(arch);
  EXPECT_EQ(count.total, count.active);
}

TEST(FamilyVariants, Gemma3TakesTheOuterTieWhereTheTextModelHasNone) {
  const std::string begin =
      R"({"model_type": "gemma3", "tie_word_embeddings": false, "text_config": {
          "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1)";
  EXPECT_FALSE(architecture_of(begin + "}}").is_tied);
  EXPECT_TRUE(architecture_of(begin + R"(, "tie_word_embeddings": true}})").is_tied);
}

TEST(FamilyVariants, Gemma3sBaseClassHoldsATextModel) {
  const Architecture arch = architecture_of(
      R"({"model_type": "gemma3", "architectures": ["Gemma3Model"], "text_config": {
          "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1}})");
  EXPECT_EQ(arch.base_prefix, "model.");
  const TensorSpec* const norm = find(arch, "language_model.norm.weight");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->also_named, std::vector<std::string>{"language_model.model.norm.weight"});
}

TEST(FamilyVariants, CrossAttentionIsSaidToBeLeftOut) {
  const std::string note =
      "add_cross_attention is true: the attention to an encoder's states is not counted";
  EXPECT_TRUE(has_note(
      architecture_of(with(tiny_bert, R"("is_decoder": true, "add_cross_attention": true)")),
      note));
  EXPECT_FALSE(has_note(architecture_of(tiny_bert), note));
  EXPECT_TRUE(has_note(architecture_of(R"({"model_type": "gpt2", "vocab_size": 10, "n_embd": 8,
      "n_layer": 1, "n_head": 2, "n_positions": 4, "add_cross_attention": true})"),
                       note));
}

TEST(FamilyVariants, AClassIsEscapedInSentences) {
  const Architecture arch = architecture_of(
      R"({"model_type": "gpt2", "architectures": ["\u001b[31mForMultipleChoice"],
          "vocab_size": 10, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 4})");
  EXPECT_TRUE(
      has_note(arch, "architectures names \\x1B[31mForMultipleChoice, whose head is not counted"));
  EXPECT_EQ(arch.model_class, "\x1b[31mForMultipleChoice");
}

TEST(FamilyVariants, AQuantizationIsEscapedInSentences) {
  Architecture arch;
  arch.quantization = "\x1b[2J";
  const WeightDtype dtype = choose_weights_dtype(arch, std::nullopt);
  ASSERT_EQ(dtype.notes.size(), 2U);
  EXPECT_EQ(dtype.notes[1],
            "the config names the quantization \\x1B[2J: the weights are counted without it, the "
            "file is smaller");
}

}  // namespace
}  // namespace eckart

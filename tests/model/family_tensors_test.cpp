// Every family's table against the names and shapes of its files.
#include "eckart/core/errors.h"
#include "eckart/model/count.h"

#include <algorithm>
#include <set>

#include "tests/model/golden_configs.h"
#include "tests/model/tiny_configs.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::golden;
using testing::golden_configs;
using testing::GoldenConfig;
using testing::read_json;
using testing::thrown_by;
using testing::tiny_bert;
using testing::tiny_llama;
using testing::with;

// `name: 2x3 (a, b)` of every line of the table, for layers with the layers, for experts with their
// number.
std::vector<std::string> lines(const Architecture& arch) {
  std::vector<std::string> lines;
  for (const TensorSpec& spec : arch.tensors) {
    std::string line = spec.name + ": " + to_string(spec.shape);
    if (!spec.layers.empty()) line += " in " + std::to_string(spec.layers.size());
    if (spec.n_experts > 1) {
      line += " of " + std::to_string(spec.n_experts) + " experts";
    }
    if (!spec.tied_to.empty()) line += " tied to " + spec.tied_to;
    lines.push_back(line);
  }
  return lines;
}

const TensorSpec& find(const Architecture& arch, const std::string& name) {
  for (const TensorSpec& spec : arch.tensors) {
    if (spec.name == name) return spec;
  }
  ADD_FAILURE() << "no tensor is called " << name;
  return arch.tensors.front();
}

bool has(const Architecture& arch, const std::string& name) {
  return std::any_of(arch.tensors.begin(), arch.tensors.end(),
                     [&](const TensorSpec& spec) { return spec.name == name; });
}

Index total(const Architecture& arch) { return count_parameters(arch).total; }

TEST(FamilyTensors, LlamaNamesItsTensorsAsItsFilesDo) {
  EXPECT_EQ(lines(read_json(tiny_llama)),
            (std::vector<std::string>{
                "model.embed_tokens.weight: 10x8 (vocab, d_model)",
                "model.layers.{layer}.input_layernorm.weight: 8 (d_model) in 2",
                "model.layers.{layer}.self_attn.q_proj.weight: 8x8 (heads, d_model) in 2",
                "model.layers.{layer}.self_attn.k_proj.weight: 4x8 (kv_heads, d_model) in 2",
                "model.layers.{layer}.self_attn.v_proj.weight: 4x8 (kv_heads, d_model) in 2",
                "model.layers.{layer}.self_attn.o_proj.weight: 8x8 (d_model, heads) in 2",
                "model.layers.{layer}.post_attention_layernorm.weight: 8 (d_model) in 2",
                "model.layers.{layer}.mlp.gate_proj.weight: 6x8 (d_ff, d_model) in 2",
                "model.layers.{layer}.mlp.up_proj.weight: 6x8 (d_ff, d_model) in 2",
                "model.layers.{layer}.mlp.down_proj.weight: 8x6 (d_model, d_ff) in 2",
                "model.norm.weight: 8 (d_model)",
                "lm_head.weight: 10x8 (vocab, d_model)",
            }));
}

TEST(FamilyTensors, HeadDimDecidesTheWidthOfTheHeads) {
  const Architecture arch = read_json(with(tiny_llama, R"("head_dim": 16)"));
  EXPECT_EQ(find(arch, "model.layers.{layer}.self_attn.q_proj.weight").shape.size("heads"), 64);
  EXPECT_EQ(find(arch, "model.layers.{layer}.self_attn.k_proj.weight").shape.size("kv_heads"), 32);
}

TEST(FamilyTensors, DecoderHeadsFollowTheClass) {
  const auto of_class = [](const std::string& name) {
    std::string json = tiny_llama;
    json.replace(json.find("LlamaForCausalLM"), 16, name);
    return read_json(with(json, R"("id2label": {"0": "a", "1": "b", "2": "c"})"));
  };
  const Architecture base = of_class("LlamaModel");
  EXPECT_FALSE(has(base, "lm_head.weight"));
  EXPECT_TRUE(has(base, "layers.{layer}.mlp.up_proj.weight"));
  const Architecture sequence = of_class("LlamaForSequenceClassification");
  EXPECT_EQ(to_string(find(sequence, "score.weight").shape), "3x8 (label, d_model)");
  EXPECT_EQ(find(sequence, "score.weight").use, Use::per_sequence);
  EXPECT_FALSE(has(sequence, "score.bias"));
  const Architecture token = of_class("LlamaForTokenClassification");
  EXPECT_EQ(find(token, "score.weight").use, Use::per_token);
  EXPECT_TRUE(has(token, "score.bias"));
  EXPECT_TRUE(has(of_class("LlamaForQuestionAnswering"), "qa_outputs.weight"));
  const Architecture unknown = of_class("LlamaForWonders");
  EXPECT_TRUE(has(unknown, "lm_head.weight"));
  EXPECT_EQ(unknown.assumptions,
            (std::vector<std::string>{"architectures names a class whose head is unknown: that of "
                                      "LlamaForCausalLM is taken"}));
}

TEST(FamilyTensors, Gpt2StoresItsMatricesInputFirst) {
  const Architecture arch = golden("gpt2");
  const TensorSpec& qkv = find(arch, "transformer.h.{layer}.attn.c_attn.weight");
  EXPECT_EQ(to_string(qkv.shape), "768x2304 (d_model, qkv)");
  EXPECT_TRUE(qkv.input_first);
  EXPECT_EQ(to_string(find(arch, "transformer.h.{layer}.mlp.c_proj.weight").shape),
            "3072x768 (d_ff, d_model)");
  EXPECT_EQ(to_string(find(arch, "transformer.wpe.weight").shape), "1024x768 (position, d_model)");
  EXPECT_EQ(find(arch, "lm_head.weight").tied_to, "transformer.wte.weight");
  EXPECT_TRUE(arch.is_tied);
  EXPECT_EQ(arch.dropout, 0.1);
}

TEST(FamilyTensors, BloomTakesEitherNameOfItsSizes) {
  const std::string rest = R"("vocab_size": 20, "model_type": "bloom"})";
  const Architecture old_names =
      read_json(R"({"n_embed": 8, "n_layer": 3, "num_attention_heads": 2, )" + rest);
  const Architecture new_names =
      read_json(R"({"hidden_size": 8, "num_hidden_layers": 3, "n_head": 2, )" + rest);
  EXPECT_EQ(lines(old_names), lines(new_names));
  EXPECT_TRUE(has(new_names, "transformer.word_embeddings_layernorm.bias"));
  EXPECT_EQ(find(new_names, "lm_head.weight").tied_to, "transformer.word_embeddings.weight");
}

TEST(FamilyTensors, BertNamesItsTensorsAsItsFilesDo) {
  EXPECT_EQ(lines(read_json(tiny_bert)),
            (std::vector<std::string>{
                "embeddings.word_embeddings.weight: 10x4 (vocab, d_model)",
                "embeddings.position_embeddings.weight: 8x4 (position, d_model)",
                "embeddings.token_type_embeddings.weight: 2x4 (type, d_model)",
                "embeddings.LayerNorm.weight: 4 (d_model)",
                "embeddings.LayerNorm.bias: 4 (d_model)",
                "encoder.layer.{layer}.attention.self.query.weight: 4x4 (heads, d_model) in 1",
                "encoder.layer.{layer}.attention.self.query.bias: 4 (heads) in 1",
                "encoder.layer.{layer}.attention.self.key.weight: 4x4 (kv_heads, d_model) in 1",
                "encoder.layer.{layer}.attention.self.key.bias: 4 (kv_heads) in 1",
                "encoder.layer.{layer}.attention.self.value.weight: 4x4 (kv_heads, d_model) in 1",
                "encoder.layer.{layer}.attention.self.value.bias: 4 (kv_heads) in 1",
                "encoder.layer.{layer}.attention.output.dense.weight: 4x4 (d_model, heads) in 1",
                "encoder.layer.{layer}.attention.output.dense.bias: 4 (d_model) in 1",
                "encoder.layer.{layer}.attention.output.LayerNorm.weight: 4 (d_model) in 1",
                "encoder.layer.{layer}.attention.output.LayerNorm.bias: 4 (d_model) in 1",
                "encoder.layer.{layer}.intermediate.dense.weight: 6x4 (d_ff, d_model) in 1",
                "encoder.layer.{layer}.intermediate.dense.bias: 6 (d_ff) in 1",
                "encoder.layer.{layer}.output.dense.weight: 4x6 (d_model, d_ff) in 1",
                "encoder.layer.{layer}.output.dense.bias: 4 (d_model) in 1",
                "encoder.layer.{layer}.output.LayerNorm.weight: 4 (d_model) in 1",
                "encoder.layer.{layer}.output.LayerNorm.bias: 4 (d_model) in 1",
                "pooler.dense.weight: 4x4 (hidden, d_model)",
                "pooler.dense.bias: 4 (hidden)",
            }));
}

TEST(FamilyTensors, BertHeadsFollowTheClass) {
  const auto of_class = [](const std::string& name) {
    return read_json(with(tiny_bert, "\"architectures\": [\"" + name + "\"]"));
  };
  const Architecture masked = of_class("BertForMaskedLM");
  EXPECT_FALSE(has(masked, "bert.pooler.dense.weight"));
  EXPECT_EQ(find(masked, "cls.predictions.decoder.weight").tied_to,
            "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(find(masked, "cls.predictions.decoder.bias").tied_to, "cls.predictions.bias");
  EXPECT_EQ(find(masked, "bert.embeddings.LayerNorm.bias").also_named,
            (std::vector<std::string>{"bert.embeddings.LayerNorm.beta"}));
  const Architecture sequence = of_class("BertForSequenceClassification");
  EXPECT_TRUE(has(sequence, "bert.pooler.dense.weight"));
  EXPECT_EQ(to_string(find(sequence, "classifier.weight").shape), "2x4 (label, d_model)");
  EXPECT_FALSE(sequence.is_tied);
  EXPECT_EQ(find(of_class("BertForTokenClassification"), "classifier.weight").use, Use::per_token);
  EXPECT_TRUE(has(of_class("BertForQuestionAnswering"), "qa_outputs.bias"));
  EXPECT_TRUE(has(of_class("BertForNextSentencePrediction"), "cls.seq_relationship.weight"));
  EXPECT_EQ(find(of_class("BertForMultipleChoice"), "classifier.weight").shape.size("label"), 1);
  EXPECT_FALSE(masked.is_decoder);
}

TEST(FamilyTensors, RobertaLosesTwoPositionsToPadding) {
  const Architecture arch = golden("roberta-base");
  EXPECT_EQ(arch.context, 512);
  EXPECT_EQ(find(arch, "roberta.embeddings.position_embeddings.weight").shape.size("position"),
            514);
  EXPECT_EQ(find(arch, "lm_head.decoder.weight").tied_to,
            "roberta.embeddings.word_embeddings.weight");
}

TEST(FamilyTensors, DistilbertIsBertWithoutTypesAndPooler) {
  const std::string json =
      R"({"model_type": "distilbert", "vocab_size": 30522, "dim": 768, "n_layers": 6,
          "n_heads": 12, "hidden_dim": 3072, "max_position_embeddings": 512})";
  const Architecture base = read_json(json);
  // The published 66M: 30522 x 768 + 512 x 768 + 2 x 768 + 6 x 7,087,872.
  EXPECT_EQ(total(base), 66'362'880);
  EXPECT_TRUE(has(base, "transformer.layer.{layer}.attention.q_lin.weight"));
  const Architecture masked =
      read_json(with(json, R"("architectures": ["DistilBertForMaskedLM"])"));
  EXPECT_EQ(find(masked, "vocab_projector.weight").tied_to,
            "distilbert.embeddings.word_embeddings.weight");
  // Transform 590,592, its norm 1,536, the unembedding's bias 30,522.
  EXPECT_EQ(total(masked), 66'362'880 + 590'592 + 1'536 + 30'522);
  const Architecture sequence =
      read_json(with(json, R"("architectures": ["DistilBertForSequenceClassification"])"));
  EXPECT_EQ(find(sequence, "pre_classifier.weight").use, Use::per_sequence);
}

TEST(FamilyTensors, MixtralsExpertsAreOneLineEach) {
  const Architecture arch = golden("Mixtral-8x7B");
  const TensorSpec& up =
      find(arch, "model.layers.{layer}.block_sparse_moe.experts.{expert}.w3.weight");
  EXPECT_EQ(up.role, Role::w_up);
  EXPECT_EQ(to_string(up.shape), "14336x4096 (d_expert, d_model)");
  EXPECT_EQ(up.n_experts, 8);
  EXPECT_EQ(up.n_active_experts, 2);
  EXPECT_EQ(tensor_name(up, 3, 5), "model.layers.3.block_sparse_moe.experts.5.w3.weight");
  EXPECT_EQ(arch.d_ff, 0);
  EXPECT_EQ(arch.d_expert, 14336);
}

TEST(FamilyTensors, Qwen2MixtureHasASharedExpertBehindAGate) {
  // Qwen1.5-MoE-A2.7B, whose card says 14.3B parameters, 2.7B of them active.
  const Architecture arch = read_json(
      R"({"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"],
          "vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 24,
          "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632,
          "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
          "shared_expert_intermediate_size": 5632, "tie_word_embeddings": false})");
  EXPECT_EQ(to_string(find(arch, "model.layers.{layer}.mlp.shared_expert_gate.weight").shape),
            "1x2048 (shared_expert, d_model)");
  EXPECT_TRUE(has(arch, "model.layers.{layer}.mlp.shared_expert.up_proj.weight"));
  EXPECT_TRUE(has(arch, "model.layers.{layer}.self_attn.q_proj.bias"));
  EXPECT_FALSE(has(arch, "model.layers.{layer}.self_attn.o_proj.bias"));
  EXPECT_EQ(total(arch), 14'315'784'192);
}

TEST(FamilyTensors, PhiHasOneNormALayerAndABiasOnTheUnembedding) {
  const Architecture arch = golden("phi-2");
  EXPECT_TRUE(has(arch, "lm_head.bias"));
  EXPECT_TRUE(has(arch, "model.layers.{layer}.self_attn.dense.bias"));
  EXPECT_FALSE(has(arch, "model.layers.{layer}.post_attention_layernorm.weight"));
  EXPECT_TRUE(arch.is_parallel);
  EXPECT_FALSE(arch.is_gated);
}

TEST(FamilyTensors, Phi3FusesWhatReadsTheSameInput) {
  const Architecture arch = golden("phi-4");
  EXPECT_EQ(to_string(find(arch, "model.layers.{layer}.self_attn.qkv_proj.weight").shape),
            "7680x5120 (qkv, d_model)");
  EXPECT_EQ(to_string(find(arch, "model.layers.{layer}.mlp.gate_up_proj.weight").shape),
            "35840x5120 (gate_up, d_model)");
}

TEST(FamilyTensors, GptOssStoresItsExpertsTogether) {
  const Architecture arch = golden("gpt-oss-20b");
  const TensorSpec& up = find(arch, "model.layers.{layer}.mlp.experts.gate_up_proj");
  EXPECT_EQ(to_string(up.shape), "32x2880x5760 (expert, d_model, gate_up)");
  EXPECT_TRUE(up.input_first);
  EXPECT_EQ(to_string(find(arch, "model.layers.{layer}.mlp.experts.down_proj_bias").shape),
            "32x2880 (expert, d_model)");
  EXPECT_EQ(to_string(find(arch, "model.layers.{layer}.self_attn.sinks").shape), "64 (head)");
  EXPECT_TRUE(has(arch, "model.layers.{layer}.mlp.router.bias"));
  // The experts' matrices alone are what the files store in MXFP4.
  EXPECT_EQ(parameters(up) + parameters(find(arch, "model.layers.{layer}.mlp.experts.down_proj")),
            19'110'297'600);
}

TEST(FamilyTensors, DeepseekLiteHasNoQueryLatent) {
  const Architecture lite = golden("DeepSeek-V2-Lite");
  EXPECT_EQ(to_string(find(lite, "model.layers.{layer}.self_attn.q_proj.weight").shape),
            "3072x2048 (heads, d_model)");
  EXPECT_FALSE(has(lite, "model.layers.{layer}.self_attn.q_a_proj.weight"));
  EXPECT_EQ(to_string(find(lite, "model.layers.{layer}.self_attn.kv_a_proj_with_mqa.weight").shape),
            "576x2048 (kv_rank_rope, d_model)");
  EXPECT_EQ(to_string(find(lite, "model.layers.{layer}.self_attn.kv_b_proj.weight").shape),
            "4096x512 (keys_values, kv_rank)");
  EXPECT_EQ(to_string(find(lite, "model.layers.{layer}.mlp.shared_experts.up_proj.weight").shape),
            "2816x2048 (d_shared, d_model)");
  EXPECT_EQ(find(lite, "model.layers.{layer}.mlp.gate_proj.weight").layers, std::vector<Index>{0});
  EXPECT_EQ(lite.latent->kv_rank, 512);
  EXPECT_EQ(lite.d_head, 192);
  EXPECT_EQ(lite.d_head_v, 128);
}

}  // namespace
}  // namespace eckart

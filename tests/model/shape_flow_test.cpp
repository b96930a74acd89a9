#include "eckart/model/shape_flow.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/model/stored.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace eckart {
namespace {

using testing::architecture_of;
using testing::stored;
using testing::stored_as_implied;

std::string names(const Flow& flow, FlowStage stage) {
  std::string text;
  for (const FlowStep& step : flow.steps) {
    if (step.stage != stage) continue;
    if (!text.empty()) text += ' ';
    text += step.name;
  }
  return text;
}

const FlowStep& step_of(const Flow& flow, std::string_view name, int nth = 0) {
  for (const FlowStep& step : flow.steps) {
    if (step.name == name && nth-- == 0) return step;
  }
  ADD_FAILURE() << "no step " << name;
  return flow.steps.front();
}

Architecture llama_3_8b() {
  return architecture_of(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256,
          "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
          "num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 8192,
          "torch_dtype": "bfloat16", "tie_word_embeddings": false})");
}

Architecture small(const std::string& type, const std::string& model_class,
                   const std::string& more = "") {
  return architecture_of(R"({"model_type": ")" + type + R"(", "architectures": [")" + model_class +
                         R"("], "vocab_size": 100, "hidden_size": 16, "num_hidden_layers": 2,
          "num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 32)" +
                         more + "}");
}

TEST(ShapeFlow, OfLlamaNamesEveryStepAndShape) {
  const Flow flow = shape_flow(llama_3_8b(), {.batch = 2, .tokens = 128});
  EXPECT_EQ(names(flow, FlowStage::input), "embedding");
  EXPECT_EQ(names(flow, FlowStage::layer),
            "norm q split_heads k split_heads v split_heads rotary rotary scores softmax mix "
            "merge_heads o residual norm gate up activation down residual");
  EXPECT_EQ(names(flow, FlowStage::output), "final_norm unembedding");

  const FlowStep& q = step_of(flow, "q");
  EXPECT_EQ(q.expression, "x w_q^T");
  EXPECT_EQ(to_string(q.inputs[0]), "2x128x4096 (batch, token, d_model)");
  EXPECT_EQ(to_string(q.inputs[1]), "4096x4096 (heads, d_model)");
  EXPECT_EQ(to_string(q.output), "2x128x4096 (batch, token, heads)");
  EXPECT_EQ(q.parameters, 4096 * 4096);
  EXPECT_EQ(q.macs, Index{256} * 4096 * 4096);
  EXPECT_EQ(q.flops, 2 * q.macs);
  EXPECT_EQ(q.bytes, 2U * 128 * 4096 * 2);
  EXPECT_EQ(q.weight, "model.layers.0.self_attn.q_proj.weight");

  EXPECT_EQ(to_string(step_of(flow, "split_heads").output),
            "2x32x128x128 (batch, head, token, d_head)");
  EXPECT_EQ(to_string(step_of(flow, "split_heads", 1).output),
            "2x8x128x128 (batch, kv_head, token, d_head)");
  const FlowStep& scores = step_of(flow, "scores");
  EXPECT_EQ(to_string(scores.output), "2x32x128x128 (batch, head, token, key)");
  EXPECT_EQ(scores.expression, "q k^T / sqrt(d_head), a key for 4 query heads");
  EXPECT_EQ(scores.macs, Index{2} * 32 * 128 * 128 * 128);
  EXPECT_EQ(to_string(step_of(flow, "merge_heads").output), "2x128x4096 (batch, token, heads)");
  EXPECT_EQ(to_string(step_of(flow, "gate").output), "2x128x14336 (batch, token, d_ff)");
  const FlowStep& unembedding = step_of(flow, "unembedding");
  EXPECT_EQ(to_string(unembedding.output), "2x128x128256 (batch, token, vocab)");
  EXPECT_EQ(unembedding.expression, "x w_unembed^T");
}

// Linear maps and full-square attention of the whole model, from the table and the heads alone.
Index expected_macs(const Architecture& architecture, Index batch, Index tokens) {
  Index macs = 0;
  for (const TensorSpec& spec : architecture.tensors) {
    if (spec.is_extra) continue;
    const Index uses = spec.use == Use::per_sequence ? batch : batch * tokens;
    macs += macs_per_use(spec) * uses;
  }
  return macs + architecture.n_layers * batch * architecture.n_heads * tokens * tokens *
                    (architecture.d_head + architecture.d_head_v);
}

Index flow_macs(const Architecture& architecture, Index batch, Index tokens) {
  Index macs = 0;
  for (Index layer = 0; layer < architecture.n_layers; ++layer) {
    const Flow flow = shape_flow(architecture, {.batch = batch, .tokens = tokens, .layer = layer});
    for (const FlowStep& step : flow.steps) {
      if (step.stage == FlowStage::layer || layer == 0) macs += step.macs;
    }
  }
  return macs;
}

TEST(ShapeFlow, ItsMacsAddUpToTheFormulaInEveryFamily) {
  std::ifstream file(std::string(ECKART_SOURCE_DIR) + "/tests/golden/model_counts.json");
  for (const auto& model : nlohmann::json::parse(file)) {
    const Architecture architecture = architecture_of(model["config"].dump());
    EXPECT_EQ(flow_macs(architecture, 2, 24), expected_macs(architecture, 2, 24)) << model["name"];
  }
}

TEST(ShapeFlow, ItsParametersAddUpToTheTableInEveryFamily) {
  std::ifstream file(std::string(ECKART_SOURCE_DIR) + "/tests/golden/model_counts.json");
  for (const auto& model : nlohmann::json::parse(file)) {
    const Architecture architecture = architecture_of(model["config"].dump());
    Index expected = 0;
    for (const TensorSpec& spec : architecture.tensors) {
      if (!spec.is_extra) expected += parameters(spec);
    }
    Index sum = 0;
    for (Index layer = 0; layer < architecture.n_layers; ++layer) {
      for (const FlowStep& step : shape_flow(architecture, {.tokens = 4, .layer = layer}).steps) {
        if (step.stage == FlowStage::layer || layer == 0) sum += step.parameters;
      }
    }
    EXPECT_EQ(sum, expected) << model["name"];
  }
}

TEST(ShapeFlow, OfLlama2HasThePublishedMacs) {
  const Architecture architecture = architecture_of(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32000,
          "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
          "num_key_value_heads": 32, "intermediate_size": 11008, "max_position_embeddings": 4096,
          "tie_word_embeddings": false})");
  EXPECT_EQ(flow_macs(architecture, 1, 128), 850'000'871'424);
}

TEST(ShapeFlow, OfGpt2SplitsFusedQueriesAndAddsLearnedPositions) {
  const Architecture gpt2 = architecture_of(
      R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50,
          "n_positions": 8, "n_embd": 4, "n_layer": 2, "n_head": 2})");
  const Flow flow = shape_flow(gpt2);
  EXPECT_EQ(flow.tokens, 8);
  EXPECT_EQ(names(flow, FlowStage::input), "embedding position_embedding");
  EXPECT_EQ(names(flow, FlowStage::layer),
            "norm qkv split_heads split_heads split_heads scores softmax mix merge_heads o "
            "residual norm up activation down residual");
  EXPECT_EQ(step_of(flow, "qkv").expression, "x w_qkv + b");
  EXPECT_EQ(to_string(step_of(flow, "qkv").output), "1x8x12 (batch, token, qkv)");
  EXPECT_EQ(step_of(flow, "norm").expression, "(x - mean) / std * w + b");
  const FlowStep& unembedding = step_of(flow, "unembedding");
  EXPECT_EQ(unembedding.expression, "x w_embed^T");
  EXPECT_EQ(unembedding.weight, "transformer.wte.weight");
  EXPECT_EQ(unembedding.parameters, 0);
}

TEST(ShapeFlow, OfBertPutsTheNormsBehindTheSums) {
  const Flow flow = shape_flow(small("bert", "BertModel", R"(, "type_vocab_size": 2)"),
                               {.batch = 3, .tokens = 5, .layer = 1});
  EXPECT_EQ(names(flow, FlowStage::input),
            "embedding position_embedding type_embedding embedding_norm");
  EXPECT_EQ(names(flow, FlowStage::layer),
            "q split_heads k split_heads v split_heads scores softmax mix merge_heads o residual "
            "norm up activation down residual norm");
  EXPECT_EQ(names(flow, FlowStage::output), "select pooler");
  EXPECT_EQ(to_string(step_of(flow, "pooler").output), "3x16 (batch, hidden)");
  EXPECT_EQ(step_of(flow, "pooler").macs, 3 * 16 * 16);
  EXPECT_EQ(step_of(flow, "q").weight, "encoder.layer.1.attention.self.query.weight");
  EXPECT_EQ(step_of(flow, "softmax").expression, "softmax over all keys");
}

TEST(ShapeFlow, OfPhiAndNeoxIsOneSumOfBothBlocks) {
  const std::string layer =
      "norm q split_heads k split_heads v split_heads rotary rotary scores softmax mix "
      "merge_heads o up activation down residual";
  EXPECT_EQ(names(shape_flow(small("phi", "PhiForCausalLM")), FlowStage::layer), layer);
  EXPECT_EQ(names(shape_flow(small("gpt_neox", "GPTNeoXForCausalLM")), FlowStage::layer),
            "norm qkv split_heads split_heads split_heads rotary rotary scores softmax mix "
            "merge_heads o norm up activation down residual");
}

TEST(ShapeFlow, OfGemma2HasANormOnBothSidesOfEachBlockAndWindows) {
  const Architecture gemma =
      small("gemma2", "Gemma2ForCausalLM",
            R"(, "num_key_value_heads": 2, "head_dim": 4, "sliding_window": 4096)");
  const Flow sliding = shape_flow(gemma);
  EXPECT_EQ(names(sliding, FlowStage::layer),
            "norm q split_heads k split_heads v split_heads rotary rotary scores softmax mix "
            "merge_heads o norm residual norm gate up activation down norm residual");
  EXPECT_EQ(step_of(sliding, "softmax").expression,
            "softmax over the keys up to the token, the last 4,096 of them");
  EXPECT_EQ(step_of(shape_flow(gemma, {.layer = 1}), "softmax").expression,
            "softmax over the keys up to the token");
}

TEST(ShapeFlow, OfGemma2SaysHowItsFormulasDiffer) {
  const std::string more = R"(, "num_key_value_heads": 4, "query_pre_attn_scalar": 224)";
  const Flow flow = shape_flow(small("gemma2", "Gemma2ForCausalLM", more));
  EXPECT_EQ(step_of(flow, "embedding").expression,
            "rows of w_embed at the tokens' numbers, times sqrt(d_model)");
  EXPECT_EQ(step_of(flow, "norm").expression, "x / rms(x) * (1 + w)");
  EXPECT_EQ(step_of(flow, "scores").expression, "50 tanh(q k^T / sqrt(224) / 50)");
  EXPECT_EQ(step_of(flow, "unembedding").expression, "30 tanh(x w_embed^T / 30)");
  const Flow plain = shape_flow(
      small("gemma2", "Gemma2ForCausalLM",
            more + R"(, "attn_logit_softcapping": null, "final_logit_softcapping": null)"));
  EXPECT_EQ(step_of(plain, "scores").expression, "q k^T / sqrt(224)");
  EXPECT_EQ(step_of(plain, "unembedding").expression, "x w_embed^T");
}

TEST(ShapeFlow, OfPhiAndNeoxTurnsAPartOfEachHead) {
  EXPECT_EQ(step_of(shape_flow(small("phi", "PhiForCausalLM")), "rotary").expression,
            "the first 2 of each head of q turned by the token's position");
  EXPECT_EQ(step_of(shape_flow(small("gpt_neox", "GPTNeoXForCausalLM")), "rotary").expression,
            "the first 1 of each head of q turned by the token's position");
  EXPECT_EQ(step_of(shape_flow(small("gpt_neox", "GPTNeoXForCausalLM", R"(, "rotary_pct": 1.0)")),
                    "rotary")
                .expression,
            "q turned by the token's position");
}

TEST(ShapeFlow, OfBloomAddsADistanceToTheScores) {
  const Flow flow = shape_flow(architecture_of(
      R"({"model_type": "bloom", "architectures": ["BloomForCausalLM"], "vocab_size": 50,
          "hidden_size": 16, "n_layer": 2, "n_head": 4, "seq_length": 8})"));
  EXPECT_EQ(names(flow, FlowStage::input), "embedding embedding_norm");
  EXPECT_EQ(step_of(flow, "scores").expression, "q k^T / sqrt(d_head) - slope * distance");
}

TEST(ShapeFlow, OfQwen3NormsQueriesAndKeysHeadByHead) {
  const Flow flow = shape_flow(
      small("qwen3", "Qwen3ForCausalLM", R"(, "num_key_value_heads": 2, "head_dim": 8)"));
  EXPECT_EQ(names(flow, FlowStage::layer),
            "norm q split_heads k split_heads v split_heads q_norm k_norm rotary rotary scores "
            "softmax mix merge_heads o residual norm gate up activation down residual");
  EXPECT_EQ(to_string(step_of(flow, "k_norm").output), "1x2x32x8 (batch, kv_head, token, d_head)");
}

TEST(ShapeFlow, OfDeepseekGoesThroughTheLatentsAndTheExperts) {
  const Architecture deepseek =
      small("deepseek_v2", "DeepseekV2ForCausalLM",
            R"(, "moe_intermediate_size": 4, "n_routed_experts": 6, "num_experts_per_tok": 2,
          "n_shared_experts": 2, "first_k_dense_replace": 1, "q_lora_rank": 6, "kv_lora_rank": 8,
          "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 3,
          "tie_word_embeddings": false)");
  const std::string attention =
      "norm q_down latent_norm q_up split_heads kv_down split_latent split_latent latent_norm "
      "kv_up split_heads split_heads rotary rotary scores softmax mix merge_heads o residual norm ";
  EXPECT_EQ(names(shape_flow(deepseek), FlowStage::layer),
            attention + "gate up activation down residual");
  const Flow flow = shape_flow(deepseek, {.tokens = 10, .layer = 1});
  EXPECT_EQ(names(flow, FlowStage::layer),
            attention +
                "router top_k expert_gate expert_up expert_activation expert_down combine "
                "shared_gate shared_up shared_activation shared_down add_shared residual");
  EXPECT_EQ(to_string(step_of(flow, "kv_down").output), "1x10x10 (batch, token, kv_rank_rope)");
  EXPECT_EQ(to_string(step_of(flow, "kv_up").output), "1x10x28 (batch, token, keys_values)");
  EXPECT_EQ(to_string(step_of(flow, "mix").output), "1x4x10x3 (batch, head, token, d_head_v)");
  EXPECT_EQ(to_string(step_of(flow, "expert_gate").output),
            "1x10x2x4 (batch, token, active, d_expert)");
  EXPECT_EQ(step_of(flow, "expert_gate").macs, 10 * 2 * 4 * 16);
  EXPECT_EQ(step_of(flow, "expert_gate").parameters, 6 * 4 * 16);
  EXPECT_EQ(step_of(flow, "top_k").expression, "the 2 best experts of each token");
}

TEST(ShapeFlow, OfGptOssHasSinksAndFusedExperts) {
  const Flow flow =
      shape_flow(small("gpt_oss", "GptOssForCausalLM",
                       R"(, "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 3,
          "num_experts_per_tok": 2)"));
  const FlowStep& softmax = step_of(flow, "softmax");
  EXPECT_EQ(softmax.weight, "model.layers.0.self_attn.sinks");
  EXPECT_NE(softmax.expression.find(", and one sink a head"), std::string::npos);
  EXPECT_EQ(to_string(step_of(flow, "expert_gate_up").output),
            "1x32x2x80 (batch, token, active, gate_up)");
  EXPECT_EQ(step_of(flow, "expert_gate_up").expression, "x w_gate_up + b");
}

TEST(ShapeFlow, OptionsOutOfRangeAreErrors) {
  const Architecture gemma = small("gemma", "GemmaForCausalLM", R"(, "num_key_value_heads": 4)");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { shape_flow(gemma, {.layer = 2}); }),
            "shape_flow: layer 2, but the model has layers 0 to 1");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { shape_flow(gemma, {.batch = 0}); }),
            "shape_flow: batch 0 and tokens 0, but the batch must be at least 1 and the tokens at "
            "least 0, which means the model's context");
}

TEST(ShapeFlow, CountsThatDoNotFitAreErrors) {
  const Architecture gemma = small("gemma", "GemmaForCausalLM", R"(, "num_key_value_heads": 4)");
  EXPECT_THROW(shape_flow(gemma, {.batch = Index{1} << 40, .tokens = Index{1} << 40}), ShapeError);
  const std::string text =
      testing::thrown_by<ArgumentError>([&] { shape_flow(gemma, {.tokens = Index{1} << 30}); });
  EXPECT_TRUE(text.starts_with("count: the MACs of attention")) << text;
}

std::optional<FlowConflict> conflict_of(const Architecture& architecture,
                                        const std::vector<StoredTensor>& list) {
  const std::vector<LogicalTensor> tensors = logical_tensors(stored_list(list));
  return check_flow(shape_flow(architecture, {.tokens = 4}), architecture, tensors);
}

TEST(CheckFlow, AFileAsImpliedHasNoConflict) {
  const Architecture llama = small("llama", "LlamaForCausalLM");
  EXPECT_FALSE(conflict_of(llama, stored_as_implied(llama, Dtype::f32)));
}

TEST(CheckFlow, TheFirstStepThatContradictsIsMarkedWithWhatWouldFit) {
  const Architecture llama = small("llama", "LlamaForCausalLM");
  std::vector<StoredTensor> list = stored_as_implied(llama, Dtype::f32);
  for (StoredTensor& tensor : list) {
    if (tensor.name.find("_proj") == std::string::npos) continue;
    if (tensor.name.find("self_attn.o_proj") != std::string::npos) {
      tensor = stored(tensor.name, tensor.dtype, {16, 32});
    } else if (tensor.name.find("self_attn") != std::string::npos) {
      tensor = stored(tensor.name, tensor.dtype, {32, 16});
    }
  }
  const std::optional<FlowConflict> conflict = conflict_of(llama, list);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(shape_flow(llama, {.tokens = 4}).steps[conflict->step].name, "q");
  EXPECT_EQ(conflict->tensor, "model.layers.0.self_attn.q_proj.weight");
  ASSERT_TRUE(conflict->found);
  EXPECT_EQ(*conflict->found, (Shape{32, 16}));
  EXPECT_EQ(conflict->message,
            "model.layers.0.self_attn.q_proj.weight is 32x16 in the file, but config.json implies "
            "16x16 (heads, d_model), where heads is n_heads 4 x d_head 4");
  EXPECT_EQ(conflict->hint,
            "the file fits d_head (head_dim) 8 instead of 4 or n_heads (num_attention_heads) 8 "
            "instead of "
            "4");
}

TEST(CheckFlow, AMissingTensorIsAConflict) {
  const Architecture llama = small("llama", "LlamaForCausalLM");
  std::vector<StoredTensor> list = stored_as_implied(llama, Dtype::f32);
  testing::remove_stored(list, "layers.0.mlp.up_proj");
  const std::optional<FlowConflict> conflict = conflict_of(llama, list);
  ASSERT_TRUE(conflict);
  EXPECT_FALSE(conflict->found);
  EXPECT_EQ(conflict->message,
            "model.layers.0.mlp.up_proj.weight is not in the file, but config.json implies 40x16 "
            "(d_ff, d_model)");
}

TEST(CheckFlow, ATiedPairMayStandUnderEitherName) {
  const Architecture gemma = small("gemma", "GemmaForCausalLM", R"(, "num_key_value_heads": 4)");
  std::vector<StoredTensor> list = stored_as_implied(gemma, Dtype::f32);
  testing::remove_stored(list, "embed_tokens");
  list.push_back(stored("lm_head.weight", Dtype::f32, {100, 16}));
  EXPECT_FALSE(conflict_of(gemma, list));
}

}  // namespace
}  // namespace eckart

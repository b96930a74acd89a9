#include "eckart/model/summary.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/model/stored.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::architecture_of;
using testing::stored;
using testing::stored_as_implied;

using List = std::vector<StoredTensor>;

Summary summary_of(const List& list, const Architecture* architecture = nullptr) {
  return summarize(logical_tensors(stored_list(list)), architecture);
}

// The tree as text: a line a row, indented, with copies, parameters and shape.
void write_rows(const SummaryNode& node, const std::string& indent, std::string& text) {
  for (const SummaryNode& row : node.children) {
    text += indent + row.label;
    if (row.n_copies > 1) text += " x" + std::to_string(row.n_copies);
    text += ' ' + std::to_string(row.parameters);
    if (row.is_tensor) text += ' ' + to_string(row.shape) + ' ' + row.storage;
    if (row.with_bias) text += " with bias";
    text += '\n';
    write_rows(row, indent + "  ", text);
  }
}

std::string text_of(const Summary& summary) {
  std::string text;
  write_rows(summary.root, "", text);
  return text;
}

constexpr const char* tiny_bert =
    R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 100,
        "max_position_embeddings": 16, "hidden_size": 8, "num_hidden_layers": 3,
        "num_attention_heads": 2, "intermediate_size": 32, "type_vocab_size": 2})";

TEST(Summary, OfBertFoldsLayersAndBiasesInTheOrderOfTheTable) {
  const Architecture bert = architecture_of(tiny_bert);
  List list = stored_as_implied(bert, Dtype::f32);
  std::reverse(list.begin(), list.end());
  EXPECT_EQ(text_of(summary_of(list, &bert)),
            "embeddings 960\n"
            "  word_embeddings 800 100x8 (vocab, d_model) F32\n"
            "  position_embeddings 128 16x8 (position, d_model) F32\n"
            "  token_type_embeddings 16 2x8 (type, d_model) F32\n"
            "  LayerNorm 16 8 (d_model) F32 with bias\n"
            "encoder.layer.{0..2} x3 872\n"
            "  attention.self.query 72 8x8 (heads, d_model) F32 with bias\n"
            "  attention.self.key 72 8x8 (kv_heads, d_model) F32 with bias\n"
            "  attention.self.value 72 8x8 (kv_heads, d_model) F32 with bias\n"
            "  attention.output.dense 72 8x8 (d_model, heads) F32 with bias\n"
            "  attention.output.LayerNorm 16 8 (d_model) F32 with bias\n"
            "  intermediate.dense 288 32x8 (d_ff, d_model) F32 with bias\n"
            "  output.dense 264 8x32 (d_model, d_ff) F32 with bias\n"
            "  output.LayerNorm 16 8 (d_model) F32 with bias\n"
            "pooler.dense 72 8x8 (hidden, d_model) F32 with bias\n");
}

TEST(Summary, SharesAreOfTheWholeModelOverAllCopies) {
  const Architecture bert = architecture_of(tiny_bert);
  const Summary summary = summary_of(stored_as_implied(bert, Dtype::f32), &bert);
  ASSERT_EQ(summary.root.children.size(), 3U);
  const Index total = 960 + 3 * 872 + 72;
  EXPECT_EQ(summary.root.parameters, total);
  EXPECT_EQ(summary.root.bytes, static_cast<std::uint64_t>(total) * 4);
  EXPECT_DOUBLE_EQ(summary.root.share, 1);
  EXPECT_DOUBLE_EQ(summary.root.children[1].share, 3.0 * 872 / static_cast<double>(total));
  EXPECT_DOUBLE_EQ(summary.root.children[1].children[0].share,
                   3.0 * 72 / static_cast<double>(total));
  EXPECT_EQ(summary.root.children[1].path, "encoder.layer.{0..2}");
  EXPECT_EQ(summary.root.children[1].children[0].path, "encoder.layer.{0..2}.attention.self.query");
}

TEST(Summary, LayersThatDifferStandApartAndExpertsFoldWithin) {
  const Architecture deepseek = architecture_of(
      R"({"model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"],
          "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2,
          "intermediate_size": 24, "moe_intermediate_size": 4, "n_routed_experts": 6,
          "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1,
          "q_lora_rank": null, "kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2,
          "v_head_dim": 4, "max_position_embeddings": 128, "tie_word_embeddings": false})");
  const Summary summary = summary_of(stored_as_implied(deepseek, Dtype::bf16), &deepseek);
  const std::string text = text_of(summary);
  EXPECT_NE(text.find("\nmodel.layers.0 "), std::string::npos) << text;
  EXPECT_NE(text.find("\nmodel.layers.{1..3} x3 "), std::string::npos) << text;
  EXPECT_NE(text.find("  mlp.experts.{0..5} x6 192\n"
                      "    gate_proj 64 4x16 (d_expert, d_model) BF16\n"),
            std::string::npos)
      << text;
}

TEST(Summary, ScatteredEqualLayersFoldUnderOneLabel) {
  List list;
  for (const Index layer : {0, 1, 2, 3, 4, 5}) {
    const Index width = layer == 1 || layer == 3 ? 4 : 2;
    list.push_back(stored("h." + std::to_string(layer) + ".w.weight", Dtype::f32, {width, 2}));
  }
  EXPECT_EQ(text_of(summary_of(list)),
            "h.{0,2,4,5} x4 4\n  w 4 2x2 F32\n"
            "h.{1,3} x2 8\n  w 8 4x2 F32\n");
}

TEST(Summary, EqualShapesOfOtherStorageDoNotFold) {
  const List list = {stored("h.0.w", Dtype::f32, {2}), stored("h.1.w", Dtype::bf16, {2})};
  EXPECT_EQ(summary_of(list).root.children.size(), 2U);
}

TEST(Summary, BiasesOfTensorsWithoutAModuleFoldToo) {
  const List list = {stored("h.0.experts.up", Dtype::bf16, {4, 2, 3}),
                     stored("h.0.experts.up_bias", Dtype::bf16, {4, 3})};
  EXPECT_EQ(text_of(summary_of(list)), "h.0 36\n  experts.up 36 4x2x3 BF16 with bias\n");
}

TEST(Summary, ABiasWithoutItsWeightIsARow) {
  EXPECT_EQ(text_of(summary_of({stored("cls.bias", Dtype::f32, {7})})), "cls.bias 7 7 F32\n");
}

TEST(Summary, BuffersAndTiedMatricesAreListedApart) {
  const Architecture gpt2 = architecture_of(
      R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50,
          "n_positions": 8, "n_embd": 4, "n_layer": 2, "n_head": 2})");
  List list = stored_as_implied(gpt2, Dtype::f32);
  list.push_back(stored("lm_head.weight", Dtype::f32, {50, 4}));
  list.push_back(stored("transformer.h.0.attn.bias", Dtype::f32, {1, 1, 8, 8}));
  list.push_back(stored("transformer.h.1.attn.bias", Dtype::f32, {1, 1, 8, 8}));
  const Summary summary = summary_of(list, &gpt2);
  Index implied = 0;
  for (const TensorSpec& spec : gpt2.tensors) implied += parameters(spec);
  EXPECT_EQ(summary.root.parameters, implied);
  ASSERT_EQ(summary.not_counted.size(), 2U);
  EXPECT_EQ(summary.not_counted[0].name, "lm_head.weight");
  EXPECT_EQ(summary.not_counted[0].reason, "tied to transformer.wte.weight");
  EXPECT_EQ(summary.not_counted[1].name, "transformer.h.{0,1}.attn.bias");
  EXPECT_EQ(summary.not_counted[1].reason, "a buffer");
  EXPECT_EQ(summary.not_counted[1].elements, 128);
  EXPECT_EQ(summary.not_counted[1].n_tensors, 2);
}

TEST(Summary, OfNothingIsEmpty) {
  const Summary summary = summary_of({});
  EXPECT_EQ(summary.root.parameters, 0);
  EXPECT_TRUE(summary.root.children.empty());
}

TEST(Summary, OfHostileNamesIsATreeOfBoundedDepth) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a.";
  const Summary summary = summary_of({stored(deep, Dtype::f32, {3}), stored("", Dtype::f32, {2}),
                                      stored("..", Dtype::f32, {1}), stored("a", Dtype::f32, {4})});
  EXPECT_EQ(summary.root.parameters, 10);
}

TEST(Summary, OfOneNameMadeOfManyNumbersDoesNotCompareAllWithAll) {
  // Siblings no two of which are alike: comparing all with all would take minutes.
  List list;
  for (Index i = 0; i < 30'000; ++i) {
    list.push_back(stored("w." + std::to_string(i) + ".a" + std::to_string(i), Dtype::f32, {1}));
  }
  const Summary summary = summary_of(list);
  EXPECT_TRUE(summary.is_flat);
  EXPECT_EQ(summary.root.children.size(), 10'000U);
  EXPECT_EQ(summary.n_omitted, 20'000);
  EXPECT_EQ(summary.root.n_tensors, 30'000);
}

TEST(Summary, OfTheRealMiniLmHasTheParametersOfItsCard) {
  const std::filesystem::path folder =
      std::filesystem::path(ECKART_SOURCE_DIR) / "models/all-MiniLM-L6-v2";
  if (!std::filesystem::exists(folder / "model.safetensors")) {
    GTEST_SKIP() << "tools/fetch_minilm has not been run";
  }
  const Checkpoint checkpoint = open_checkpoint(folder);
  const Architecture architecture = read_architecture(load_config(folder));
  const Summary summary = summarize(logical_tensors(checkpoint), &architecture);
  EXPECT_EQ(summary.root.parameters, 22'713'216);
  EXPECT_EQ(summary.root.bytes, 22'713'216U * 4);
  ASSERT_EQ(summary.root.children.size(), 3U);
  EXPECT_EQ(summary.root.children[0].parameters, 11'918'592);
  EXPECT_EQ(summary.root.children[1].label, "encoder.layer.{0..5}");
  EXPECT_EQ(summary.root.children[1].parameters, 1'774'464);
  EXPECT_EQ(summary.root.children[1].children[0].parameters, 147'840);
  ASSERT_EQ(summary.not_counted.size(), 1U);
  EXPECT_EQ(summary.not_counted[0].name, "embeddings.position_ids");
}

}  // namespace
}  // namespace eckart

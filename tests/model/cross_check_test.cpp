#include "eckart/model/cross_check.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "tests/model/stored.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace eckart {
namespace {

using testing::architecture_of;
using testing::find_stored;
using testing::remove_stored;
using testing::stored;
using testing::stored_as_implied;

using List = std::vector<StoredTensor>;

std::vector<Difference> check(const Architecture& architecture, const List& list,
                              const ShardIndex* index = nullptr) {
  const StoredList all = stored_list(list);
  const std::vector<LogicalTensor> tensors = logical_tensors(all);
  return cross_check(
      {.architecture = &architecture, .tensors = &tensors, .stored = &all, .index = index});
}

// All kinds, in order, as one text.
std::string kinds(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& difference : differences) {
    if (!text.empty()) text += ' ';
    text += difference.kind;
  }
  return text;
}

Architecture llama(const std::string& more = "") {
  return architecture_of(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128,
          "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8,
          "num_key_value_heads": 2, "intermediate_size": 160, "max_position_embeddings": 256,
          "torch_dtype": "bfloat16", "tie_word_embeddings": false)" +
      more + "}");
}

Architecture gpt2() {
  return architecture_of(
      R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50,
          "n_positions": 8, "n_embd": 4, "n_layer": 2, "n_head": 2})");
}

Architecture mixtral() {
  return architecture_of(
      R"({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "vocab_size": 128,
          "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 8,
          "num_key_value_heads": 2, "intermediate_size": 160, "max_position_embeddings": 256,
          "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": null,
          "tie_word_embeddings": false})");
}

void resize(List& list, std::string_view part_of_name, const Shape& shape) {
  for (StoredTensor& tensor : list) {
    if (tensor.name.find(part_of_name) == std::string::npos) continue;
    tensor = stored(tensor.name, tensor.dtype, shape);
  }
}

TEST(CrossCheck, AFileAsItsConfigImpliesHasNoDifferenceInAnyFamily) {
  std::ifstream file(std::string(ECKART_SOURCE_DIR) + "/tests/golden/model_counts.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 15U);
  for (const auto& model : cases) {
    const Architecture architecture = architecture_of(model["config"].dump());
    const Dtype dtype = architecture.dtype.value_or(Dtype::bf16);
    EXPECT_EQ(kinds(check(architecture, stored_as_implied(architecture, dtype))), "")
        << model["name"];
  }
}

TEST(CrossCheck, AMissingTensorIsAnErrorToldOnceForAllLayers) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  remove_stored(list, "q_proj");
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "missing_tensor");
  EXPECT_EQ(found[0].level, DifferenceLevel::error);
  EXPECT_EQ(found[0].count, 4);
  EXPECT_EQ(found[0].tensor, "model.layers.{0..3}.self_attn.q_proj.weight");
  EXPECT_EQ(found[0].message,
            "model.layers.{0..3}.self_attn.q_proj.weight is not in the file in 4 layers, but "
            "config.json implies 64x64 (heads, d_model)");
}

TEST(CrossCheck, MissingExpertsAreCountedOverLayers) {
  const Architecture architecture = mixtral();
  List list = stored_as_implied(architecture, Dtype::bf16);
  remove_stored(list, "experts.3.w1");
  remove_stored(list, "layers.0.block_sparse_moe.experts.2.w1");
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "missing_tensor");
  EXPECT_EQ(found[0].count, 4);
  EXPECT_EQ(found[0].message,
            "model.layers.{0..2}.block_sparse_moe.experts.{2,3}.w1.weight is not in the file (4 "
            "tensors in 3 layers), but config.json implies 160x64 (d_expert, d_model)");
}

TEST(CrossCheck, AWrongHeadWidthIsInferredFromAllOfAttention) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  resize(list, "q_proj", {128, 64});
  resize(list, "k_proj", {32, 64});
  resize(list, "v_proj", {32, 64});
  resize(list, "o_proj", {64, 128});
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "shape_differs shape_differs shape_differs shape_differs");
  EXPECT_EQ(found[0].message,
            "model.layers.{0..3}.self_attn.q_proj.weight is 128x64 in the file in 4 layers, but "
            "config.json implies 64x64 (heads, d_model), where heads is n_heads 8 x d_head 8");
  EXPECT_EQ(found[0].hint, "the file fits d_head (head_dim) 16 instead of 8");
  EXPECT_EQ(found[1].message,
            "model.layers.{0..3}.self_attn.k_proj.weight is 32x64 in the file in 4 layers, but "
            "config.json implies 16x64 (kv_heads, d_model), where kv_heads is n_kv_heads 2 x "
            "d_head 8");
  EXPECT_EQ(found[1].hint, "the file fits d_head (head_dim) 16 instead of 8");
  EXPECT_EQ(found[0].expected, "64x64");
  EXPECT_EQ(found[0].found, "128x64");
}

TEST(CrossCheck, OtherKeyValueHeadsAreInferredWhereQueriesFit) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  resize(list, "k_proj", {32, 64});
  resize(list, "v_proj", {32, 64});
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "shape_differs shape_differs");
  EXPECT_EQ(found[0].hint, "the file fits n_kv_heads (num_key_value_heads) 4 instead of 2");
}

TEST(CrossCheck, AWrongInnerWidthIsInferred) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  resize(list, "gate_proj", {176, 64});
  resize(list, "up_proj", {176, 64});
  resize(list, "down_proj", {64, 176});
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "shape_differs shape_differs shape_differs");
  for (const Difference& difference : found) {
    EXPECT_EQ(difference.hint, "the file fits d_ff (intermediate_size) 176 instead of 160");
  }
}

TEST(CrossCheck, APaddedVocabularyIsNamed) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  resize(list, "embed_tokens", {192, 64});
  resize(list, "lm_head", {192, 64});
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "vocabulary_differs vocabulary_differs");
  EXPECT_EQ(found[0].message,
            "model.embed_tokens.weight is 192x64 in the file, but config.json implies 128x64 "
            "(vocab, d_model)");
  EXPECT_EQ(found[0].hint,
            "the file fits n_vocab (vocab_size) 192 instead of 128; rows beyond the tokenizer's "
            "are padding to "
            "a multiple of 64");
}

TEST(CrossCheck, ATransposedMatrixIsRecognised) {
  const Architecture architecture = gpt2();
  List list = stored_as_implied(architecture, Dtype::f32);
  resize(list, "mlp.c_fc.weight", {16, 4});
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "shape_differs");
  EXPECT_EQ(found[0].hint,
            "that is the expected shape transposed: the matrix is stored output axis first");
}

TEST(CrossCheck, AShapeThatNoOneNumberExplainsHasNoHint) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  resize(list, "gate_proj", {61, 63});
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "shape_differs");
  EXPECT_EQ(found[0].hint, "");
}

TEST(CrossCheck, ATiedHeadStoredTwiceIsANoteWithItsBytes) {
  const Architecture architecture = gpt2();
  List list = stored_as_implied(architecture, Dtype::f32);
  list.push_back(stored("lm_head.weight", Dtype::f32, {50, 4}));
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "tied_stored");
  EXPECT_EQ(found[0].level, DifferenceLevel::note);
  EXPECT_EQ(found[0].message,
            "lm_head.weight is stored beside transformer.wte.weight, though config.json ties the "
            "two: 800 bytes more, counted once; whether they are equal shows only when the values "
            "are read");
}

TEST(CrossCheck, ATiedPairStoredUnderTheHeadsNameIsComplete) {
  const Architecture architecture = gpt2();
  List list = stored_as_implied(architecture, Dtype::f32);
  remove_stored(list, "wte");
  list.push_back(stored("lm_head.weight", Dtype::f32, {50, 4}));
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "stored_under_tied_name");
  EXPECT_EQ(found[0].message,
            "lm_head.weight stands for transformer.wte.weight too: config.json ties the two");
}

TEST(CrossCheck, AMissingHeadSuggestsTheTie) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  remove_stored(list, "lm_head");
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "missing_head");
  EXPECT_EQ(found[0].message,
            "lm_head.weight is not in the file, but config.json implies a head of its own, 128x64 "
            "(vocab, d_model)");
  EXPECT_EQ(found[0].hint, "with tie_word_embeddings true the head is the token embedding");
}

TEST(CrossCheck, BiasesTooManyOrTooFewAreTold) {
  List list = stored_as_implied(llama(), Dtype::bf16);
  for (Index layer = 0; layer < 4; ++layer) {
    list.push_back(stored("model.layers." + std::to_string(layer) + ".self_attn.q_proj.bias",
                          Dtype::bf16, {64}));
  }
  std::vector<Difference> found = check(llama(), list);
  ASSERT_EQ(kinds(found), "extra_bias");
  EXPECT_EQ(found[0].level, DifferenceLevel::warning);
  EXPECT_EQ(found[0].message,
            "model.layers.{0..3}.self_attn.q_proj.bias (64, BF16) is in the file in 4 layers, but "
            "config.json implies no such bias");

  const Architecture with_bias = llama(R"(, "attention_bias": true)");
  found = check(with_bias, list);
  ASSERT_EQ(kinds(found), "missing_bias missing_bias missing_bias");
  EXPECT_EQ(found[0].message,
            "model.layers.{0..3}.self_attn.k_proj.bias is not in the file in 4 layers, but "
            "config.json implies a bias of 16 (kv_heads)");
}

TEST(CrossCheck, LayersTooManyAreToldAsLayers) {
  const List list = stored_as_implied(llama(), Dtype::bf16);
  Architecture fewer = llama();
  fewer.n_layers = 2;
  for (TensorSpec& spec : fewer.tensors) {
    if (!spec.layers.empty()) spec.layers = {0, 1};
  }
  const std::vector<Difference> found = check(fewer, list);
  ASSERT_EQ(kinds(found), "extra_layers");
  EXPECT_EQ(found[0].message,
            "layers 2,3 are in the file (18 tensors, 82,176 parameters), but config.json says "
            "n_layers 2, counted from 0");
  EXPECT_EQ(found[0].hint, "the file fits n_layers (num_hidden_layers) 4");
  EXPECT_EQ(found[0].count, 2);
}

TEST(CrossCheck, AnExtraLayerOfUnknownNamesIsALayerToo) {
  List list = stored_as_implied(llama(), Dtype::bf16);
  list.push_back(stored("model.layers.4.eh_proj.weight", Dtype::bf16, {64, 128}));
  const std::vector<Difference> found = check(llama(), list);
  ASSERT_EQ(kinds(found), "extra_layers");
  EXPECT_EQ(found[0].message,
            "layer 4 is in the file (1 tensor, 8,192 parameters), but config.json says n_layers 4, "
            "counted from 0");
}

TEST(CrossCheck, MissingLayersAreToldAsLayers) {
  List list = stored_as_implied(llama(), Dtype::bf16);
  remove_stored(list, "layers.3.");
  std::vector<Difference> found = check(llama(), list);
  ASSERT_EQ(kinds(found), "missing_layers");
  EXPECT_EQ(found[0].message,
            "layer 3 is not in the file: it has 3 layers, but config.json says n_layers 4");
  EXPECT_EQ(found[0].hint, "the file fits n_layers (num_hidden_layers) 3");

  remove_stored(list, "layers.0.");
  found = check(llama(), list);
  ASSERT_EQ(kinds(found), "missing_layers");
  EXPECT_EQ(found[0].message,
            "layers 0,3 are not in the file: it has 2 layers, but config.json says n_layers 4");
  EXPECT_EQ(found[0].hint, "");
}

TEST(CrossCheck, ExpertsBeyondTheConfigSayHowManyThereAreToBe) {
  List list = stored_as_implied(mixtral(), Dtype::bf16);
  list.push_back(
      stored("model.layers.1.block_sparse_moe.experts.4.w1.weight", Dtype::bf16, {160, 64}));
  const std::vector<Difference> found = check(mixtral(), list);
  ASSERT_EQ(kinds(found), "extra_tensor");
  EXPECT_EQ(found[0].hint, "config.json says n_experts 4, counted from 0");
}

TEST(CrossCheck, ThePrefixOfTheBaseModelMayBeThereOrNot) {
  List list = stored_as_implied(gpt2(), Dtype::f32);
  for (StoredTensor& tensor : list) {
    tensor.name = tensor.name.substr(std::string_view("transformer.").size());
  }
  EXPECT_EQ(kinds(check(gpt2(), list)), "");

  const Architecture base = architecture_of(
      R"({"model_type": "llama", "architectures": ["LlamaModel"], "vocab_size": 128,
          "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8,
          "intermediate_size": 160, "max_position_embeddings": 256})");
  list = stored_as_implied(base, Dtype::f32);
  for (StoredTensor& tensor : list) tensor.name.insert(0, "model.");
  EXPECT_EQ(kinds(check(base, list)), "");
}

TEST(CrossCheck, APrefixThatIsNotTheModelsIsANote) {
  List list = stored_as_implied(llama(), Dtype::bf16);
  for (StoredTensor& tensor : list) tensor.name.insert(0, "_orig_mod.");
  const std::vector<Difference> found = check(llama(), list);
  ASSERT_EQ(kinds(found), "foreign_prefix");
  EXPECT_EQ(found[0].message,
            "the names begin with _orig_mod., which the family llama does not know; without it "
            "they fit");
}

TEST(CrossCheck, TheNamesOfOldFilesAreANote) {
  const Architecture bert = architecture_of(
      R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 100,
          "max_position_embeddings": 16, "hidden_size": 8, "num_hidden_layers": 1,
          "num_attention_heads": 2, "intermediate_size": 32, "type_vocab_size": 2})");
  List list = stored_as_implied(bert, Dtype::f32);
  for (StoredTensor& tensor : list) {
    const std::size_t at = tensor.name.find("LayerNorm.");
    if (at == std::string::npos) continue;
    const bool is_weight = tensor.name.ends_with(".weight");
    tensor.name = tensor.name.substr(0, at) + "LayerNorm." + (is_weight ? "gamma" : "beta");
  }
  const std::vector<Difference> found = check(bert, list);
  ASSERT_EQ(kinds(found), "old_names");
  EXPECT_EQ(found[0].count, 6);
  EXPECT_EQ(found[0].message,
            "6 tensors have names of old files: embeddings.LayerNorm.gamma is "
            "embeddings.LayerNorm.weight today");
}

TEST(CrossCheck, ATensorUnderTwoNamesIsAWarning) {
  List list = stored_as_implied(llama(), Dtype::bf16);
  list.push_back(stored("norm.weight", Dtype::bf16, {64}));
  const std::vector<Difference> found = check(llama(), list);
  ASSERT_EQ(kinds(found), "stored_twice");
  EXPECT_EQ(found[0].message,
            "norm.weight is another name of a tensor that the file has too: 128 bytes more");
}

TEST(CrossCheck, BuffersAreNotes) {
  List list = stored_as_implied(gpt2(), Dtype::f32);
  list.push_back(stored("transformer.h.0.attn.bias", Dtype::u8, {1, 1, 8, 8}));
  list.push_back(stored("transformer.h.1.attn.bias", Dtype::u8, {1, 1, 8, 8}));
  const std::vector<Difference> found = check(gpt2(), list);
  ASSERT_EQ(kinds(found), "buffer");
  EXPECT_EQ(found[0].count, 2);
  EXPECT_EQ(found[0].message,
            "transformer.h.{0,1}.attn.bias is a buffer, 128 U8: not counted as parameters");
}

TEST(CrossCheck, AnotherDtypeThanTheConfigsIsANote) {
  List list = stored_as_implied(llama(), Dtype::bf16);
  resize(list, "model.norm", {64});
  *find_stored(list, "model.norm.weight") = stored("model.norm.weight", Dtype::f32, {64});
  const std::vector<Difference> found = check(llama(), list);
  ASSERT_EQ(kinds(found), "dtype_differs");
  EXPECT_EQ(found[0].message, "1 tensor of 64 parameters is F32, but config.json says BF16");
}

TEST(CrossCheck, AFileOfAnotherModelIsOneErrorNotHundreds) {
  const List list = stored_as_implied(gpt2(), Dtype::f32);
  const std::vector<Difference> found = check(llama(), list);
  ASSERT_EQ(kinds(found), "nothing_matches dtype_differs");
  EXPECT_EQ(found[0].message,
            "none of the file's 28 tensors has a name that the family llama knows: the first is "
            "transformer.wte.weight, but config.json implies model.embed_tokens.weight");
  EXPECT_EQ(found[0].hint, "config.json and the file may belong to different models");
}

TEST(CrossCheck, AnEmptyFileIsAnError) {
  const std::vector<Difference> found = check(llama(), {});
  ASSERT_EQ(kinds(found), "nothing_matches");
  EXPECT_EQ(found[0].message,
            "the file holds no parameters, but config.json implies model.embed_tokens.weight and "
            "others");
}

TEST(CrossCheck, ThePredictingLayerOfDeepseekV3IsNotCounted) {
  const Architecture deepseek = architecture_of(
      R"({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"],
          "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
          "intermediate_size": 24, "moe_intermediate_size": 4, "n_routed_experts": 4,
          "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1,
          "q_lora_rank": 6, "kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2,
          "v_head_dim": 4, "max_position_embeddings": 128, "tie_word_embeddings": false,
          "n_group": 1, "topk_group": 1, "num_nextn_predict_layers": 1})");
  List list = stored_as_implied(deepseek, Dtype::bf16);
  const std::vector<Difference> found = check(deepseek, list);
  ASSERT_EQ(kinds(found), "extra_predictor");
  EXPECT_EQ(found[0].level, DifferenceLevel::note);
  EXPECT_EQ(found[0].message.substr(0, 34), "layer 3 predicts a further token (");

  remove_stored(list, "layers.3.");
  EXPECT_EQ(kinds(check(deepseek, list)), "");
}

// An index that names exactly what the headers hold.
ShardIndex index_of(const List& list) {
  ShardIndex index;
  index.shards = {"model-00001-of-00001.safetensors"};
  std::uint64_t total = 0;
  for (const StoredTensor& tensor : list) {
    index.entries.push_back({tensor.name, 0});
    total += tensor.bytes();
  }
  index.total_size = total;
  return index;
}

TEST(CrossCheck, AnIndexThatAgreesIsNoDifference) {
  const List list = stored_as_implied(llama(), Dtype::bf16);
  const ShardIndex index = index_of(list);
  EXPECT_EQ(kinds(check(llama(), list, &index)), "");
}

TEST(CrossCheck, TheIndexAndTheHeadersAreComparedBothWays) {
  const List list = stored_as_implied(llama(), Dtype::bf16);
  ShardIndex index = index_of(list);
  index.entries.erase(index.entries.begin());
  index.entries.push_back({"model.layers.0.ghost.weight", 0});
  index.entries.push_back({"model.layers.1.ghost.weight", 0});
  const std::vector<Difference> found = check(llama(), list, &index);
  ASSERT_EQ(kinds(found), "index_tensor_missing not_in_index");
  EXPECT_EQ(found[0].message,
            "model.layers.{0,1}.ghost.weight is in the index (2 tensors), but no shard's header "
            "has it");
  EXPECT_EQ(found[1].message,
            "model.embed_tokens.weight is in the headers, but the index does not name it: loaders "
            "that follow the index leave it out");
}

TEST(CrossCheck, ATensorInAnotherShardThanTheIndexSaysIsAnError) {
  const List list = stored_as_implied(llama(), Dtype::bf16);
  const StoredList all = stored_list(list);
  ShardIndex index = index_of(list);
  index.shards.emplace_back("b.safetensors");
  std::vector<std::uint32_t> shards(all.size(), 0);
  const CrossCheckInput input = {.stored = &all, .index = &index, .shards = &shards};
  EXPECT_EQ(kinds(cross_check(input)), "");
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].name.ends_with("up_proj.weight")) shards[i] = 1;
  }
  const std::vector<Difference> found = cross_check(input);
  ASSERT_EQ(kinds(found), "index_wrong_shard");
  EXPECT_EQ(found[0].level, DifferenceLevel::error);
  EXPECT_EQ(found[0].count, 4);
  EXPECT_EQ(found[0].message,
            "model.layers.{0..3}.mlp.up_proj.weight is in b.safetensors (4 tensors), but the index "
            "names model-00001-of-00001.safetensors");
}

TEST(CrossCheck, ATotalOfParametersIsComparedWithTheHeaders) {
  const List list = stored_as_implied(gpt2(), Dtype::f32);
  ShardIndex index = index_of(list);
  index.total_parameters = *index.total_size / 4;
  EXPECT_EQ(kinds(check(gpt2(), list, &index)), "");
  index.total_parameters = 124'000'000;
  const std::vector<Difference> found = check(gpt2(), list, &index);
  ASSERT_EQ(kinds(found), "total_parameters_differs");
  EXPECT_EQ(found[0].level, DifferenceLevel::warning);
  EXPECT_EQ(found[0].message,
            "the index says total_parameters 124000000, but the tensors of the headers have 728 "
            "elements");
}

TEST(CrossCheck, ATotalSizeWithoutTheBuffersIsExplained) {
  List list = stored_as_implied(gpt2(), Dtype::f32);
  ShardIndex index = index_of(list);
  list.push_back(stored("transformer.h.0.attn.bias", Dtype::f32, {1, 1, 8, 8}));
  index.entries.push_back({"transformer.h.0.attn.bias", 0});
  std::vector<Difference> found = check(gpt2(), list, &index);
  ASSERT_EQ(kinds(found), "total_size_explained buffer");
  EXPECT_EQ(found[0].level, DifferenceLevel::note);
  EXPECT_EQ(found[0].message,
            "the index says total_size 2,912 bytes, but the tensors of the headers take 3,168 "
            "bytes: the difference is exactly the buffers");

  index.total_size = 2913;
  found = check(gpt2(), list, &index);
  ASSERT_EQ(kinds(found), "total_size_differs buffer");
  EXPECT_EQ(found[0].level, DifferenceLevel::warning);
}

TEST(CrossCheck, ATotalSizeInElementsIsExplained) {
  const List list = stored_as_implied(gpt2(), Dtype::f32);
  ShardIndex index = index_of(list);
  index.total_size = *index.total_size / 4;
  const std::vector<Difference> found = check(gpt2(), list, &index);
  ASSERT_EQ(kinds(found), "total_size_explained");
  EXPECT_NE(found[0].message.find(": total_size counts elements, not bytes"), std::string::npos);
}

TEST(CrossCheck, QuantizedMatricesOfTheRightSizeFitAndTheirScalesAreANote) {
  const Architecture architecture = llama(R"(, "quantization_config": {"quant_method": "gptq"})");
  List list = stored_as_implied(architecture, Dtype::bf16);
  remove_stored(list, "o_proj");
  for (Index layer = 0; layer < 4; ++layer) {
    const std::string stem = "model.layers." + std::to_string(layer) + ".self_attn.o_proj.";
    list.push_back(stored(stem + "bias", Dtype::bf16, {64}));
    list.push_back(stored(stem + "qweight", Dtype::i32, {8, 64}));
    list.push_back(stored(stem + "qzeros", Dtype::i32, {2, 8}));
    list.push_back(stored(stem + "scales", Dtype::f16, {2, 64}));
  }
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "quantization_scales zero_biases");
  EXPECT_EQ(found[0].message,
            "4 quantized matrices have scales and tables beside them: 576 elements, 1,280 bytes, "
            "not counted as parameters");
  EXPECT_EQ(found[1].message,
            "model.layers.{0..3}.self_attn.o_proj.bias (64, BF16) is in the file in 4 layers, but "
            "config.json implies no such bias: GPTQ writers add biases of zeros, 256 parameters");
}

TEST(CrossCheck, FlattenedMatricesAreComparedByTheirCount) {
  List list = stored_as_implied(llama(), Dtype::bf16);
  remove_stored(list, "layers.0.self_attn.q_proj");
  const auto add = [&](Index bytes) {
    remove_stored(list, "q_proj.weight.absmax");
    remove_stored(list, "layers.0.self_attn.q_proj");
    list.push_back(stored("model.layers.0.self_attn.q_proj.weight", Dtype::u8, {bytes, 1}));
    list.push_back(stored("model.layers.0.self_attn.q_proj.weight.absmax", Dtype::f32, {64}));
  };
  add(64 * 64 / 2);
  EXPECT_EQ(kinds(check(llama(), list)), "quantization_scales");
  add(64 * 64);
  const std::vector<Difference> found = check(llama(), list);
  ASSERT_EQ(kinds(found), "shape_differs quantization_scales");
  EXPECT_EQ(found[0].message,
            "model.layers.0.self_attn.q_proj.weight is 8,192 values (NF4 in U8) in the file, but "
            "config.json implies 4,096, 64x64 (heads, d_model)");
}

TEST(CrossCheck, Mxfp4ExpertsFitOutputFirst) {
  const Architecture gpt_oss = architecture_of(
      R"({"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "vocab_size": 64,
          "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 96, "head_dim": 16,
          "num_local_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 128,
          "tie_word_embeddings": false})");
  List list = stored_as_implied(gpt_oss, Dtype::bf16);
  for (Index layer = 0; layer < 2; ++layer) {
    const std::string stem = "model.layers." + std::to_string(layer) + ".mlp.experts.";
    std::erase_if(list, [&](const StoredTensor& tensor) {
      return tensor.name == stem + "gate_up_proj" || tensor.name == stem + "down_proj";
    });
    list.push_back(stored(stem + "gate_up_proj_blocks", Dtype::u8, {4, 192, 2, 16}));
    list.push_back(stored(stem + "gate_up_proj_scales", Dtype::u8, {4, 192, 2}));
    list.push_back(stored(stem + "down_proj_blocks", Dtype::u8, {4, 64, 3, 16}));
    list.push_back(stored(stem + "down_proj_scales", Dtype::u8, {4, 64, 3}));
  }
  EXPECT_EQ(kinds(check(gpt_oss, list)), "quantization_scales");
}

TEST(CrossCheck, AConfigOfMoreExpertsThanCouldBeEndsInOneLine) {
  Architecture architecture = mixtral();
  for (TensorSpec& spec : architecture.tensors) {
    if (spec.n_experts > 1) spec.n_experts = Index{1} << 40;
  }
  const List list = stored_as_implied(mixtral(), Dtype::bf16);
  EXPECT_EQ(kinds(check(architecture, list)), "missing_tensor missing_tensor missing_tensor");
}

TEST(CrossCheck, WithoutAnArchitectureTheIndexAndTheBuffersAreStillLookedAt) {
  const List list = {stored("a", Dtype::f32, {2}), stored("position_ids", Dtype::i64, {4})};
  const StoredList all = stored_list(list);
  const std::vector<LogicalTensor> tensors = logical_tensors(all);
  const ShardIndex index = index_of({stored("b", Dtype::f32, {10})});
  const std::vector<Difference> found =
      cross_check({.tensors = &tensors, .stored = &all, .index = &index});
  EXPECT_EQ(kinds(found), "index_tensor_missing not_in_index not_in_index buffer");
}

TEST(CrossCheck, ANameThatWouldSteerTheTerminalIsEscapedInSentencesOnly) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  const std::string name = "model.layers.0.\x1b[31m.weight";
  list.push_back(stored(name, Dtype::bf16, {2}));
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "extra_tensor");
  EXPECT_EQ(found[0].tensor, name);
  EXPECT_EQ(found[0].message,
            "model.layers.0.\\x1B[31m.weight (2, BF16) is in the file, but config.json implies no "
            "such tensor");
  const std::vector<Difference> other =
      check(architecture, {stored("\x1b]0;title", Dtype::bf16, {2})});
  ASSERT_EQ(kinds(other), "nothing_matches");
  EXPECT_NE(other[0].message.find("the first is \\x1B]0;title, but"), std::string::npos);
}

TEST(CrossCheck, AForeignPrefixIsEscapedInItsSentence) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  for (StoredTensor& tensor : list) tensor.name.insert(0, "\x1b[2J.");
  const std::vector<Difference> found = check(architecture, list);
  ASSERT_EQ(kinds(found), "foreign_prefix");
  EXPECT_EQ(found[0].found, "\x1b[2J.");
  EXPECT_EQ(found[0].message.find('\x1b'), std::string::npos);
}

TEST(CrossCheck, AnAxisBeyondDoublesFitsNoConfig) {
  const Architecture architecture = llama();
  List list = stored_as_implied(architecture, Dtype::bf16);
  StoredTensor* const found = find_stored(list, "model.embed_tokens.weight");
  ASSERT_NE(found, nullptr);
  found->shape = Shape{std::numeric_limits<Index>::max(), 0};
  const std::vector<Difference> differences = check(architecture, list);
  ASSERT_EQ(kinds(differences), "vocabulary_differs");
  EXPECT_EQ(differences[0].hint, "");
}

TEST(CrossCheck, TheRealMiniLmAgreesButForItsPositionNumbers) {
  const std::filesystem::path folder =
      std::filesystem::path(ECKART_SOURCE_DIR) / "models/all-MiniLM-L6-v2";
  if (!std::filesystem::exists(folder / "model.safetensors")) {
    GTEST_SKIP() << "tools/fetch_minilm has not been run";
  }
  const Checkpoint checkpoint = open_checkpoint(folder);
  const Architecture architecture = read_architecture(load_config(folder));
  const StoredList all = stored_list(checkpoint);
  const std::vector<LogicalTensor> tensors = logical_tensors(all);
  const std::vector<Difference> found =
      cross_check({.architecture = &architecture, .tensors = &tensors, .stored = &all});
  ASSERT_EQ(kinds(found), "buffer");
  EXPECT_EQ(found[0].message,
            "embeddings.position_ids is a buffer, 512 I64: not counted as parameters");
}

}  // namespace
}  // namespace eckart

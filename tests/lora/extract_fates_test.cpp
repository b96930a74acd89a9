#include "eckart/lora/extract.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/lora/model_pair.h"

namespace eckart {
namespace {

using testing::delta_of;
using testing::entry_of;
using testing::float_bound;
using testing::is_near;
using testing::low_rank_change;
using testing::ModelPair;
using testing::norm_of;
using testing::refusal;
using testing::transposed;
using testing::whole_numbers;
using Names = std::vector<std::string>;

TEST(Extract, EveryTensorHasAFateAndAReason) {
  ModelPair pair;
  pair.add("a.weight", {8, 8})
      .add("a.bias", {8})
      .add("b.weight", {8, 8})
      .add("b.bias", {8})
      .add("norm.weight", {8})
      .add("norm.bias", {8})
      .add("block.scale", {8})
      .add("block.c.weight", {8, 8})
      .add("d.weight", {8, 8});
  const Tensor<float> vector = whole_numbers({8}, 3), matrix = whole_numbers({8, 8}, 4);
  pair.change("a.weight", matrix).change("a.bias", vector).change("norm.weight", vector);
  pair.change("block.scale", vector).change("d.weight", matrix);
  const ExtractReport report = pair.extract({.rules = {.exclude = {"d"}}, .ranks = {.rank = 8}});
  const auto fate = [&](const char* name) {
    const ExtractedTensor& entry = entry_of(report, name);
    return std::string(to_string(entry.fate)) + ": " + entry.reason;
  };
  EXPECT_EQ(fate("a.weight"), "low-rank: ");
  EXPECT_EQ(fate("a.bias"), "bias: lora_bias");
  EXPECT_EQ(fate("b.weight"), "unchanged: ");
  EXPECT_EQ(fate("norm.weight"), "full: small, saved whole");
  EXPECT_EQ(fate("norm.bias"), "full: saved with its module");
  EXPECT_EQ(fate("block.scale"),
            "skipped: a parameter beside other modules, which PEFT can't save by itself");
  EXPECT_EQ(fate("d.weight"), "skipped: excluded");
  EXPECT_EQ(report.tensors.size(), 9);
  const Adapter adapter = pair.adapter();
  EXPECT_EQ(adapter.config().modules_to_save, std::vector<std::string>{"norm"});
  EXPECT_TRUE(adapter.config().lora_bias);
  ASSERT_EQ(adapter.saved().size(), 2);
  EXPECT_EQ(adapter.saved()[0].name, "norm.bias");
  ASSERT_NE(adapter.modules()[0].bias, nullptr);
  EXPECT_NEAR(report.left_out, std::hypot(norm_of(vector), norm_of(matrix)), 1e-4);
}

TEST(Extract, NormsAndBiasesCanBeLeftOut) {
  ModelPair pair;
  pair.add("a.weight", {8, 8}).add("a.bias", {8}).add("norm.weight", {8});
  pair.change("a.weight", whole_numbers({8, 8}, 1)).change("a.bias", whole_numbers({8}, 2));
  pair.change("norm.weight", whole_numbers({8}, 3));
  const ExtractReport report =
      pair.extract({.rules = {.norms = false, .biases = false}, .ranks = {.rank = 2}});
  EXPECT_EQ(entry_of(report, "a.bias").reason, "biases are left out, as asked");
  EXPECT_EQ(entry_of(report, "norm.weight").reason, "norms are left out, as asked");
  EXPECT_TRUE(pair.adapter().saved().empty());
}

TEST(Extract, ABiasAloneIsCarriedByAZeroLora) {
  ModelPair pair;
  pair.add("a.weight", {8, 8}).add("a.bias", {8});
  pair.change("a.bias", whole_numbers({8}, 2));
  const ExtractReport report = pair.extract({.ranks = {.rank = 4}});
  EXPECT_EQ(entry_of(report, "a.weight").rank, 1);
  EXPECT_EQ(norm_of(delta_of(pair.adapter(), "a")), 0);
  EXPECT_LT(report.error, 1e-12);
}

constexpr const char* gpt2 =
    R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 20,
        "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2})";

ModelPair& add_gpt2(ModelPair& pair) {
  pair.config_json = gpt2;
  pair.add("wte.weight", {20, 8}).add("wpe.weight", {8, 8});
  for (const char* norm : {"h.0.ln_1", "h.0.ln_2", "ln_f"}) {
    pair.add(std::string(norm) + ".weight", {8}).add(std::string(norm) + ".bias", {8});
  }
  pair.add("h.0.attn.c_attn.weight", {8, 24}).add("h.0.attn.c_attn.bias", {24});
  pair.add("h.0.attn.c_proj.weight", {8, 8}).add("h.0.attn.c_proj.bias", {8});
  pair.add("h.0.mlp.c_fc.weight", {8, 32}).add("h.0.mlp.c_fc.bias", {32});
  return pair.add("h.0.mlp.c_proj.weight", {32, 8}).add("h.0.mlp.c_proj.bias", {8});
}

TEST(Extract, Conv1DIsTurnedAlsoWhereItIsSquareAndNamesGetTheClassPrefix) {
  ModelPair pair;
  add_gpt2(pair);
  const Tensor<float> square = low_rank_change(8, 8, 2, 1), wide = low_rank_change(8, 24, 2, 2);
  pair.change("h.0.attn.c_proj.weight", square).change("h.0.attn.c_attn.weight", wide);
  pair.extract({.ranks = {.rank = 2}});
  const Adapter adapter = pair.adapter();
  EXPECT_TRUE(adapter.config().fan_in_fan_out);
  EXPECT_EQ(adapter.config().task_type, "CAUSAL_LM");
  EXPECT_TRUE(
      is_near(delta_of(adapter, "transformer.h.0.attn.c_proj"), transposed(square), float_bound));
  EXPECT_TRUE(
      is_near(delta_of(adapter, "transformer.h.0.attn.c_attn"), transposed(wide), float_bound));
}

TEST(Extract, ATiedEmbeddingIsSavedForBothModules) {
  ModelPair pair;
  add_gpt2(pair).change("wte.weight", low_rank_change(20, 8, 1, 1));
  const ExtractReport report = pair.extract({.ranks = {.rank = 1}});
  EXPECT_EQ(pair.adapter().config().modules_to_save,
            (std::vector<std::string>{"lm_head", "transformer.wte"}));
  EXPECT_EQ(entry_of(report, "transformer.wte.weight").reason, "embeddings are saved whole");
  EXPECT_EQ(report.error, 0);
  // PEFT loads no adapter without a LoRA.
  EXPECT_EQ(pair.adapter().modules().size(), 1);
}

TEST(Extract, ATiedEmbeddingAsALoraIsOneOfBothModules) {
  ModelPair pair;
  const Tensor<float> change = low_rank_change(20, 8, 1, 1);
  add_gpt2(pair).change("wte.weight", change);
  pair.extract({.rules = {.tables = TableRule::lora}, .ranks = {.rank = 1}});
  const Adapter adapter = pair.adapter();
  ASSERT_EQ(adapter.modules().size(), 2);
  EXPECT_EQ(adapter.modules()[0].name, "lm_head");
  EXPECT_EQ(adapter.modules()[1].kind, AdapterKind::embedding);
  for (const char* name : {"lm_head", "transformer.wte"}) {
    EXPECT_TRUE(is_near(delta_of(adapter, name), change, float_bound)) << name;
  }
}

TEST(Extract, BiasesAreLeftOutBesideALoraOfEmbeddings) {
  ModelPair pair;
  add_gpt2(pair).change("wte.weight", low_rank_change(20, 8, 1, 1));
  pair.change("h.0.mlp.c_fc.bias", whole_numbers({32}, 2));
  const ExtractReport report =
      pair.extract({.rules = {.tables = TableRule::lora}, .ranks = {.rank = 1}});
  EXPECT_EQ(entry_of(report, "transformer.h.0.mlp.c_fc.bias").reason,
            "PEFT has no lora_bias beside a LoRA of embeddings");
}

TEST(Extract, AGrownVocabularyIsSavedWholeAndSaysHowToLoadIt) {
  ModelPair pair;
  pair.add("model.embed_tokens.weight", {6, 8}).add("model.layers.0.q.weight", {8, 8});
  pair.change("model.layers.0.q.weight", whole_numbers({8, 8}, 1));
  Tensor<float> grown({8, 8});
  std::copy_n(pair.base.at("model.embed_tokens.weight").data(), 48, grown.data());
  grown(7, 7) = 1;
  pair.tuned.at("model.embed_tokens.weight") = grown;
  const ExtractReport report =
      pair.extract({.rules = {.tables = TableRule::lora}, .ranks = {.rank = 2}});
  EXPECT_EQ(entry_of(report, "model.embed_tokens.weight").reason, "its rows are not the base's");
  EXPECT_EQ(entry_of(report, "model.embed_tokens.weight").difference_norm, 1);
  ASSERT_EQ(report.notes.size(), 1);
  EXPECT_EQ(report.notes[0],
            "model.embed_tokens.weight is 6x8 in the base and 8x8 in the tuned model: call "
            "resize_token_embeddings(8) on the base before loading the adapter");
}

TEST(Extract, ABaseInWiderNumbersThanTheTunedModelIsUnchangedWhereOnlyRoundingDiffers) {
  ModelPair pair;
  pair.tuned_dtype = Dtype::bf16;
  pair.add("a.weight", {8, 8}).add("b.weight", {8, 8});
  for (const char* name : {"a.weight", "b.weight"}) {
    for (Index i = 0; i < 64; ++i) {
      pair.base.at(name).data()[i] += 0.25F;
      pair.tuned.at(name).data()[i] += 0.25F;
    }
  }
  pair.change("b.weight", whole_numbers({8, 8}, 1));
  const ExtractReport report = pair.extract({.ranks = {.rank = 2}});
  EXPECT_EQ(entry_of(report, "a.weight").fate, ExtractFate::unchanged);
  EXPECT_EQ(entry_of(report, "a.weight").reason, "but for rounding to BF16");
  EXPECT_EQ(report.dtype, Dtype::bf16);
  // What rounding did is no change, so that no part of it is missing from error or left out.
  EXPECT_GT(entry_of(report, "a.weight").difference_norm, 0);
  EXPECT_DOUBLE_EQ(report.difference_norm, entry_of(report, "b.weight").difference_norm);
}

// PEFT takes every module whose name ends as the saved one's, and its tensors must be there.
TEST(Extract, ASavedNormTakesThoseAlongWhoseNamesEndSo) {
  ModelPair pair;
  pair.add("norm.weight", {8}).add("layers.0.input_layernorm.weight", {8});
  pair.add("layers.0.q.weight", {8, 8});
  pair.change("norm.weight", whole_numbers({8}, 1));
  pair.change("layers.0.q.weight", whole_numbers({8, 8}, 2));
  const ExtractReport report = pair.extract({.ranks = {.rank = 2}});
  const ExtractedTensor& other = entry_of(report, "layers.0.input_layernorm.weight");
  EXPECT_EQ(other.fate, ExtractFate::full);
  EXPECT_EQ(other.reason, "saved with norm, since its name ends so");
  const Adapter adapter = pair.adapter();
  EXPECT_EQ(adapter.config().modules_to_save, (Names{"layers.0.input_layernorm", "norm"}));
  EXPECT_EQ(adapter.saved().size(), 2u);
}

TEST(Extract, ANormIsLeftOutWhereSavingItWouldSaveAMatrix) {
  ModelPair pair;
  pair.add("norm.weight", {8}).add("layers.0.big_norm.weight", {8, 8});
  pair.change("norm.weight", whole_numbers({8}, 1));
  pair.change("layers.0.big_norm.weight", whole_numbers({8, 8}, 2));
  const ExtractReport report = pair.extract({.ranks = {.rank = 2}});
  EXPECT_EQ(entry_of(report, "norm.weight").fate, ExtractFate::skipped);
  EXPECT_EQ(entry_of(report, "norm.weight").reason,
            "PEFT, saving it, would save layers.0.big_norm too");
  EXPECT_TRUE(pair.adapter().saved().empty());
}

// GPT-2's layers without its config.
ModelPair& conv1d(ModelPair& pair) {
  pair.add("h.0.attn.c_attn.weight", {8, 24}).add("h.0.attn.c_attn.bias", {24});
  return pair.add("h.0.attn.c_proj.weight", {8, 8}).add("h.0.attn.c_proj.bias", {8});
}

TEST(Extract, BiasesSayHowMatricesOfNoKnownFamilyLie) {
  ModelPair pair;
  conv1d(pair);
  const Tensor<float> wide = low_rank_change(8, 24, 2, 1), square = low_rank_change(8, 8, 2, 2);
  pair.change("h.0.attn.c_attn.weight", wide).change("h.0.attn.c_proj.weight", square);
  pair.extract({.ranks = {.rank = 2}});
  const Adapter adapter = pair.adapter();
  EXPECT_TRUE(adapter.config().fan_in_fan_out);
  EXPECT_TRUE(is_near(delta_of(adapter, "h.0.attn.c_attn"), transposed(wide), float_bound));
  EXPECT_TRUE(is_near(delta_of(adapter, "h.0.attn.c_proj"), transposed(square), float_bound));
  ModelPair linear;
  linear.add("up.weight", {24, 8}).add("up.bias", {24}).add("o.weight", {8, 8}).add("o.bias", {8});
  linear.change("o.weight", square).extract({.ranks = {.rank = 2}});
  EXPECT_TRUE(is_near(delta_of(linear.adapter(), "o"), square, float_bound));
}

TEST(Extract, ASquareMatrixAmongBothKindsNeedsTheModelType) {
  ModelPair pair;
  conv1d(pair).add("up.weight", {24, 8}).add("up.bias", {24});
  pair.change("h.0.attn.c_proj.weight", whole_numbers({8, 8}, 1));
  EXPECT_EQ(refusal(pair),
            "extract: h.0.attn.c_proj.weight is square, and of the model's other matrices some are "
            "stored input x output: nothing says how this one lies\n  hint: a config.json with the "
            "model_type of a known family beside the base does");
}

TEST(Extract, TheZerosThatCarryABiasLieAsTheirMatrix) {
  ModelPair pair;
  conv1d(pair).add("conv.weight", {4, 3, 2}).add("conv.bias", {4});
  pair.change("h.0.attn.c_attn.bias", whole_numbers({24}, 1));
  pair.change("conv.bias", whole_numbers({4}, 2));
  pair.extract({.ranks = {.rank = 2}});
  const Adapter adapter = pair.adapter();
  ASSERT_EQ(adapter.modules().size(), 2u);
  EXPECT_EQ(adapter.modules()[0].a->shape, Shape({1, 3, 2}));
  EXPECT_EQ(adapter.modules()[1].a->shape, Shape({1, 8}));
  EXPECT_EQ(adapter.modules()[1].b->shape, Shape({24, 1}));
}

TEST(Extract, DrivesFromNamesBehindAPrefixThatNoFamilyHas) {
  ModelPair pair;
  const std::string q = "model.language_model.layers.0.self_attn.q_proj";
  pair.add(q + ".weight", {8, 8}).add("model.visual.blocks.0.mlp.fc1.weight", {8, 8});
  const Tensor<float> change = low_rank_change(8, 8, 2, 1);
  pair.change(q + ".weight", change).extract({.ranks = {.rank = 2}});
  const Adapter adapter = pair.adapter();
  EXPECT_EQ(adapter.config().target_modules, Names{q});
  EXPECT_TRUE(is_near(delta_of(adapter, q), change, float_bound));
}

// A change of at most 0.003, which an absolute gate of 0.01 takes for none.
TEST(Extract, NoChangeIsTooSmallToCount) {
  ModelPair pair;
  pair.add("a.weight", {8, 8}).add("norm.weight", {8});
  Tensor<float> matrix = low_rank_change(8, 8, 1, 1), vector = whole_numbers({8}, 2, 1);
  for (Index i = 0; i < 64; ++i) matrix.data()[i] *= 0.003F / 4;
  for (Index i = 0; i < 8; ++i) vector.data()[i] *= 0.003F;
  pair.change("a.weight", matrix).change("norm.weight", vector);
  const ExtractReport report = pair.extract({.ranks = {.rank = 8}});
  EXPECT_EQ(entry_of(report, "a.weight").fate, ExtractFate::low_rank);
  EXPECT_EQ(entry_of(report, "norm.weight").fate, ExtractFate::full);
  EXPECT_EQ(report.left_out, 0);
}

}  // namespace
}  // namespace eckart

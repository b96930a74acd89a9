#include "eckart/lora/extract.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/lora/model_pair.h"
#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::content_of;
using testing::delta_of;
using testing::entry_of;
using testing::is_near;
using testing::low_rank_change;
using testing::ModelPair;
using testing::thrown_by;
using testing::whole_numbers;

// Factors in float of a change whose entries are at most 8: their product is off by a few eps times
// the sizes of the entries and of the singular values, which are below 200 here.
constexpr testing::Bound float_bound{.absolute = 1e-4};

Tensor<float> transposed(const Tensor<float>& matrix) {
  return Tensor<float>(matrix.view().transpose());
}

double norm_of(const Tensor<float>& values) {
  double squares = 0;
  for (Index i = 0; i < values.count(); ++i) {
    squares += static_cast<double>(values.data()[i]) * static_cast<double>(values.data()[i]);
  }
  return std::sqrt(squares);
}

TEST(Extract, RecoversAChangeOfLowRankToRounding) {
  ModelPair pair;
  pair.add("layers.0.q.weight", {12, 20}).add("layers.0.v.weight", {6, 20});
  const Tensor<float> q = low_rank_change(12, 20, 2, 1), v = low_rank_change(6, 20, 1, 2);
  pair.change("layers.0.q.weight", q).change("layers.0.v.weight", v);
  const ExtractReport report = pair.extract({.ranks = {.rank = 2}});
  const Adapter adapter = pair.adapter();
  ASSERT_EQ(adapter.modules().size(), 2);
  EXPECT_TRUE(is_near(delta_of(adapter, "layers.0.q"), q, float_bound));
  EXPECT_TRUE(is_near(delta_of(adapter, "layers.0.v"), v, float_bound));
  const ExtractedTensor& entry = entry_of(report, "layers.0.q.weight");
  EXPECT_EQ(entry.fate, ExtractFate::low_rank);
  EXPECT_EQ(entry.rank, 2);
  EXPECT_NEAR(entry.difference_norm, norm_of(q), 1e-6 * norm_of(q));
  EXPECT_LT(entry.error, 1e-4);
  EXPECT_GT(entry.energy_kept(), 1 - 1e-9);
  EXPECT_EQ(report.left_out, 0);
  EXPECT_EQ(report.parameters, 2 * (12 + 20) + entry_of(report, "layers.0.v.weight").rank * 26);
  EXPECT_EQ(content_of(pair.folder / "adapter/eckart_report.json"), to_json(report) + "\n");
}

TEST(Extract, TheErrorIsThatOfTheRoundedFactors) {
  ModelPair pair;
  pair.add("w.weight", {16, 24});
  const Tensor<float> change = whole_numbers({16, 24}, 5);
  pair.change("w.weight", change);
  const ExtractReport report = pair.extract({.ranks = {.rank = 4}, .dtype = Dtype::bf16});
  Tensor<float> rest = delta_of(pair.adapter(), "w");
  for (Index i = 0; i < rest.count(); ++i) rest.data()[i] -= change.data()[i];
  const ExtractedTensor& entry = entry_of(report, "w.weight");
  // Both are computed from the same factors, in float.
  EXPECT_NEAR(entry.error, norm_of(rest), 1e-5 * norm_of(change));
  EXPECT_GT(entry.error, entry.certified_error);
  EXPECT_LT(entry.error, 1.01 * entry.certified_error);
  EXPECT_DOUBLE_EQ(report.error, entry.error);
}

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

TEST(Extract, EachFusedExpertIsRecovered) {
  ModelPair pair;
  const std::string name = "layers.0.mlp.experts.down_proj";
  pair.add(name, {3, 4, 6});
  Tensor<float> changes({3, 4, 6});
  std::vector<Tensor<float>> each;
  for (Index expert = 0; expert < 2; ++expert) {  // the third has not changed
    each.push_back(low_rank_change(4, 6, expert + 1, static_cast<std::uint64_t>(expert)));
    std::copy_n(each.back().data(), 24, changes.data() + expert * 24);
  }
  each.emplace_back(Shape{4, 6});
  pair.change(name, changes);
  const ExtractReport report = pair.extract({.ranks = {.relative_error = 1e-3}});
  EXPECT_EQ(entry_of(report, name).rank, 2);
  const Adapter adapter = pair.adapter();
  EXPECT_EQ(adapter.config().target_parameters, std::vector<std::string>{name});
  for (Index expert = 0; expert < 3; ++expert) {
    EXPECT_TRUE(is_near(delta_of(adapter, name, expert), each[static_cast<std::size_t>(expert)],
                        float_bound))
        << expert;
  }
}

TEST(Extract, AConvolutionKeepsItsKernel) {
  ModelPair pair;
  pair.add("conv.weight", {4, 3, 2, 2});
  const Tensor<float> change = low_rank_change(4, 12, 1, 1);
  pair.change("conv.weight", change.reshaped({4, 3, 2, 2}));
  pair.extract({.ranks = {.rank = 1}});
  const Adapter adapter = pair.adapter();
  ASSERT_EQ(adapter.modules().size(), 1);
  EXPECT_EQ(adapter.modules()[0].a->shape, Shape({1, 3, 2, 2}));
  EXPECT_EQ(adapter.modules()[0].b->shape, Shape({4, 1, 1, 1}));
  EXPECT_TRUE(is_near(delta_of(adapter, "conv"), change, float_bound));
}

TEST(Extract, EnergyErrorAndLargestRankChooseTheRank) {
  ModelPair pair;
  pair.add("w.weight", {8, 8});
  Tensor<float> change({8, 8});  // singular values 8, 4, 2, 1: energies 64, 16, 4, 1 of 85
  for (Index i = 0; i < 4; ++i) change(i, i) = static_cast<float>(8 >> i);
  pair.change("w.weight", change);
  const auto rank = [&](const ExtractRanks& ranks, const char* out) {
    return entry_of(pair.extract({.ranks = ranks}, out), "w.weight").rank;
  };
  EXPECT_EQ(rank({.energy = 0.75}, "a"), 1);
  EXPECT_EQ(rank({.energy = 0.9}, "b"), 2);
  EXPECT_EQ(rank({.relative_error = 0.2}, "c"), 3);  // 1 / 9.2
  EXPECT_EQ(rank({.relative_error = 0.2, .max_rank = 2}, "d"), 2);
  EXPECT_EQ(rank({.energy = 0.75, .max_rank = 3}, "e"), 1);
  EXPECT_EQ(rank({.rank = 100}, "f"), 4);  // it has no more
}

TEST(Extract, ABudgetGoesWhereItTakesOffMost) {
  ModelPair pair;
  pair.add("a.weight", {8, 8}).add("b.weight", {8, 8}).add("c.weight", {8, 24});
  Tensor<float> a({8, 8}), b({8, 8}), c({8, 24});
  for (Index i = 0; i < 8; ++i) a(i, i) = 4;  // 16 a rank of 16 parameters
  b(0, 0) = 8;                                // 64 for 16
  b(1, 1) = 1;
  c(0, 0) = 5;  // 25 for 32: less than a's for each parameter
  pair.change("a.weight", a).change("b.weight", b).change("c.weight", c);
  const ExtractReport report = pair.extract({.ranks = {.budget_parameters = 3 * 16 + 15}});
  EXPECT_EQ(entry_of(report, "a.weight").rank, 2);
  EXPECT_EQ(entry_of(report, "b.weight").rank, 1);
  EXPECT_EQ(entry_of(report, "c.weight").fate, ExtractFate::skipped);
  EXPECT_EQ(entry_of(report, "c.weight").reason, "the budget gives it no rank");
  EXPECT_EQ(report.parameters, 48);
  // What remains: six of a's, one of b's, all of c's.
  EXPECT_NEAR(report.error, std::sqrt(6 * 16 + 1 + 25.0), 1e-4);
  const Adapter adapter = pair.adapter();
  EXPECT_EQ(adapter.config().r, 2);
  EXPECT_EQ(rank_of(adapter.config(), "b"), 1);
  EXPECT_EQ(alpha_of(adapter.config(), "b"), 1);
  const ExtractReport bytes = pair.extract({.ranks = {.budget_bytes = 4 * (3 * 16 + 15)}}, "bytes");
  EXPECT_EQ(bytes.bytes, 4 * 48);
}

TEST(Extract, ABudgetLooksFurtherWhereItTakesMoreThanWasFound) {
  ModelPair pair;
  pair.add("a.weight", {64, 64}).add("b.weight", {64, 64});
  Tensor<float> a({64, 64}), b({64, 64});
  for (Index i = 0; i < 64; ++i) a(i, i) = 16;
  b(0, 0) = 1;
  pair.change("a.weight", a).change("b.weight", b);
  // Equal shares would be rank 5, of which four times are looked at first.
  const ExtractReport report = pair.extract({.ranks = {.budget_parameters = 2 * 128 * 5}});
  EXPECT_EQ(entry_of(report, "a.weight").rank, 10);
  const ExtractReport more = pair.extract({.ranks = {.budget_parameters = 128 * 60}}, "more");
  EXPECT_EQ(entry_of(more, "a.weight").rank, 60);
}

TEST(Extract, ForOthersAllFactorsHaveOneRankAndTheRestIsLeftOut) {
  ModelPair pair;
  pair.add("model.embed_tokens.weight", {6, 8})
      .add("model.layers.0.q.weight", {8, 8})
      .add("model.layers.0.v.weight", {2, 8})
      .add("model.norm.weight", {8});
  const Tensor<float> table = whole_numbers({6, 8}, 1), v = whole_numbers({2, 8}, 3);
  pair.change("model.embed_tokens.weight", table).change("model.layers.0.v.weight", v);
  pair.change("model.layers.0.q.weight", whole_numbers({8, 8}, 2));
  pair.change("model.norm.weight", whole_numbers({8}, 4));
  const ExtractReport report =
      pair.extract({.rules = {.consumer = Consumer::vllm}, .ranks = {.rank = 4}});
  const Adapter adapter = pair.adapter();
  EXPECT_TRUE(adapter.saved().empty());
  EXPECT_TRUE(adapter.config().rank_pattern.empty());
  EXPECT_TRUE(adapter.config().alpha_pattern.empty());
  EXPECT_EQ(adapter.config().r, 4);
  EXPECT_EQ(adapter.config().lora_alpha, 4);
  for (const AdapterModule& module : adapter.modules()) EXPECT_EQ(module.rank, 4) << module.name;
  EXPECT_TRUE(is_near(delta_of(adapter, "model.layers.0.v"), v, float_bound));
  EXPECT_EQ(entry_of(report, "model.norm.weight").reason, "vLLM takes no modules_to_save");
  EXPECT_NEAR(report.left_out, std::hypot(norm_of(table), norm_of(whole_numbers({8}, 4))), 1e-4);
  const ExtractReport by_energy = pair.extract(
      {.rules = {.consumer = Consumer::llama_cpp}, .ranks = {.energy = 0.9}}, "energy");
  const Adapter of_energy = pair.adapter("energy");
  for (const AdapterModule& module : of_energy.modules()) {
    EXPECT_EQ(module.rank, by_energy.rank);
  }
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
}

// What `extract` says of a pair of models with this much wrong.
std::string refusal(ModelPair& pair, const ExtractOptions& options = {.ranks = {.rank = 1}}) {
  return thrown_by<ArgumentError>([&] { pair.extract(options); });
}

ModelPair& simple(ModelPair& pair) {
  pair.add("a.weight", {8, 8}).add("b.weight", {8, 8});
  return pair.change("a.weight", whole_numbers({8, 8}, 1));
}

TEST(Extract, NanAndInfinityAreNamedBeforeAnyWork) {
  ModelPair pair;
  simple(pair).tuned.at("b.weight")(2, 3) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(pair), "extract: b.weight of " + (pair.folder / "tuned").string() +
                               " has a NaN at (2, 3), but every number must be finite\n  hint: "
                               "`eckart check` lists all such tensors");
  ModelPair other;
  simple(other).base.at("a.weight")(7, 0) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(other), "extract: a.weight of " + (other.folder / "base").string() +
                                " has an infinity at (7, 0), but every number must be finite\n  "
                                "hint: `eckart check` lists all such tensors");
  EXPECT_FALSE(fs::exists(pair.folder / "adapter.partial"));
}

TEST(Extract, ModelsThatDoNotGoTogetherAreRefused) {
  ModelPair missing;
  simple(missing).tuned.erase("b.weight");
  EXPECT_EQ(refusal(missing),
            "extract: " + (missing.folder / "tuned").string() +
                " lacks 1 tensor of the base's (b.weight), but a tuned model has all of them\n  "
                "hint: it may be another model, an adapter, or a download that was cut off");
  ModelPair shapes;
  simple(shapes).tuned.at("b.weight") = Tensor<float>({8, 4});
  EXPECT_EQ(refusal(shapes),
            "extract: b.weight is 8x8 in the base and 8x4 in the tuned model, but only tables of "
            "tokens may differ in rows\n  hint: base and tuned model must be of one architecture");
  ModelPair same;
  same.add("a.weight", {8, 8});
  EXPECT_EQ(refusal(same),
            "extract: base and tuned model are the same, so there is nothing to extract\n  hint: "
            "check that both paths are the ones that were meant");
  ModelPair unrelated;
  unrelated.add("a.weight", {8, 8});
  Tensor<float>& values = unrelated.tuned.at("a.weight");
  for (Index i = 0; i < 64; ++i) values.data()[i] *= -1;
  EXPECT_EQ(refusal(unrelated),
            "extract: the difference is 2 times as large as the base's weights, as between models "
            "that are not related, but a tuned model is near its base\n  hint: check that this is "
            "the base it was made from; --allow-unrelated goes on all the same");
  EXPECT_EQ(unrelated.extract({.rules = {.allow_unrelated = true}, .ranks = {.rank = 1}}).rank, 1);
}

TEST(Extract, WhatIsAskedForIsChecked) {
  ModelPair pair;
  simple(pair);
  EXPECT_EQ(refusal(pair, {}),
            "extract: nothing says how much to keep, but it takes one of rank, energy, relative "
            "error and budget");
  EXPECT_EQ(refusal(pair, {.ranks = {.rank = 1, .energy = 0.5}}),
            "extract: two things say how much to keep, but it takes one of rank, energy, relative "
            "error and budget");
  EXPECT_EQ(refusal(pair, {.ranks = {.rank = -1}}),
            "extract: rank is -1, but it must be at least 1");
  EXPECT_EQ(refusal(pair, {.ranks = {.energy = 1.5}}),
            "extract: energy is 1.500000, but it must be above 0 and below 1");
  EXPECT_EQ(
      refusal(pair, {.rules = {.include = {"mlp"}}, .ranks = {.rank = 1}}),
      "extract: 'mlp' fits no tensor of the model\n  hint: * stands for any letters: '*mlp*'; "
      "the first tensor is a.weight");
  EXPECT_EQ(refusal(pair, {.rules = {.exclude = {"a"}}, .ranks = {.rank = 1}}),
            "extract: everything that has changed is left out, so there is nothing to extract\n  "
            "hint: let more in: --include, --exclude, --embeddings, --norms, --biases, --for");
  EXPECT_EQ(refusal(pair, {.ranks = {.budget_parameters = 15}}),
            "extract: the budget has room for 15 numbers of factors, but rank 1 of the smallest "
            "matrix takes 16");
  EXPECT_FALSE(fs::exists(pair.folder / "adapter.partial"));
  EXPECT_FALSE(fs::exists(pair.folder / "adapter"));
}

TEST(Extract, FactorsTooLargeForTheDtypeAreAnError) {
  ModelPair pair;
  pair.add("a.weight", {2, 2});
  for (auto* side : {&pair.base, &pair.tuned}) {
    for (Index i = 0; i < 4; ++i) side->at("a.weight").data()[i] = 1e11F;
  }
  pair.tuned.at("a.weight")(0, 0) = 1.5e11F;  // its root is 223,607, beyond 65,504
  EXPECT_EQ(refusal(pair, {.ranks = {.rank = 1}, .dtype = Dtype::f16}),
            "extract: the factors of a.weight have numbers that are too large for F16\n  hint: "
            "--dtype BF16 or F32 has room for them");
  EXPECT_FALSE(fs::exists(pair.folder / "adapter.partial"));
}

// Several matrices, of sizes that the iteration takes.
ModelPair& large(ModelPair& pair) {
  for (const char* name : {"a.weight", "b.weight", "c.weight"}) {
    pair.add(name, {160, 192}).change(name, whole_numbers({160, 192}, pair.base.size()));
  }
  return pair.add("norm.weight", {160}).change("norm.weight", whole_numbers({160}, 9));
}

std::vector<std::string> contents(const fs::path& folder) {
  std::vector<std::string> all;
  for (const char* name :
       {"adapter_model.safetensors", "adapter_config.json", "eckart_report.json"}) {
    all.push_back(content_of(folder / name));
  }
  return all;
}

TEST(Extract, TheBytesDoNotDependOnTheThreads) {
  ModelPair pair;
  large(pair);
  const ExtractOptions options{.ranks = {.rank = 4}};
  set_thread_count(1);
  pair.extract(options, "one");
  set_thread_count(4);
  pair.extract(options, "four");
  set_thread_count(0);
  EXPECT_EQ(contents(pair.folder / "one"), contents(pair.folder / "four"));
}

TEST(Extract, ARunThatWasCutOffGoesOnAndEndsInTheSameBytes) {
  for (const bool has_budget : {false, true}) {
    ModelPair pair;
    large(pair);
    ExtractOptions options{.ranks = {.rank = 4}};
    if (has_budget) options.ranks = {.budget_parameters = 5000};
    const ExtractReport whole = pair.extract(options, "whole");
    EXPECT_EQ(whole.n_resumed, 0);
    int n = 0;
    options.on_progress = [&](std::string_view stage, Index, Index) {
      if (stage == "decomposing" && ++n == 2) throw std::runtime_error("cut off");
    };
    EXPECT_EQ(thrown_by<std::runtime_error>(
                  [&] { extract_adapter(pair.sources(), pair.folder / "resumed", options); }),
              "cut off");
    options.on_progress = {};
    EXPECT_FALSE(fs::exists(pair.folder / "resumed"));
    EXPECT_TRUE(fs::exists(pair.folder / "resumed.partial"));
    const ExtractReport report = extract_adapter(pair.sources(), pair.folder / "resumed", options);
    EXPECT_EQ(report.n_resumed, 2);
    EXPECT_EQ(contents(pair.folder / "whole"), contents(pair.folder / "resumed"));
    EXPECT_FALSE(fs::exists(pair.folder / "resumed.partial"));
  }
}

TEST(Extract, APreviewWritesNothing) {
  ModelPair pair;
  large(pair).open();
  const ExtractReport report = preview_extract(pair.sources(), {.ranks = {.rank = 4}});
  EXPECT_EQ(entry_of(report, "norm.weight").fate, ExtractFate::full);
  EXPECT_EQ(entry_of(report, "a.weight").fate, ExtractFate::low_rank);
  EXPECT_EQ(pair.folder.names(), (std::vector<std::string>{"base", "tuned"}));
}

}  // namespace
}  // namespace eckart

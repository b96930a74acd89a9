#include "eckart/lora/extract.h"

#include "eckart/core/parallel.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/lora/model_pair.h"

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::content_of;
using testing::delta_of;
using testing::entry_of;
using testing::float_bound;
using testing::is_near;
using testing::low_rank_change;
using testing::ModelPair;
using testing::norm_of;
using testing::refusal;
using testing::thrown_by;
using testing::whole_numbers;

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

TEST(Extract, ADifferenceThatNoFloatHoldsIsNamed) {
  ModelPair pair;
  simple(pair).tuned.at("a.weight")(2, 3) = 3e38F;
  pair.base.at("a.weight")(2, 3) = -3e38F;
  EXPECT_EQ(
      refusal(pair, {.rules = {.allow_unrelated = true}, .ranks = {.rank = 1}}),
      "extract: the difference of a.weight has numbers that are infinite or NaN in F32\n  hint: "
      "`eckart diff` shows which entries are too far apart");
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
            "extract: half of the matrices have moved by 2 times their norm or more, as between "
            "models that are not related, but a tuned model is near its base\n  hint: check that "
            "this is the base it was made from; --allow-unrelated goes on all the same");
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
            "extract: energy is 1.500000, but it must be above 0 and at most 1");
  EXPECT_EQ(refusal(pair, {.ranks = {.relative_error = 1}}),
            "extract: relative error is 1.000000, but it must be above 0 and below 1");
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

#include "eckart/lora/extract.h"
#include "eckart/lora/resize.h"

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

const std::string moe = "model.layers.0.block_sparse_moe.";
const std::string q = "model.layers.0.self_attn.q_proj";

std::string expert(int number, const std::string& matrix) {
  return moe + "experts." + std::to_string(number) + "." + matrix;
}

// A layer of Mixtral with two experts as files have it. One expert's w1 has changed, by rank 3, the
// router by rank 2, the attention by rank 1.
ModelPair& mixture(ModelPair& pair) {
  for (int number = 0; number < 2; ++number) {
    for (const char* matrix : {"w1", "w3"}) pair.add(expert(number, matrix) + ".weight", {6, 8});
    pair.add(expert(number, "w2") + ".weight", {8, 6});
  }
  pair.add(moe + "gate.weight", {2, 8}).add(q + ".weight", {8, 8});
  pair.change(expert(0, "w1") + ".weight", low_rank_change(6, 8, 3, 1));
  pair.change(moe + "gate.weight", low_rank_change(2, 8, 2, 2));
  return pair.change(q + ".weight", low_rank_change(8, 8, 1, 3));
}

// PEFT stacks what an adapter has for the experts of a layer, by the config's rank alone.
void expect_one_rank(const Adapter& adapter, Index rank) {
  EXPECT_EQ(adapter.config().r, rank);
  EXPECT_EQ(adapter.config().lora_alpha, static_cast<double>(rank));
  EXPECT_EQ(adapter.modules().size(), 8u);
  for (const AdapterModule& module : adapter.modules()) {
    if (module.name != q) {
      EXPECT_EQ(module.rank, rank) << module.name;
    }
  }
  for (const auto& [key, unused] : adapter.config().rank_pattern) {
    EXPECT_NE(key.find("q_proj"), std::string::npos) << key;
  }
}

TEST(ExtractStacks, ExpertsAndRouterHaveTheConfigsRankAndAllAreThere) {
  for (const ExtractRanks& ranks : {ExtractRanks{.rank = 3},
                                    {.energy = 0.9999},
                                    {.relative_error = 1e-3},
                                    {.budget_parameters = 3 * (6 * 14 + 10) + 16}}) {
    ModelPair pair;
    const ExtractReport report = mixture(pair).extract({.ranks = ranks});
    const Adapter adapter = pair.adapter();
    expect_one_rank(adapter, 3);
    EXPECT_TRUE(
        is_near(delta_of(adapter, expert(0, "w1")), low_rank_change(6, 8, 3, 1), float_bound));
    EXPECT_TRUE(is_near(delta_of(adapter, moe + "gate"), low_rank_change(2, 8, 2, 2), float_bound));
    const ExtractedTensor& still = entry_of(report, expert(1, "w2") + ".weight");
    EXPECT_EQ(still.fate, ExtractFate::low_rank);
    EXPECT_EQ(still.reason, "unchanged, a zero LoRA, since PEFT stacks all experts of a layer");
    Index numbers = 0;
    for (const StoredTensor& tensor : adapter.file().tensors()) numbers += tensor.shape.count();
    EXPECT_EQ(report.parameters, numbers);
  }
}

TEST(ExtractStacks, AnExpertThatIsLeftOutIsZerosAndCounted) {
  ModelPair pair;
  mixture(pair).change(expert(1, "w1") + ".weight", low_rank_change(6, 8, 1, 9));
  const ExtractReport report =
      pair.extract({.rules = {.exclude = {expert(1, "w1")}}, .ranks = {.relative_error = 1e-3}});
  const ExtractedTensor& left_out = entry_of(report, expert(1, "w1") + ".weight");
  EXPECT_EQ(left_out.fate, ExtractFate::skipped);
  EXPECT_EQ(left_out.reason, "excluded");
  EXPECT_DOUBLE_EQ(report.left_out, left_out.difference_norm);
  const Adapter adapter = pair.adapter();
  expect_one_rank(adapter, 3);
  EXPECT_EQ(testing::norm_of(delta_of(adapter, expert(1, "w1"))), 0);
}

TEST(ExtractStacks, ABudgetThatHasNoRoomForAllOfThemHasNone) {
  ModelPair pair;
  const ExtractReport report =
      mixture(pair).extract({.ranks = {.budget_parameters = 6 * 14 + 10 - 1}});
  EXPECT_EQ(entry_of(report, expert(0, "w1") + ".weight").fate, ExtractFate::skipped);
  EXPECT_EQ(entry_of(report, expert(1, "w1") + ".weight").fate, ExtractFate::unchanged);
  EXPECT_EQ(pair.adapter().modules().size(), 1u);
}

TEST(ExtractStacks, WhatPeftWouldTakeForAnExpertIsLeftOut) {
  ModelPair pair;
  const std::string shared = "model.layers.0.mlp.shared_expert.up_proj.weight";
  mixture(pair).add(shared, {6, 8}).change(shared, low_rank_change(6, 8, 1, 7));
  const ExtractReport report = pair.extract({.ranks = {.rank = 2}});
  EXPECT_EQ(entry_of(report, shared).fate, ExtractFate::skipped);
  EXPECT_EQ(entry_of(report, shared).reason, "PEFT takes a module of this name for an expert's");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0],
            "beside experts PEFT loads no LoRA of other modules that are called gate_proj, up_proj "
            "or down_proj: they are left out");
}

TEST(ExtractStacks, OtherReadersHaveThemOneByOne) {
  ModelPair pair;
  mixture(pair).extract({.rules = {.consumer = Consumer::vllm}, .ranks = {.rank = 2}});
  EXPECT_EQ(pair.adapter().modules().size(), 3u);
}

TEST(ResizeStacks, KeepsOneRankAndAllExperts) {
  ModelPair pair;
  mixture(pair).extract({.ranks = {.rank = 4}});
  const Adapter adapter = pair.adapter();
  for (const RankRule& rule : {RankRule{.rank = 2}, {.energy = 0.6}, {.budget = 210}}) {
    const testing::ScratchFolder folder;
    resize_adapter(adapter, folder / "small", {.rule = rule});
    const Adapter small = open_adapter(folder / "small");
    expect_one_rank(small, small.config().r);
    EXPECT_LT(small.config().r, 4);
  }
}

}  // namespace
}  // namespace eckart

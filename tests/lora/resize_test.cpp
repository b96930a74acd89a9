// An adapter of smaller ranks.
#include "eckart/lora/resize.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/lora/rewrite_case.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::delta_of;
using testing::difference;
using testing::every_flag;
using testing::expect_same;
using testing::find_module;
using testing::first_config;
using testing::first_tensors;
using testing::frobenius;
using testing::golden_adapter;
using testing::HandTensors;
using testing::rounded_to_float;
using testing::ScratchFolder;
using testing::thrown_by;

TEST(Resize, LosesTheLeastThatItsRankCan) {
  const ScratchFolder folder;
  const Adapter adapter = open_adapter(golden_adapter("default"));
  const RewrittenAdapter report =
      resize_adapter(adapter, folder / "out", {.rule = RankRule{.rank = 1}});
  const Adapter found = open_adapter(folder / "out");
  for (const RewrittenModule& one : report.modules) {
    SCOPED_TRACE(one.name);
    const Tensor<double> before = delta_of(adapter, *find_module(adapter, one.name));
    const Tensor<double> after = delta_of(found, *find_module(found, one.name));
    const Svd<double> s = svd(before);
    double tail = 0;
    for (Index i = 1; i < s.s.count(); ++i) tail = std::hypot(tail, s.s(i));
    EXPECT_EQ(one.rank_after, 1);
    EXPECT_NEAR(difference(after, before), tail, 1e-6 * frobenius(before));
    EXPECT_NEAR(one.relative_error, tail / frobenius(before), 1e-6);
    EXPECT_NEAR(one.norm, frobenius(before), 1e-6 * frobenius(before));
    EXPECT_NEAR(one.energy_kept, 1 - std::pow(tail / frobenius(before), 2), 1e-9);
  }
  EXPECT_EQ(found.config().r, 1);
  EXPECT_EQ(found.config().lora_alpha, 1);
}

TEST(Resize, ToTheRanksThatAreThereKeepsEveryFlag) {
  for (const std::string& name : every_flag) {
    SCOPED_TRACE(name);
    const ScratchFolder folder;
    const Adapter adapter = open_adapter(golden_adapter(name));
    resize_adapter(adapter, folder / "out", {.rule = RankRule{.energy = 1}});
    expect_same(open_adapter(folder / "out"), adapter, 1, rounded_to_float);
  }
}

TEST(Resize, WritesTheRanksOfTheFactorsThatAreThere) {
  // PEFT can't load an adapter whose rank_pattern is not that of its tensors.
  const ScratchFolder folder;
  testing::save_peft(
      folder / "b",
      {{"base_model.model.x.lora_A.weight", {{3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}}},
       {"base_model.model.x.lora_B.weight", {{3, 3}, {9, 0, 0, 0, 1, 0, 0, 0, 1}}},
       {"base_model.model.y.lora_A.weight", {{3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}}},
       {"base_model.model.y.lora_B.weight", {{3, 3}, {9, 0, 0, 0, 8, 0, 0, 0, 1}}}},
      "{'peft_type': 'LORA', 'r': 3, 'lora_alpha': 3, 'target_modules': ['x', 'y']}");
  const Adapter b = open_adapter(folder / "b");
  const RewrittenAdapter report =
      resize_adapter(b, folder / "out", {.rule = RankRule{.energy = 0.9}});
  const AdapterConfig config = open_adapter(folder / "out").config();
  EXPECT_EQ(config.r, 2);
  EXPECT_EQ(config.lora_alpha, 2);
  EXPECT_EQ(config.rank_pattern,
            (std::vector<std::pair<std::string, Index>>{{escaped_pattern("x"), 1}}));
  EXPECT_EQ(config.alpha_pattern,
            (std::vector<std::pair<std::string, double>>{{escaped_pattern("x"), 1}}));
  EXPECT_EQ(report.parameters_before, 36);
  EXPECT_EQ(report.parameters_after, 18);
}

TEST(Resize, LeavesOutWhatIsNothingAndSaysSo) {
  const ScratchFolder folder;
  HandTensors tensors = first_tensors();
  tensors["base_model.model.y.lora_B.weight"] = {{2, 1}, {0, 0}};
  testing::save_peft(folder / "a", tensors, first_config);
  const Adapter a = open_adapter(folder / "a");
  const RewrittenAdapter report = resize_adapter(a, folder / "out", {.rule = RankRule{.rank = 4}});
  EXPECT_EQ(report.modules.at(1).name, "y");
  EXPECT_EQ(report.modules.at(1).rank_after, 0);
  EXPECT_EQ(open_adapter(folder / "out").config().target_modules, std::vector<std::string>{"x"});
  tensors["base_model.model.x.lora_A.weight"] = {{1, 2}, {0, 0}};
  testing::save_peft(folder / "zero", tensors, first_config);
  const Adapter zero = open_adapter(folder / "zero");
  EXPECT_EQ(thrown_by<ArgumentError>(
                [&] { resize_adapter(zero, folder / "no", {.rule = RankRule{.rank = 4}}); }),
            "resize: nothing is left: every delta is 0");
  EXPECT_FALSE(std::filesystem::exists(folder / "no"));
  EXPECT_FALSE(std::filesystem::exists(folder / "no.partial"));
}

TEST(Resize, SharesABudgetOfBytesWithWhatIsCarried) {
  const ScratchFolder folder;
  HandTensors tensors = first_tensors();
  tensors["base_model.model.head.weight"] = {{2}, {1, 2}};
  testing::save_peft(folder / "a", tensors,
                     "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 2, 'target_modules': ['x', 'y'], "
                     "'modules_to_save': ['head']}");
  const Adapter a = open_adapter(folder / "a");
  // A rank costs 4 numbers of 4 bytes, the saved tensor 8 bytes, the header no more than 638.
  constexpr std::uint64_t header = 638;
  const RewrittenAdapter report =
      resize_adapter(a, folder / "out", {.budget_bytes = header + 8 + 31});
  EXPECT_EQ(report.modules.at(0).rank_after, 1);
  EXPECT_EQ(report.modules.at(1).rank_after, 0);
  EXPECT_EQ(report.modules.at(1).relative_error, 1);
  EXPECT_LE(std::filesystem::file_size(folder / "out/adapter_model.safetensors"), header + 8 + 31);
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { resize_adapter(a, folder / "no", {.budget_bytes = 9}); }),
      "resize: the budget is 9 bytes, but the biases and saved tensors, which are carried as they "
      "are, take 8 and the file's header up to 638");
  EXPECT_EQ(thrown_by<ArgumentError>(
                [&] { resize_adapter(a, folder / "no", {.budget_bytes = header + 20}); }),
            "resize: nothing is left: the budget has no room for a rank of any module");
}

TEST(Resize, TellsTheErrorAfterRounding) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a",
                     {{"base_model.model.x.lora_A.weight", {{1, 2}, {1, 1.00390625F}}},
                      {"base_model.model.x.lora_B.weight", {{2, 1}, {1, 0}}}},
                     "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 1, 'target_modules': ['x']}");
  const Adapter a = open_adapter(folder / "a");
  const RewrittenAdapter report =
      resize_adapter(a, folder / "out", {.rule = RankRule{.rank = 1}, .dtype = Dtype::bf16});
  // BF16 has 8 bits: 1 + 2^-8 is half way and becomes 1.
  EXPECT_NEAR(report.relative_error, 0x1p-8 / std::hypot(1, 1 + 0x1p-8), 1e-12);
  EXPECT_EQ(report.energy_kept, 1);
}

TEST(Resize, RefusesWhatF16CannotHold) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a",
                     {{"base_model.model.x.lora_A.weight", {{1, 1}, {1e6F}}},
                      {"base_model.model.x.lora_B.weight", {{1, 1}, {1}}}},
                     "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 1, 'target_modules': ['x']}");
  const Adapter a = open_adapter(folder / "a");
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] {
        resize_adapter(a, folder / "out", {.rule = RankRule{.rank = 1}, .dtype = Dtype::f16});
      }),
      "resize: a factor of x has an entry that is too large for F16\n  hint: --dtype BF16 and "
      "F32 hold it");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.partial"));
}

TEST(Resize, RefusesNaNByTheTensorsName) {
  const ScratchFolder folder;
  HandTensors tensors = first_tensors();
  tensors["base_model.model.x.lora_A.weight"].elements[1] = std::numeric_limits<float>::quiet_NaN();
  testing::save_peft(folder / "a", tensors, first_config);
  const Adapter a = open_adapter(folder / "a");
  const std::string said = thrown_by<ArgumentError>(
      [&] { resize_adapter(a, folder / "out", {.rule = RankRule{.rank = 1}}); });
  EXPECT_NE(said.find("base_model.model.x.lora_A.weight"), std::string::npos) << said;
}

TEST(Resize, NeedsToBeToldHowMuchToKeep) {
  const ScratchFolder folder;
  const Adapter adapter = open_adapter(golden_adapter("default"));
  EXPECT_EQ(thrown_by<ArgumentError>([&] { resize_adapter(adapter, folder / "out", {}); }),
            "resize: nothing says how much to keep, but exactly one of rank, energy, error and "
            "budget must");
}

TEST(Resize, GoesOnWhereARunWasCutOff) {
  const ScratchFolder folder;
  const Adapter adapter = open_adapter(golden_adapter("default"));
  for (const bool has_budget : {false, true}) {
    SCOPED_TRACE(has_budget);
    RewriteOptions options{.rule = has_budget ? RankRule{.budget = 500} : RankRule{.rank = 1}};
    const std::string name = has_budget ? "budget" : "rank";
    resize_adapter(adapter, folder / (name + "-whole"), options);
    // Under a budget every module is looked at before the first is written.
    auto left = static_cast<Index>(has_budget ? adapter.modules().size() : 0) + 2;
    options.on_progress = [&](Index, Index) {
      if (--left == 0) throw std::runtime_error("cut off");
    };
    EXPECT_THROW(resize_adapter(adapter, folder / name, options), std::runtime_error);
    options.on_progress = {};
    const RewrittenAdapter report = resize_adapter(adapter, folder / name, options);
    EXPECT_EQ(report.n_resumed, 2);
    for (const char* file : {"adapter_model.safetensors", "adapter_config.json"}) {
      EXPECT_EQ(testing::content_of(folder / name / file),
                testing::content_of(folder / (name + "-whole") / file));
    }
  }
}

// Modules that have a bias are there whatever the ranks are, of zeros at least.
TEST(Resize, ABudgetHoldsWithModulesThatCarryABias) {
  const ScratchFolder folder;
  HandTensors tensors = first_tensors();
  for (const char* name : {"x", "y"}) {
    tensors["base_model.model." + std::string(name) + ".lora_B.bias"] = {{2}, {1, 2}};
  }
  testing::save_peft(folder / "a", tensors,
                     "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 2, 'target_modules': ['x', 'y'], "
                     "'lora_bias': true}");
  const Adapter a = open_adapter(folder / "a");
  const RewrittenAdapter report =
      resize_adapter(a, folder / "out", {.rule = RankRule{.budget = 8}});
  EXPECT_LE(report.parameters_after, 8);
  EXPECT_EQ(thrown_by<ArgumentError>(
                [&] { resize_adapter(a, folder / "no", {.rule = RankRule{.budget = 7}}); }),
            "resize: the budget has room for 7 parameters, but the modules that have a bias take 8 "
            "at rank 1");
}

}  // namespace
}  // namespace eckart

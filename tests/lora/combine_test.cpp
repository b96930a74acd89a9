// Several adapters as one.
#include "eckart/lora/combine.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
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
using testing::golden_adapter;
using testing::HandTensors;
using testing::is_near;
using testing::rounded_to_float;
using testing::ScratchFolder;
using testing::second_config;
using testing::second_tensors;
using testing::thrown_by;

TEST(Combine, OfOneAdapterWithWeightOneIsACopyForEveryFlag) {
  std::vector<std::string> names = every_flag;
  names.emplace_back("dora");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const ScratchFolder folder;
    const Adapter adapter = open_adapter(golden_adapter(name));
    const RewrittenAdapter report = combine_adapters({{&adapter, 1}}, folder / "out");
    EXPECT_TRUE(report.is_copy);
    for (const char* file : {"adapter_model.safetensors", "adapter_config.json"}) {
      EXPECT_EQ(testing::content_of(folder / "out" / file),
                testing::content_of(golden_adapter(name) / file));
    }
  }
}

TEST(Combine, OfOneAdapterKeepsEveryFlagAlsoWhereFactorsAreWrittenAnew) {
  for (const std::string& name : every_flag) {
    SCOPED_TRACE(name);
    const ScratchFolder folder;
    const Adapter adapter = open_adapter(golden_adapter(name));
    // A base's name of its own is a change of the config alone: everything is written again.
    const RewrittenAdapter report =
        combine_adapters({{&adapter, 1}}, folder / "out", {.base_model = "somewhere"});
    EXPECT_FALSE(report.is_copy);
    const Adapter found = open_adapter(folder / "out");
    expect_same(found, adapter, 1, rounded_to_float);
    EXPECT_FALSE(found.config().use_rslora);
    EXPECT_TRUE(found.config().alpha_pattern.empty() || !found.config().rank_pattern.empty());
    EXPECT_EQ(found.config().base_model, "somewhere");
    for (const AdapterModule& module : found.modules()) EXPECT_EQ(module.scale, 1);
    EXPECT_LE(report.relative_error, rounded_to_float);
  }
}

TEST(Combine, OfAnAdapterTwiceIsTheSumOfItsWeights) {
  for (const std::string& name : every_flag) {
    for (const auto& [first, second] : {std::pair(0.75, 0.5), {2.0, -0.5}}) {
      SCOPED_TRACE(name);
      const ScratchFolder folder;
      const Adapter adapter = open_adapter(golden_adapter(name));
      combine_adapters({{&adapter, first}, {&adapter, second}}, folder / "out");
      const Adapter found = open_adapter(folder / "out");
      // -0.5 cancels: the lengths of the terms are 2.5 / 1.5 of the sum's.
      expect_same(found, adapter, first + second, 4 * rounded_to_float);
      for (const AdapterModule& module : found.modules()) {
        EXPECT_EQ(module.rank, 2 * find_module(adapter, module.name)->rank);
      }
    }
  }
}

TEST(Combine, AddsAdaptersOfOtherRanksScalesAndModules) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a", first_tensors(), first_config);
  testing::save_peft(folder / "b", second_tensors(), second_config);
  const Adapter a = open_adapter(folder / "a"), b = open_adapter(folder / "b");
  const RewrittenAdapter report = combine_adapters({{&a, 0.5}, {&b, -3}}, folder / "out");
  const Adapter found = open_adapter(folder / "out");
  // 0.5 x 2 [3 4]^T [1 2] - 3 x 8 / 2 x 1 = [3 6; 4 8] - 12 x 1.
  EXPECT_TRUE(is_near(delta_of(found, *find_module(found, "x")),
                      Tensor<double>::matrix({{-9, 6}, {4, -4}}), {.absolute = 1e-5}));
  // 0.5 x 2 [0 1]^T [1 0].
  EXPECT_TRUE(is_near(delta_of(found, *find_module(found, "y")),
                      Tensor<double>::matrix({{0, 0}, {1, 0}}), {.absolute = 1e-7}));
  EXPECT_EQ(found.config().r, 5);
  EXPECT_EQ(found.config().rank_pattern,
            (std::vector<std::pair<std::string, Index>>{{escaped_pattern("y"), 1}}));
  EXPECT_EQ(report.modules.at(0).rank_before, 5);
}

TEST(Combine, CutToRankIsTheBestOfTheSum) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a", first_tensors(), first_config);
  testing::save_peft(folder / "b", second_tensors(), second_config);
  const Adapter a = open_adapter(folder / "a"), b = open_adapter(folder / "b");
  const RewrittenAdapter report =
      combine_adapters({{&a, 1}, {&b, 1}}, folder / "out", {.rule = RankRule{.rank = 1}});
  // [6 12; 8 16] + 4 x 1 = [10 12; 8 20]: A^T A = [164 280; 280 544], of which the smaller
  // eigenvalue is what is lost.
  const double half = (164 + 544) / 2.0;
  const double root = std::sqrt(half * half - (164.0 * 544 - 280.0 * 280));
  EXPECT_EQ(report.modules.at(0).rank_after, 1);
  EXPECT_NEAR(report.modules.at(0).relative_error, std::sqrt((half - root) / (half + half)), 1e-6);
  EXPECT_NEAR(report.modules.at(0).energy_kept, (half + root) / (half + half), 1e-12);
}

TEST(Combine, TinyWeightsDoNotUnderflowInF16) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a", first_tensors(), first_config);
  const Adapter a = open_adapter(folder / "a");
  // 2^-30 in one factor would be 0 in F16, whose smallest number is 2^-24.
  const RewrittenAdapter report =
      combine_adapters({{&a, 0x1p-30}}, folder / "out", {.dtype = Dtype::f16});
  EXPECT_LE(report.relative_error, 1e-15);
  const Adapter found = open_adapter(folder / "out");
  EXPECT_TRUE(
      is_near(delta_of(found, *find_module(found, "x")),
              Tensor<double>::matrix({{6 * 0x1p-30, 12 * 0x1p-30}, {8 * 0x1p-30, 16 * 0x1p-30}}),
              {.relative = 1e-12}));
}

std::string refusal(const ScratchFolder& folder, const std::vector<WeightedAdapter>& adapters) {
  const std::string text =
      thrown_by<ArgumentError>([&] { combine_adapters(adapters, folder / "out"); });
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out.partial"));
  std::string shown = text;
  const std::string path = folder.path().string() + "/";
  for (std::size_t at = shown.find(path); at != std::string::npos; at = shown.find(path)) {
    shown.erase(at, path.size());
  }
  return shown;
}

TEST(Combine, RefusesDoRA) {
  const ScratchFolder folder;
  std::filesystem::copy(golden_adapter("dora"), folder / "dora");
  const Adapter dora = open_adapter(folder / "dora");
  const std::string said = refusal(folder, {{&dora, 0.5}});
  EXPECT_NE(said.find("combine: dora is DoRA: "), std::string::npos) << said;
  EXPECT_NE(said.find("hint: merge it into its base (`eckart lora merge`) and take the difference "
                      "from there (`eckart lora extract`)"),
            std::string::npos);
}

TEST(Combine, RefusesModulesOfOtherShapes) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a", first_tensors(), first_config);
  HandTensors wider = second_tensors();
  wider["base_model.model.x.lora_A.weight"] = {{4, 3}, std::vector<float>(12, 1)};
  testing::save_peft(folder / "b", wider, second_config);
  const Adapter a = open_adapter(folder / "a"), b = open_adapter(folder / "b");
  EXPECT_EQ(refusal(folder, {{&a, 1}, {&b, 1}}),
            "combine: x is linear 2x2 in a and linear 2x3 in b, but what is added must have one "
            "shape\n  hint: the adapters are for different models");
}

TEST(Combine, RefusesATensorSavedWithTwoValuesAndTakesEqualOnes) {
  const ScratchFolder folder;
  constexpr const char* config =
      "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 2, 'target_modules': ['x', 'y'], "
      "'modules_to_save': ['head']}";
  HandTensors tensors = first_tensors();
  tensors["base_model.model.head.weight"] = {{2}, {1, 2}};
  testing::save_peft(folder / "a", tensors, config);
  testing::save_peft(folder / "same", tensors, config);
  tensors["base_model.model.head.weight"] = {{2}, {1, 3}};
  testing::save_peft(folder / "b", tensors, config);
  const Adapter a = open_adapter(folder / "a"), b = open_adapter(folder / "b"),
                same = open_adapter(folder / "same");
  EXPECT_EQ(
      refusal(folder, {{&a, 1}, {&b, 1}}),
      "combine: a and b both save head.weight whole (modules_to_save), with different values, "
      "but only one of them can hold\n  hint: merge one of the adapters into the base instead");
  const RewrittenAdapter report = combine_adapters({{&a, 0.5}, {&same, 0.5}}, folder / "out");
  EXPECT_EQ(report.n_saved, 1);
  EXPECT_EQ(report.notes.size(), 2u);
  EXPECT_EQ(open_adapter(folder / "out").config().modules_to_save,
            std::vector<std::string>{"head"});
}

TEST(Combine, RefusesATensorThatOneSavesAndAnotherChanges) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a", first_tensors(), first_config);
  HandTensors saving = second_tensors();
  saving["base_model.model.y.weight"] = {{2, 2}, {1, 2, 3, 4}};
  testing::save_peft(folder / "b", saving,
                     "{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'target_modules': ['x'], "
                     "'modules_to_save': ['y']}");
  const Adapter a = open_adapter(folder / "a"), b = open_adapter(folder / "b");
  EXPECT_EQ(refusal(folder, {{&a, 1}, {&b, 1}}),
            "combine: b saves y.weight whole and a adds a delta to it, but only one of the two can "
            "hold");
}

TEST(Combine, RefusesWeightsOfNothing) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a", first_tensors(), first_config);
  const Adapter a = open_adapter(folder / "a");
  EXPECT_EQ(refusal(folder, {{&a, 0}}), "combine: nothing is left: every weight is 0");
  EXPECT_EQ(refusal(folder, {{&a, std::numeric_limits<double>::infinity()}}),
            "combine: the weight of a is inf, but it must be a finite number");
  EXPECT_EQ(refusal(folder, {}), "combine: there is no adapter, but at least one is needed");
  EXPECT_EQ(refusal(folder, {{&a, 1e100}}),
            "combine: a factor of x has an entry that is too large for F32");
}

TEST(Combine, GoesOnWhereARunWasCutOff) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a", first_tensors(), first_config);
  testing::save_peft(folder / "b", second_tensors(), second_config);
  const Adapter a = open_adapter(folder / "a"), b = open_adapter(folder / "b");
  RewriteOptions options;
  EXPECT_EQ(combine_adapters({{&a, 1}, {&b, 1}}, folder / "whole", options).n_resumed, 0);
  options.on_progress = [](Index, Index) { throw std::runtime_error("cut off"); };
  EXPECT_EQ(thrown_by<std::runtime_error>([&] {
              combine_adapters({{&a, 1}, {&b, 1}}, folder / "out", options);
            }),
            "cut off");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  options.on_progress = {};
  EXPECT_EQ(combine_adapters({{&a, 1}, {&b, 1}}, folder / "out", options).n_resumed, 1);
  for (const char* file : {"adapter_model.safetensors", "adapter_config.json"}) {
    EXPECT_EQ(testing::content_of(folder / "out" / file),
              testing::content_of(folder / "whole" / file));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "out.partial"));
}

TEST(Combine, DoesNotGoOnWithAnAdapterThatWasEditedInPlace) {
  const ScratchFolder folder;
  testing::save_peft(folder / "a", first_tensors(), first_config);
  RewriteOptions options{.base_model = "x"};
  options.on_progress = [](Index, Index) { throw std::runtime_error("cut off"); };
  {
    const Adapter a = open_adapter(folder / "a");
    EXPECT_THROW(combine_adapters({{&a, 1}}, folder / "out", options), std::runtime_error);
  }
  testing::put(folder / "a/adapter_config.json",
               testing::in_quotes(
                   "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 8, 'target_modules': ['x', 'y']}"));
  const Adapter edited = open_adapter(folder / "a");
  EXPECT_NE(thrown_by<FileError>([&] {
              combine_adapters({{&edited, 1}}, folder / "out", {.base_model = "x"});
            }).find("holds the unfinished work of a run with other inputs or options"),
            std::string::npos);
}

TEST(Combine, ABudgetGivesNothingToWhatCancels) {
  // Factors whose products round, and their opposite: a difference of some 2^-50 stays.
  const ScratchFolder folder;
  HandTensors tensors;
  for (const char* name : {"x", "y"}) {
    const Tensor<float> a = testing::random_matrix<float>(2, 16, 1);
    const Tensor<float> b = testing::random_matrix<float>(16, 2, 2);
    const std::string module = "base_model.model." + std::string(name);
    tensors[module + ".lora_A.weight"] = {a.shape(), {a.data(), a.data() + a.count()}};
    tensors[module + ".lora_B.weight"] = {b.shape(), {b.data(), b.data() + b.count()}};
  }
  constexpr const char* config =
      "{'peft_type': 'LORA', 'r': 2, 'lora_alpha': 3, 'target_modules': ['x', 'y']}";
  testing::save_peft(folder / "a", tensors, config);
  const Adapter a = open_adapter(folder / "a");
  const RewriteOptions budget{.rule = RankRule{.budget = 100'000}};
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              combine_adapters({{&a, 1}, {&a, -1}}, folder / "out", budget);
            }),
            "combine: nothing is left: every delta is 0");
  // Only y is left of the sum: x takes nothing of the budget, and y no more than its own rank.
  tensors.erase("base_model.model.y.lora_A.weight");
  tensors.erase("base_model.model.y.lora_B.weight");
  testing::save_peft(folder / "x", tensors, config);
  const Adapter x = open_adapter(folder / "x");
  const RewrittenAdapter report = combine_adapters({{&a, 1}, {&x, -1}}, folder / "out", budget);
  EXPECT_EQ(report.modules.at(0).rank_after, 0);
  EXPECT_EQ(report.modules.at(1).rank_after, 2);
  const RewrittenAdapter doubled = combine_adapters({{&a, 1}, {&a, 1}}, folder / "twice", budget);
  for (const RewrittenModule& module : doubled.modules) EXPECT_EQ(module.rank_after, 2);
}

}  // namespace
}  // namespace eckart

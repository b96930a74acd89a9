// resize and combine: what they make of PEFT's own adapters, and of small ones made by hand.
#include "eckart/core/errors.h"
#include "eckart/linalg/svd.h"
#include "eckart/lora/combine.h"
#include "eckart/lora/resize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/linalg/hard_matrices.h"
#include "tests/lora/adapter_files.h"
#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::difference;
using testing::frobenius;
using testing::golden_adapter;
using testing::HandTensors;
using testing::is_near;
using testing::product;
using testing::ScratchFolder;
using testing::thrown_by;

const std::vector<std::string> every_flag = {
    "default",    "rslora",  "patterns",  "regex",           "conv1d",        "convolutions",
    "embeddings", "experts", "lora_bias", "modules_to_save", "trained_biases"};

// scale b a of one expert, in double.
Tensor<double> delta_of(const Adapter& adapter, const AdapterModule& module, Index expert = 0) {
  const AdapterFactors factors = load_factors(adapter, module, expert);
  Tensor<double> b(factors.b.shape()), a(factors.a.shape());
  for_each_element([&](double& to, const float& x) { to = static_cast<double>(x) * factors.scale; },
                   b.view(), std::as_const(factors.b).view());
  for_each_element([](double& to, const float& x) { to = static_cast<double>(x); }, a.view(),
                   std::as_const(factors.a).view());
  return product(b, a);
}

const AdapterModule* find_module(const Adapter& adapter, const std::string& name) {
  for (const AdapterModule& module : adapter.modules()) {
    if (module.name == name) return &module;
  }
  return nullptr;
}

// A bias as it is added to the base's.
Tensor<double> bias_of(const Adapter& adapter, const AdapterModule& module) {
  if (module.bias == nullptr) return Tensor<double>(Shape{module.d_out});
  const Tensor<float> stored = testing::load_floats(adapter.file(), *module.bias);
  Tensor<double> bias(stored.shape());
  for_each_element([&](double& to, const float& x) { to = static_cast<double>(x) * module.scale; },
                   bias.view(), stored.view());
  return bias;
}

// Every delta, bias and saved tensor of `expected`, times `weight`, is that of `found`, to `share` of
// its norm.
void expect_same(const Adapter& found, const Adapter& expected, double weight, double share) {
  EXPECT_EQ(found.modules().size(), expected.modules().size());
  for (const AdapterModule& module : expected.modules()) {
    SCOPED_TRACE(module.name);
    const AdapterModule* const same = find_module(found, module.name);
    ASSERT_NE(same, nullptr);
    ASSERT_EQ(same->n_experts, module.n_experts);
    EXPECT_EQ(same->kind, module.kind);
    for (Index expert = 0; expert < module.n_experts; ++expert) {
      Tensor<double> delta = delta_of(expected, module, expert);
      for_each_element([&](double& x) { x *= weight; }, delta.view());
      EXPECT_LE(difference(delta_of(found, *same, expert), delta), share * frobenius(delta));
    }
    Tensor<double> bias = bias_of(expected, module);
    for_each_element([&](double& x) { x *= weight; }, bias.view());
    EXPECT_TRUE(is_near(bias_of(found, *same), bias, {.absolute = 1e-7, .relative = 2e-7}));
  }
  ASSERT_EQ(found.saved().size(), expected.saved().size());
  for (std::size_t i = 0; i < found.saved().size(); ++i) {
    EXPECT_EQ(found.saved()[i].name, expected.saved()[i].name);
    EXPECT_TRUE(is_near(testing::load_floats(found.file(), *found.saved()[i].stored),
                        testing::load_floats(expected.file(), *expected.saved()[i].stored)));
  }
}

// Products of two factors that were rounded to float: 2 x 2^-24 of the sum of the terms' lengths,
// which for the golden adapters is a few times the norm of the sum.
constexpr double rounded_to_float = 1e-6;

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

// Two modules, of which the second adapter has one with another rank and scale.
HandTensors first_tensors() {
  return {{"base_model.model.x.lora_A.weight", {{1, 2}, {1, 2}}},
          {"base_model.model.x.lora_B.weight", {{2, 1}, {3, 4}}},
          {"base_model.model.y.lora_A.weight", {{1, 2}, {1, 0}}},
          {"base_model.model.y.lora_B.weight", {{2, 1}, {0, 1}}}};
}
constexpr const char* first_config =
    "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 2, 'target_modules': ['x', 'y']}";
HandTensors second_tensors() {
  return {{"base_model.model.x.lora_A.weight", {{4, 2}, {1, 0, 0, 1, 0, 0, 0, 0}}},
          {"base_model.model.x.lora_B.weight", {{2, 4}, {1, 0, 0, 0, 0, 1, 0, 0}}}};
}
constexpr const char* second_config =
    "{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'use_rslora': true, 'target_modules': ['x']}";

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
  EXPECT_EQ(refusal(folder, {{&a, 0}}),
            "combine: the weight of a is 0, but it must be a finite number other than 0");
  EXPECT_EQ(refusal(folder, {{&a, std::numeric_limits<double>::infinity()}}),
            "combine: the weight of a is inf, but it must be a finite number other than 0");
  EXPECT_EQ(refusal(folder, {}), "combine: there is no adapter, but at least one is needed");
  EXPECT_EQ(refusal(folder, {{&a, 1e100}}),
            "combine: a factor of x has an entry that is too large for F32");
}

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
  // A rank costs 4 numbers of 4 bytes; the saved tensor takes 8 bytes.
  const RewrittenAdapter report = resize_adapter(a, folder / "out", {.budget_bytes = 8 + 31});
  EXPECT_EQ(report.modules.at(0).rank_after, 1);
  EXPECT_EQ(report.modules.at(1).rank_after, 0);
  EXPECT_EQ(report.modules.at(1).relative_error, 1);
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { resize_adapter(a, folder / "no", {.budget_bytes = 9}); }),
      "resize: the budget is 9 bytes, but the biases and saved tensors, which are carried as "
      "they are, take 8");
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { resize_adapter(a, folder / "no", {.budget_bytes = 20}); }),
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

}  // namespace
}  // namespace eckart

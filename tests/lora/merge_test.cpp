#include "eckart/lora/merge.h"

#include "eckart/core/parallel.h"
#include "eckart/lora/verify.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "merge_case.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::Case;
using testing::content_of;
using testing::elements;
using testing::is_near;
using testing::lora_a;
using testing::lora_b;
using testing::put;
using testing::save;
using testing::save_adapter;
using testing::ScratchFolder;
using testing::thrown_by;
using testing::Values;
using Floats = std::vector<float>;

const fs::path golden = fs::path(ECKART_SOURCE_DIR) / "tests/golden/lora";

// One test a folder of the golden pairs: what PEFT's merge_and_unload makes of a float32 base.
class PeftMerges : public ::testing::TestWithParam<const char*> {};

TEST_P(PeftMerges, ComeOutAgain) {
  const ScratchFolder folder;
  const fs::path pair = golden / GetParam();
  const Case adapted(pair / "base.safetensors", {pair});
  adapted.merge(folder / "merged");
  const Checkpoint merged = open_checkpoint(folder / "merged");
  const Checkpoint expected = open_checkpoint(pair / "merged.safetensors");
  ASSERT_EQ(merged.tensors().size(), expected.tensors().size());
  for (const CheckpointTensor& tensor : expected.tensors()) {
    // Both sum r <= 5 products and the base in float, in orders of their own, and DoRA divides by a
    // norm: at most 16 roundings, of numbers that are below 4 in all cases.
    const std::string& name = tensor.stored->name;
    EXPECT_TRUE(is_near(merged.tensor<float>(name), expected.tensor<float>(name),
                        {.absolute = 64 * 0x1.0p-24}))
        << name;
  }
  EXPECT_EQ(verify_merge(adapted.sources(), merged).problems, std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, PeftMerges,
                         ::testing::Values("default", "rslora", "dora", "lora_bias", "patterns",
                                           "regex", "embeddings", "modules_to_save",
                                           "trained_biases", "conv1d", "experts", "convolutions"));

class Merge : public ::testing::Test {
 protected:
  // A base of one matrix w.weight, and further tensors.
  fs::path base_of(const Values& w, std::vector<Values> others = {}) {
    fs::create_directories(folder_ / "base");
    others.push_back(w);
    save(folder_ / "base/model.safetensors", others);
    return folder_ / "base";
  }
  // An adapter that adds b a to w.weight.
  fs::path adapter_of(const std::string& name, std::vector<float> b, std::vector<float> a) {
    const auto rows = static_cast<Index>(b.size()), columns = static_cast<Index>(a.size());
    save_adapter(folder_ / name,
                 {lora_b("w", {rows, 1}, std::move(b)), lora_a("w", {1, columns}, std::move(a))});
    return folder_ / name;
  }
  fs::path target() const { return folder_ / "merged"; }
  Floats merged(const std::string& name) const { return elements(target(), name); }
  std::string error_of(const fs::path& base, const std::vector<fs::path>& adapters,
                       const MergeRules& rules = {}) const {
    const std::string text =
        thrown_by<ArgumentError>([&] { Case(base, adapters).merge(target(), {.rules = rules}); });
    EXPECT_FALSE(fs::exists(target()));
    EXPECT_FALSE(fs::exists(folder_ / "merged.partial"));
    return text;
  }

  ScratchFolder folder_;
};

TEST_F(Merge, AddsTheProductOfTheFactors) {
  const fs::path base = base_of({"w.weight", {2, 3}, {1, 2, 3, 4, 5, 6}});
  Case(base, {adapter_of("a", {1, 10}, {0.5f, 0, -0.5f})}).merge(target());
  EXPECT_EQ(merged("w.weight"), (Floats{1.5f, 2, 2.5f, 9, 5, 1}));
}

// In BF16 1 is followed by 1 + 2^-7. The delta 2^-8 + 2^-17 lies just above the middle; rounded
// to BF16 by itself it would be 2^-8, the middle, and the sum would go back to the even 1.
TEST_F(Merge, AddsInFloatAndRoundsOnce) {
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 1}, Dtype::bf16});
  Case(base, {adapter_of("a", {1}, {0x1.0p-8f + 0x1.0p-17f, 0x1.0p-8f})}).merge(target());
  EXPECT_EQ(merged("w.weight"), (Floats{1 + 0x1.0p-7f, 1}));
}

// Rounded in turn, each of the two would be swallowed.
TEST_F(Merge, SeveralAdaptersAreSummedBeforeTheRounding) {
  const fs::path base = base_of({"w.weight", {1, 1}, {1}, Dtype::bf16});
  const float quarter = 0x1.8p-9f;
  Case(base, {adapter_of("a", {1}, {quarter}), adapter_of("b", {1}, {quarter})}).merge(target());
  EXPECT_EQ(merged("w.weight"), (Floats{1 + 0x1.0p-7f}));
}

TEST_F(Merge, WeightsMultiplyTheDeltas) {
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 1}});
  const Case two(base, {adapter_of("a", {1}, {1, 0}), adapter_of("b", {1}, {0, 8})});
  two.merge(target(), {.rules = {.weights = {2, -0.5}}});
  EXPECT_EQ(merged("w.weight"), (Floats{3, -3}));
}

TEST_F(Merge, SaysHowMuchOfTheDeltaTheDtypeSwallowed) {
  const fs::path base = base_of({"w.weight", {1, 4}, {1, 1, 1, 1}, Dtype::bf16});
  // Wanted: half a place (stays), a place (kept), nothing (not counted), a place and a half (two).
  const float place = 0x1.0p-7f;
  const MergeReport report =
      Case(base, {adapter_of("a", {1}, {place / 2, place, 0, 1.5f * place})}).merge(target());
  EXPECT_EQ(merged("w.weight"), (Floats{1, 1 + place, 1, 1 + 2 * place}));
  ASSERT_EQ(report.tensors.size(), 1u);
  const DeltaStatistics& s = report.tensors[0].statistics;
  EXPECT_EQ(s.n_wanted, 3);
  EXPECT_EQ(s.n_unchanged, 1);
  // Errors of half a place twice, of a delta of 0.5, 1 and 1.5 places.
  EXPECT_DOUBLE_EQ(s.swallowed(), std::sqrt(0.5 / 3.5));
  EXPECT_DOUBLE_EQ(s.relative_norm(), static_cast<double>(place) * std::sqrt(3.5 / 4));
  EXPECT_EQ(report.total.n_unchanged, 1);
}

TEST_F(Merge, AMergeThatRoundingUndoesIsAnError) {
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 1}, Dtype::bf16});
  EXPECT_EQ(error_of(base, {adapter_of("a", {1}, {1e-4f, 1e-4f})}),
            "merge: the result would be the base, because every delta is smaller than the stored "
            "dtype can tell: of 2 entries that change none is rounded to another value\n"
            "  hint: `--dtype F32` keeps smaller deltas");
}

TEST_F(Merge, AnAdapterThatWasNeverTrainedIsAnError) {
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 1}});
  EXPECT_EQ(error_of(base, {adapter_of("a", {0}, {1, 1})}),
            "merge: the result would be the base, because every B A of the adapters is 0\n"
            "  hint: an adapter that was never trained has B = 0; a weight of 0 takes one away");
  EXPECT_NE(error_of(base, {adapter_of("b", {1}, {1, 1})}, {.weights = {0}}).find("is 0"),
            std::string::npos);
}

TEST_F(Merge, AModuleThatFitsNothingIsNamedWithTheClosest) {
  const fs::path base =
      base_of({"w.weight", {1, 2}, {1, 1}}, {{"model.layers.0.v_proj.weight", {1, 2}, {1, 1}}});
  save_adapter(folder_ / "a",
               {lora_b("model.layers.1.v_proj", {1, 1}, {1}),
                lora_a("model.layers.1.v_proj", {1, 2}, {1, 1})},
               R"(, "base_model_name_or_path": "org/other")");
  EXPECT_EQ(error_of(base, {folder_ / "a"}),
            "merge: " + (folder_ / "a").string() +
                " changes model.layers.1.v_proj, but the base has no tensor of that name\n"
                "  hint: closest are model.layers.0.v_proj.weight, w.weight; the adapter was made "
                "for org/other");
}

TEST_F(Merge, AnotherModelsShapesAreAnError) {
  const fs::path base = base_of({"w.weight", {2, 2}, {1, 1, 1, 1}});
  const std::string text = thrown_by<ShapeError>([&] {
    Case(base, {adapter_of("a", {1, 1, 1}, {1, 1})}).merge(target());
  });
  EXPECT_EQ(text, "merge: for w.weight " + (folder_ / "a").string() +
                      " holds 3x2 (B A), but the base's is 2x2");
}

TEST_F(Merge, ValuesThatAreNoNumbersAreNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const fs::path base = base_of({"w.weight", {2, 2}, {1, 1, nan, 1}});
  EXPECT_EQ(error_of(base, {adapter_of("a", {1, 1}, {1, 1})}),
            "merge: w.weight of the base is NaN at (1, 0)\n"
            "  hint: `eckart check BASE --values` lists all such values");
  EXPECT_NE(error_of(base, {adapter_of("b", {1, nan}, {1, 1})}).find("lora_B"), std::string::npos);
}

TEST_F(Merge, ASumThatTheDtypeCantHoldIsAnErrorAndNotInfinity) {
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 65504}, Dtype::f16});
  EXPECT_EQ(error_of(base, {adapter_of("a", {1}, {1, 16})}),
            "merge: w.weight would be 65520.000000 at (0, 1), but that is too large for F16\n"
            "  hint: `--dtype BF16` or `--dtype F32` reach further");
  Case(base, {folder_ / "a"}).merge(target(), {.rules = {.dtype = Dtype::f32}});
  EXPECT_EQ(merged("w.weight"), (Floats{2, 65520}));
}

TEST_F(Merge, WeightsAreCountedAndFinite) {
  const fs::path base = base_of({"w.weight", {1, 1}, {1}});
  const fs::path a = adapter_of("a", {1}, {1});
  EXPECT_EQ(error_of(base, {a}, {.weights = {1, 2}}),
            "merge: 1 adapters and 2 weights, but each adapter has one weight");
  EXPECT_EQ(error_of(base, {a}, {.weights = {std::numeric_limits<double>::infinity()}}),
            "merge: a weight must be a finite number");
  EXPECT_EQ(error_of(base, {}), "merge: there is no adapter");
  EXPECT_EQ(error_of(base, {a}, {.dtype = Dtype::f8_e4m3}),
            "merge: the dtype is F8_E4M3, but a result is F32, F16 or BF16");
}

TEST_F(Merge, WhatTwoAdaptersSaveCantBothReplaceIt) {
  const fs::path base = base_of({"w.weight", {1, 1}, {1}}, {{"norm.weight", {2}, {1, 1}}});
  const auto saved = [&](const std::string& name) {
    save_adapter(folder_ / name,
                 {lora_b("w", {1, 1}, {1}),
                  lora_a("w", {1, 1}, {1}),
                  {"base_model.model.norm.weight", {2}, {3, 4}}},
                 R"(, "modules_to_save": ["norm"])");
    return folder_ / name;
  };
  const std::string text = error_of(base, {saved("a"), saved("b")});
  EXPECT_NE(text.find("norm.weight is saved whole by"), std::string::npos) << text;
  EXPECT_NE(error_of(base, {folder_ / "a"}, {.weights = {0.5}}).find("its weight can only be 1"),
            std::string::npos);
  Case(base, {folder_ / "a"}).merge(target());
  EXPECT_EQ(merged("norm.weight"), (Floats{3, 4}));
}

TEST_F(Merge, ASavedTableHasRows) {
  const fs::path base = base_of({"w.weight", {1, 1}, {1}}, {{"lm_head.weight", {2, 1}, {1, 2}}});
  save_adapter(folder_ / "a",
               {lora_b("w", {1, 1}, {1}),
                lora_a("w", {1, 1}, {1}),
                {"base_model.model.lm_head.weight", {0, 1}, {}}},
               R"(, "modules_to_save": ["lm_head"])");
  const std::string text =
      thrown_by<ShapeError>([&] { Case(base, {folder_ / "a"}).merge(target()); });
  EXPECT_NE(text.find("lm_head.weight"), std::string::npos) << text;
  EXPECT_NE(text.find("0x1"), std::string::npos) << text;
}

TEST_F(Merge, AModuleToSaveIsEveryOneWhoseNameEndsSo) {
  const fs::path base = base_of({"w.weight", {1, 1}, {1}}, {{"input_layernorm.weight", {1}, {1}}});
  save_adapter(folder_ / "a",
               {lora_b("w", {1, 1}, {1}),
                lora_a("w", {1, 1}, {1}),
                {"base_model.model.input_layernorm.weight", {1}, {3}}},
               R"(, "modules_to_save": ["norm"])");
  Case(base, {folder_ / "a"}).merge(target());
  EXPECT_EQ(merged("input_layernorm.weight"), (Floats{3}));
}

TEST_F(Merge, DoraIsNotSummedWithOthersNorWeighted) {
  const ScratchFolder& folder = folder_;
  const fs::path pair = golden / "dora";
  save_adapter(folder / "a", {lora_b("model.layers.0.self_attn.q_proj", {16, 1}, Floats(16, 1)),
                              lora_a("model.layers.0.self_attn.q_proj", {1, 16}, Floats(16, 1))});
  const fs::path base = pair / "base.safetensors";
  EXPECT_NE(error_of(base, {pair, folder / "a"}).find("of which one is DoRA"), std::string::npos);
  EXPECT_NE(error_of(base, {folder / "a", pair}).find("of which one is DoRA"), std::string::npos);
  EXPECT_NE(error_of(base, {pair}, {.weights = {2}}).find("is DoRA, so that its weight"),
            std::string::npos);
}

TEST_F(Merge, ABiasNeedsABiasInTheBase) {
  const fs::path base = base_of({"w.weight", {2, 2}, {1, 1, 1, 1}});
  save_adapter(folder_ / "a",
               {lora_b("w", {2, 1}, {1, 1}),
                lora_a("w", {1, 2}, {1, 1}),
                {"base_model.model.w.lora_B.bias", {2}, {1, 1}}},
               R"(, "lora_bias": true)");
  EXPECT_NE(error_of(base, {folder_ / "a"}).find("has no bias that it could be added to"),
            std::string::npos);
}

// lora_bias is one flag for all modules; what resize and combine write has zeros where a module has
// none.
TEST_F(Merge, ABiasOfZerosNeedsNone) {
  const fs::path base = base_of({"w.weight", {2, 2}, {1, 1, 1, 1}});
  save_adapter(folder_ / "a",
               {lora_b("w", {2, 1}, {1, 1}),
                lora_a("w", {1, 2}, {1, 1}),
                {"base_model.model.w.lora_B.bias", {2}, {0, -0.0f}}},
               R"(, "lora_bias": true)");
  Case(base, {folder_ / "a"}).merge(target());
  EXPECT_EQ(merged("w.weight"), (Floats{2, 2, 2, 2}));
}

TEST_F(Merge, ARowOfZerosHasNoNormForDora) {
  const fs::path base = base_of({"w.weight", {2, 2}, {1, 1, 3, 4}});
  save_adapter(folder_ / "a",
               {lora_b("w", {2, 1}, {-1, 0}),
                lora_a("w", {1, 2}, {1, 1}),
                {"base_model.model.w.lora_magnitude_vector", {2}, {1, 10}}},
               R"(, "use_dora": true)");
  EXPECT_EQ(error_of(base, {folder_ / "a"}),
            "merge: row 0 of w.weight, base and delta, is 0, but DoRA divides by its norm\n"
            "  hint: PEFT makes NaN of it");
}

TEST_F(Merge, WhatCopiesHoldBesideNumbersIsSaid) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 1}},
                                {{"mask", {3}, {0, -infinity, -infinity}}, {"v", {2}, {nan, 1}}});
  const Case one(base, {adapter_of("a", {1}, {1, 1})});
  const MergeReport report = one.merge(target());
  ASSERT_EQ(report.not_finite.size(), 2u);
  const VerifyReport verified = verify_merge(one.sources(), open_checkpoint(target()));
  ASSERT_EQ(verified.not_finite.size(), 2u);
  for (const auto* found : {&report.not_finite, &verified.not_finite}) {
    const bool is_mask_first = found->front().name == "mask";
    const NotFinite& mask = is_mask_first ? found->front() : found->back();
    const NotFinite& v = is_mask_first ? found->back() : found->front();
    EXPECT_EQ(mask.n_infinite, 2);
    EXPECT_EQ(mask.n_nan, 0);
    EXPECT_EQ(v.n_nan, 1);
  }
}

TEST_F(Merge, TheResultDoesNotDependOnTheNumberOfThreads) {
  Floats w(600 * 513), b(600), a(513);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 1001) / 1000 - 0.5f;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 17) / 64;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 13) / 64;
  const fs::path base = base_of({"w.weight", {600, 513}, w, Dtype::bf16});
  const Case one(base, {adapter_of("a", b, a)});
  set_thread_count(1);
  const MergeReport alone = one.merge(folder_ / "alone");
  set_thread_count(3);
  const MergeReport together = one.merge(folder_ / "together");
  set_thread_count(0);
  EXPECT_EQ(content_of(folder_ / "alone/model.safetensors"),
            content_of(folder_ / "together/model.safetensors"));
  EXPECT_EQ(alone.total.error_squares, together.total.error_squares);
}

// Two shards; the first is finished when the run ends.
TEST_F(Merge, ARunThatWasCutOffIsGoneOnWith) {
  fs::create_directories(folder_ / "base");
  save(folder_ / "base/a.safetensors", {{"v.weight", {1, 2}, {1, 2}}});
  save(folder_ / "base/b.safetensors", {{"w.weight", {1, 2}, {3, 4}}});
  save_adapter(folder_ / "a", {lora_b("v", {1, 1}, {1}), lora_a("v", {1, 2}, {1, 1}),
                               lora_b("w", {1, 1}, {1}), lora_a("w", {1, 2}, {2, 2})});
  const Case two(folder_ / "base", {folder_ / "a"});
  const MergeOptions stop = {
      .on_progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("killed"); }};
  EXPECT_THROW(two.merge(target(), stop), std::runtime_error);
  EXPECT_FALSE(fs::exists(target()));
  const MergeReport report = two.merge(target());
  EXPECT_EQ(report.n_resumed, 1);
  ASSERT_EQ(report.tensors.size(), 2u);
  EXPECT_EQ(report.total.n_wanted, 4);
  EXPECT_EQ(merged("v.weight"), (Floats{2, 3}));
  EXPECT_EQ(merged("w.weight"), (Floats{5, 6}));
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"a", "base", "merged"}));
}

TEST_F(Merge, WhatAKilledRunLeftDamagedIsComputedAgain) {
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 2}});
  const Case one(base, {adapter_of("a", {1}, {1, 1})});
  const MergeOptions stop = {
      .on_progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("killed"); }};
  EXPECT_THROW(one.merge(target(), stop), std::runtime_error);
  const fs::path file = folder_ / "merged.partial/result/model.safetensors";
  std::string content = content_of(file);
  content.back() = 'x';
  put(file, content);
  EXPECT_EQ(one.merge(target()).n_resumed, 0);
  EXPECT_EQ(merged("w.weight"), (Floats{2, 3}));
}

// The config lies beside an adapter that is given as a file, too.
TEST_F(Merge, AnAdapterEditedInPlaceIsAnotherRun) {
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 2}});
  adapter_of("a", {1}, {1, 1});
  for (const fs::path& adapter : {folder_ / "a", folder_ / "a/adapter_model.safetensors"}) {
    const auto config = [&](int alpha) {
      put(folder_ / "a/adapter_config.json",
          R"({"peft_type": "LORA", "r": 1, "target_modules": ["w"], "lora_alpha": )" +
              std::to_string(alpha) + "}");
    };
    config(4);
    const MergeOptions stop = {
        .on_progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("killed"); }};
    EXPECT_THROW(Case(base, {adapter}).merge(target(), stop), std::runtime_error);
    config(8);
    EXPECT_NE(thrown_by<FileError>([&] {
                Case(base, {adapter}).merge(target());
              }).find("a run with other inputs or options"),
              std::string::npos);
    fs::remove_all(folder_ / "merged.partial");
  }
}

// A link's target, the system's clock or a copy that keeps times: size and time say nothing then.
TEST_F(Merge, AnotherBaseOfTheSameSizeAndTimeIsAnotherRun) {
  std::vector<float> values(1 << 19, 1);  // 2 MiB
  fs::path base = base_of({"w.weight", {1, 1 << 19}, values});
  const fs::path adapter = adapter_of("a", {1}, values);
  const MergeOptions stop = {
      .on_progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("killed"); }};
  for (const std::size_t place : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
    EXPECT_THROW(Case(base, {adapter}).merge(target(), stop), std::runtime_error);
    const auto file = fs::is_directory(base) ? base / "model.safetensors" : base;
    const auto time = fs::last_write_time(file);
    // Blocks begin where no float does: the middle one is met by several of them.
    for (std::size_t i = 0; i < (place == values.size() / 2 ? 20000u : 1u); ++i) {
      values[place + i] += 1;
    }
    base = base_of({"w.weight", {1, 1 << 19}, values});
    fs::last_write_time(file, time);
    EXPECT_NE(thrown_by<FileError>([&] {
                Case(base, {adapter}).merge(target());
              }).find("a run with other inputs or options"),
              std::string::npos)
        << place;
    fs::remove_all(folder_ / "merged.partial");
  }
}

TEST_F(Merge, AnInputThatChangesMeanwhileIsAnErrorAndNothingStays) {
  const fs::path base = base_of({"w.weight", {1, 2}, {1, 2}});
  const Case one(base, {adapter_of("a", {1}, {1, 1})});
  const fs::path file = fs::is_directory(base) ? base / "model.safetensors" : base;
  const MergeOptions edit = {.on_progress = [&](std::uint64_t, std::uint64_t) {
    fs::last_write_time(file, fs::last_write_time(file) + std::chrono::nanoseconds(4000));
  }};
  const std::vector<std::string> before = folder_.names();
  EXPECT_EQ(thrown_by<FileError>([&] { one.merge(target(), edit); }),
            file.string() +
                " has changed while it was read: nothing is written\n  hint: run it again when no "
                "other program writes that file");
  EXPECT_EQ(folder_.names(), before);
  one.merge(target());
  EXPECT_EQ(merged("w.weight"), (Floats{2, 3}));
}

TEST_F(Merge, AResumedRunLeavesNoFileThatTheBaseNoLongerHas) {
  fs::create_directories(folder_ / "base/extra");
  save(folder_ / "base/model.safetensors", {{"w.weight", {1, 2}, {1, 2}}});
  put(folder_ / "base/note.txt", "kept");
  save_adapter(folder_ / "a", {lora_b("w", {1, 1}, {1}), lora_a("w", {1, 2}, {1, 1})});
  const Case one(folder_ / "base", {folder_ / "a"});
  const MergeOptions stop = {
      .on_progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("killed"); }};
  EXPECT_THROW(one.merge(target(), stop), std::runtime_error);
  const fs::path result = folder_ / "merged.partial/result";
  fs::create_directories(result / "extra");
  put(result / "extra/old.txt", "of a base that had it");
  put(result / "tokenizer.json", "as well");
  fs::create_directories(result / "note.txt");
  put(result / "note.txt/x", "a folder that has become a file");
  EXPECT_EQ(one.merge(target()).n_resumed, 1);
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(target())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"model.safetensors", "note.txt"}));
  EXPECT_EQ(content_of(target() / "note.txt"), "kept");
  EXPECT_EQ(merged("w.weight"), (Floats{2, 3}));
}

TEST_F(Merge, AResultNeverOverwritesAnother) {
  const fs::path base = base_of({"w.weight", {1, 1}, {1}});
  const Case one(base, {adapter_of("a", {1}, {1})});
  fs::create_directories(target());
  put(target() / "kept", "mine");
  EXPECT_NE(thrown_by<FileError>([&] { one.merge(target()); }).find("is there already"),
            std::string::npos);
  EXPECT_EQ(content_of(target() / "kept"), "mine");
}

}  // namespace
}  // namespace eckart

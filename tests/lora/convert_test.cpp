#include "eckart/lora/convert.h"

#include "eckart/io/widen.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/lora/adapter_files.h"
#include "tests/matchers.h"
#include <gtest/gtest.h>

namespace eckart::testing {
namespace {

std::vector<std::string> base_names(std::string_view golden) {
  std::vector<std::string> names;
  const SafetensorsFile base = open_safetensors(golden_adapter(golden) / "base.safetensors");
  for (const StoredTensor& tensor : base.tensors()) names.push_back(tensor.name);
  return names;
}

// The modules of both have the same names and deltas, to `bound`.
void expect_same_deltas(const Adapter& actual, const Adapter& expected, Bound bound) {
  ASSERT_EQ(actual.modules().size(), expected.modules().size());
  for (std::size_t i = 0; i < actual.modules().size(); ++i) {
    const AdapterModule& mine = actual.modules()[i];
    const AdapterModule& theirs = expected.modules()[i];
    EXPECT_EQ(mine.name, theirs.name);
    EXPECT_EQ(mine.kind, theirs.kind);
    ASSERT_EQ(mine.n_experts, theirs.n_experts);
    for (Index expert = 0; expert < mine.n_experts; ++expert) {
      EXPECT_TRUE(
          is_near(delta_of(actual, mine, expert), delta_of(expected, theirs, expert), bound))
          << mine.name;
    }
  }
}

// The factors are the same numbers; scale and alpha are divided and multiplied by the rank, which
// costs a few roundings of a double: 1e-15 of the element.
constexpr Bound scale_bound = {.absolute = 1e-15, .relative = 1e-15};
// A factor rounded to float once more: half a unit in the last place, 2^-24, of each of at most 5
// products below 4.
constexpr Bound folded_bound = {.absolute = 2e-6};

// kohya's readers take an alpha of 0 for the rank.
TEST(ConvertAdapter, ToKohyaAModuleWithoutEffectStaysWithoutOne) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "peft");
  HandTensors tensors = {{"base_model.model.q.lora_A.weight", {{2, 3}, {1, 2, 3, 4, 5, 6}}},
                         {"base_model.model.q.lora_B.weight", {{2, 2}, {1, 2, 3, 4}}}};
  save_floats(folder / "peft/adapter_model.safetensors", tensors);
  std::ofstream(folder / "peft/adapter_config.json")
      << R"({"peft_type": "LORA", "r": 2, "lora_alpha": 0})";
  convert_adapter(open_adapter(folder / "peft"), folder / "x.safetensors",
                  {.to = AdapterNaming::kohya});
  const Adapter kohya = open_adapter(folder / "x.safetensors");
  ASSERT_EQ(kohya.modules().size(), 1U);
  EXPECT_TRUE(is_near(delta_of(kohya, kohya.modules()[0]), Tensor<double>({2, 3}), Bound{}));
}

TEST(ConvertAdapter, ToKohyaAndBackGivesTheSameDeltas) {
  for (const char* name : {"default", "rslora", "patterns", "regex", "conv1d", "convolutions"}) {
    SCOPED_TRACE(name);
    const ScratchFolder folder;
    const Adapter original = open_adapter(golden_adapter(name));
    convert_adapter(original, folder / "x.safetensors", {.to = AdapterNaming::kohya});
    Adapter kohya = open_adapter(folder / "x.safetensors");
    EXPECT_EQ(kohya.naming(), AdapterNaming::kohya);
    EXPECT_TRUE(kohya.resolve_names(base_names(name)).empty());
    expect_same_deltas(kohya, original, scale_bound);
    convert_adapter(kohya, folder / "back", {.to = AdapterNaming::peft});
    expect_same_deltas(open_adapter(folder / "back"), original, scale_bound);
  }
}

TEST(ConvertAdapter, ToMlxAndBackGivesTheSameDeltas) {
  for (const char* name : {"default", "rslora", "dora", "embeddings", "experts", "patterns"}) {
    SCOPED_TRACE(name);
    const ScratchFolder folder;
    const Adapter original = open_adapter(golden_adapter(name));
    const ConvertReport report =
        convert_adapter(original, folder / "mlx", {.to = AdapterNaming::mlx});
    const Bound bound = report.n_scaled > 0 ? folded_bound : scale_bound;
    const Adapter mlx = open_adapter(folder / "mlx");
    EXPECT_EQ(mlx.naming(), AdapterNaming::mlx);
    expect_same_deltas(mlx, original, bound);
    convert_adapter(mlx, folder / "back", {.to = AdapterNaming::peft});
    const Adapter back = open_adapter(folder / "back");
    expect_same_deltas(back, original, bound);
    EXPECT_EQ(back.config().use_dora, original.config().use_dora);
  }
}

TEST(ConvertAdapter, ToPeftKeepsBiasesSavedTensorsAndTheirConfig) {
  for (const char* name : {"lora_bias", "modules_to_save", "trained_biases", "dora", "experts"}) {
    SCOPED_TRACE(name);
    const ScratchFolder folder;
    const Adapter original = open_adapter(golden_adapter(name));
    convert_adapter(original, folder / "copy", {.to = AdapterNaming::peft});
    const Adapter copy = open_adapter(folder / "copy");
    expect_same_deltas(copy, original, {});
    EXPECT_EQ(copy.config().lora_bias, original.config().lora_bias);
    EXPECT_EQ(copy.config().fan_in_fan_out, original.config().fan_in_fan_out);
    EXPECT_EQ(copy.config().modules_to_save, original.config().modules_to_save);
    ASSERT_EQ(copy.saved().size(), original.saved().size());
    for (std::size_t i = 0; i < copy.saved().size(); ++i) {
      EXPECT_EQ(copy.saved()[i].name, original.saved()[i].name);
      EXPECT_TRUE(is_near(load_floats(copy.file(), *copy.saved()[i].stored),
                          load_floats(original.file(), *original.saved()[i].stored)));
    }
  }
}

TEST(ConvertAdapter, DoesNotRoundAlphaToTheFactorsDtype) {
  const ScratchFolder folder;
  const std::string key = "base_model.model.a.b";
  // BF16 has 8 bits: 257 would become 256.
  save_peft(folder / "peft",
            {{key + ".lora_A.weight", {{1, 1}, {1}}}, {key + ".lora_B.weight", {{1, 1}, {1}}}},
            "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 257, 'target_modules': ['b']}");
  const Adapter adapter = open_adapter(folder / "peft");
  convert_adapter(adapter, folder / "x.safetensors",
                  {.to = AdapterNaming::kohya, .dtype = Dtype::bf16});
  const SafetensorsFile file = open_safetensors(folder / "x.safetensors");
  const StoredTensor* const alpha = file.find("lora_unet_a_b.alpha");
  ASSERT_NE(alpha, nullptr);
  EXPECT_EQ(alpha->dtype, Dtype::f32);
  EXPECT_TRUE(has_elements(load_floats(file, *alpha).view(), {257}));
  EXPECT_EQ(file.find("lora_unet_a_b.lora_up.weight")->dtype, Dtype::bf16);
}

TEST(ConvertAdapter, KeepsAFileThatAppearsMeanwhile) {
  const ScratchFolder folder;
  const Adapter adapter = open_adapter(golden_adapter("rslora"));
  const std::string said = thrown_by<FileError>([&] {
    convert_adapter(adapter, folder / "x.safetensors",
                    {.to = AdapterNaming::kohya, .on_progress = [&](Index done, Index all) {
                       if (done == all) testing::put(folder / "x.safetensors", "mine");
                     }});
  });
  EXPECT_NE(said.find("x.safetensors can't be written, because it is there by now"),
            std::string::npos)
      << said;
  EXPECT_EQ(testing::content_of(folder / "x.safetensors"), "mine");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x.safetensors"});
}

TEST(ConvertAdapter, NoticesAnInputThatChangesMeanwhile) {
  const ScratchFolder folder;
  const std::string key = "base_model.model.a.b";
  save_peft(folder / "peft",
            {{key + ".lora_A.weight", {{1, 1}, {1}}}, {key + ".lora_B.weight", {{1, 1}, {1}}}},
            "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 1, 'target_modules': ['b']}");
  const std::filesystem::path file = folder / "peft/adapter_model.safetensors";
  const Adapter adapter = open_adapter(folder / "peft");
  for (const AdapterNaming to : {AdapterNaming::kohya, AdapterNaming::mlx, AdapterNaming::peft}) {
    const std::string said = thrown_by<FileError>([&] {
      convert_adapter(adapter, folder / "x", {.to = to, .on_progress = [&](Index, Index) {
                                                std::filesystem::last_write_time(
                                                    file, std::filesystem::last_write_time(file) +
                                                              std::chrono::seconds(1));
                                              }});
    });
    EXPECT_EQ(said, file.string() +
                        " has changed while it was read: nothing is written\n  hint: run it again "
                        "when no other program writes that file");
    EXPECT_EQ(folder.names(), std::vector<std::string>{"peft"});
  }
}

TEST(ConvertAdapter, WritesAnAlphaThatNoFloatHoldsAsADouble) {
  const ScratchFolder folder;
  const Adapter adapter = open_adapter(golden_adapter("rslora"));
  convert_adapter(adapter, folder / "x.safetensors",
                  {.to = AdapterNaming::kohya, .prefix = "lora_te1"});
  const SafetensorsFile file = open_safetensors(folder / "x.safetensors");
  const StoredTensor* const alpha = file.find("lora_te1_model_layers_0_self_attn_q_proj.alpha");
  ASSERT_NE(alpha, nullptr);
  // 8 / sqrt(4) is 4 for a rank of 4: 16, which a float holds.
  EXPECT_EQ(alpha->dtype, Dtype::f32);
  EXPECT_TRUE(has_elements(load_floats(file, *alpha).view(), {16}));

  const std::string key = "base_model.model.a";
  save_peft(folder / "third",
            {{key + ".lora_A.weight", {{3, 1}, {1, 1, 1}}},
             {key + ".lora_B.weight", {{1, 3}, {1, 1, 1}}}},
            "{'peft_type': 'LORA', 'r': 3, 'lora_alpha': 1, 'use_rslora': true, "
            "'target_modules': ['a']}");
  convert_adapter(open_adapter(folder / "third"), folder / "y.safetensors",
                  {.to = AdapterNaming::kohya});
  const SafetensorsFile third = open_safetensors(folder / "y.safetensors");
  const StoredTensor* const root = third.find("lora_unet_a.alpha");
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root->dtype, Dtype::f64);
  double value = 0;
  widen(root->dtype, third.bytes(*root), std::span<double>(&value, 1));
  EXPECT_EQ(value, 1 / std::sqrt(3.0) * 3);
}

// What converting a golden adapter throws.
std::string refused(std::string_view name, AdapterNaming to) {
  const ScratchFolder folder;
  const Adapter adapter = open_adapter(golden_adapter(name));
  const std::string text =
      thrown_by<ArgumentError>([&] { convert_adapter(adapter, folder / "x", {.to = to}); });
  EXPECT_TRUE(folder.names().empty());
  return text;
}

TEST(ConvertAdapter, RefusesWhatTheTargetCannotHold) {
  EXPECT_EQ(
      refused("dora", AdapterNaming::kohya),
      "lora convert: model.layers.0.mlp.up_proj has DoRA's magnitude for each output, but "
      "kohya's dora_scale has one for each input\n  hint: `eckart lora merge` folds it into a "
      "base");
  EXPECT_EQ(
      refused("lora_bias", AdapterNaming::kohya),
      "lora convert: transformer.h.0.attn.c_attn has a bias (lora_bias), but kohya's files have "
      "no place for it");
  EXPECT_EQ(
      refused("experts", AdapterNaming::kohya),
      "lora convert: mlp.experts.down_proj is of kind experts, but kohya's files hold matrices "
      "and convolutions");
  EXPECT_EQ(refused("convolutions", AdapterNaming::mlx),
            "lora convert: line is a convolution, but MLX's adapters hold matrices");
  EXPECT_EQ(
      refused("modules_to_save", AdapterNaming::mlx),
      "lora convert: model.layers.0.input_layernorm.weight replaces the base's tensor "
      "(modules_to_save), but only PEFT's adapters hold such\n  hint: `eckart lora merge` puts "
      "it into a base");
}

TEST(ConvertAdapter, RefusesNumbersThatTheDtypeCannotHold) {
  const ScratchFolder folder;
  const std::string key = "base_model.model.a";
  save_peft(folder / "peft",
            {{key + ".lora_A.weight", {{1, 1}, {70000}}}, {key + ".lora_B.weight", {{1, 1}, {1}}}},
            "{'peft_type': 'LORA', 'r': 1, 'target_modules': ['a']}");
  const Adapter adapter = open_adapter(folder / "peft");
  for (const AdapterNaming to : {AdapterNaming::peft, AdapterNaming::kohya, AdapterNaming::mlx}) {
    EXPECT_EQ(
        thrown_by<ArgumentError>(
            [&] { convert_adapter(adapter, folder / "x", {.to = to, .dtype = Dtype::f16}); }),
        "lora convert: a number of \"a\" is too large for F16\n  hint: BF16 and F32 hold larger "
        "ones");
    EXPECT_EQ(folder.names(), std::vector<std::string>{"peft"});
  }
}

TEST(ConvertAdapter, NeverWritesOverAnything) {
  const ScratchFolder folder;
  put(folder / "x.safetensors", "mine");
  const Adapter adapter = open_adapter(golden_adapter("default"));
  EXPECT_EQ(thrown_by<FileError>([&] {
              convert_adapter(adapter, folder / "x.safetensors", {.to = AdapterNaming::kohya});
            }),
            (folder / "x.safetensors").string() +
                ": is there already, but a result is never written over another\n  hint: choose "
                "another name, or remove it");
  EXPECT_EQ(content_of(folder / "x.safetensors"), "mine");
}

TEST(ConvertAdapter, PadsRanksAndFoldsScalesForMlx) {
  const ScratchFolder folder;
  const Adapter original = open_adapter(golden_adapter("patterns"));
  const ConvertReport report =
      convert_adapter(original, folder / "mlx", {.to = AdapterNaming::mlx});
  // Ranks 5, 4, 3 and 2; scales 7/5, 7/2, 2.5/4, 8/3 twice and 8/5 twice.
  EXPECT_EQ(report.n_padded, 4);
  EXPECT_EQ(report.n_scaled, 5);
  const Adapter mlx = open_adapter(folder / "mlx");
  for (const AdapterModule& module : mlx.modules()) EXPECT_EQ(module.rank, 5);
}

TEST(ConvertAdapter, GoesOnWhereARunWasCutOff) {
  const ScratchFolder folder;
  const Adapter adapter = open_adapter(golden_adapter("default"));
  ConvertOptions options{.to = AdapterNaming::peft, .dtype = Dtype::bf16};
  EXPECT_EQ(convert_adapter(adapter, folder / "whole", options).n_resumed, 0);
  options.on_progress = [](Index done, Index) {
    if (done == 2) throw std::runtime_error("cut off");
  };
  EXPECT_THROW(convert_adapter(adapter, folder / "out", options), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  options.on_progress = {};
  EXPECT_EQ(convert_adapter(adapter, folder / "out", options).n_resumed, 2);
  EXPECT_EQ(content_of(folder / "out/adapter_model.safetensors"),
            content_of(folder / "whole/adapter_model.safetensors"));
}

TEST(ConvertAdapter, DoesNotGoOnWithAnotherAlphaOrConfig) {
  for (const char* edited :
       {"'lora_alpha': 1.0000001", "'lora_alpha': 1, 'task_type': 'CAUSAL_LM'"}) {
    const ScratchFolder folder;
    const auto save = [&](const std::string& fields) {
      save_peft(folder / "a", peft_pair("q"),
                "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q'], " + fields + "}");
    };
    save("'lora_alpha': 1");
    ConvertOptions options{.to = AdapterNaming::peft};
    options.on_progress = [](Index, Index) { throw std::runtime_error("cut off"); };
    {
      const Adapter adapter = open_adapter(folder / "a");
      EXPECT_THROW(convert_adapter(adapter, folder / "out", options), std::runtime_error);
    }
    put(folder / "a/adapter_config.json",
        in_quotes("{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q'], " + std::string(edited) +
                  "}"));
    const Adapter other = open_adapter(folder / "a");
    options.on_progress = {};
    EXPECT_NE(thrown_by<FileError>([&] {
                convert_adapter(other, folder / "out", options);
              }).find("holds the unfinished work of a run with other inputs or options"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace eckart::testing

#include "eckart/lora/combine.h"
#include "eckart/lora/verify.h"

#include "merge_case.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::Case;
using testing::elements;
using testing::lora_a;
using testing::lora_b;
using testing::put;
using testing::save;
using testing::save_adapter;
using testing::ScratchFolder;
using testing::thrown_by;
using testing::Values;
using Floats = std::vector<float>;

Values filled(const std::string& name, std::vector<Index> sizes, float value) {
  const Shape shape(sizes);
  return {name, std::move(sizes), Floats(static_cast<std::size_t>(shape.count()), value)};
}

class Experts : public ::testing::Test {
 protected:
  // Two experts of `m.experts` with d 2: `down` is square; `gate_up` is not.
  fs::path base_of(std::vector<Index> gate_up, const std::string& config = "") {
    fs::create_directories(folder_ / "base");
    save(folder_ / "base/model.safetensors",
         {filled("m.experts.gate_up_proj", std::move(gate_up), 0),
          filled("m.experts.down_proj", {2, 2, 2}, 0)});
    if (!config.empty()) put(folder_ / "base/config.json", config);
    return folder_ / "base";
  }
  // Rank 1: of expert 0 B A = [1 2] [3 4]^T in down_proj, and zeros of these sizes in gate_up_proj.
  fs::path adapter_of(const std::string& version, Index d_out = 0, Index d_in = 0) {
    const bool has_both = d_out > 0;
    std::vector<Values> tensors = {lora_b("m.experts", {2, 2}, {1, 0, 2, 0}),
                                   lora_a("m.experts", {2, 2}, {3, 4, 0, 0})};
    if (has_both) {
      tensors.push_back(
          filled("base_model.model.m.experts.base_layer.lora_B.weight", {d_out, 2}, 0));
      tensors.push_back(
          filled("base_model.model.m.experts.base_layer.lora_A.weight", {2, d_in}, 0));
    }
    save_adapter(folder_ / "adapter", tensors,
                 std::string(R"(, "target_parameters": [)") +
                     (has_both ? R"("m.experts.gate_up_proj", )" : "") +
                     R"("m.experts.down_proj"])" +
                     (version.empty() ? "" : R"(, "peft_version": ")" + version + '"'));
    return folder_ / "adapter";
  }
  Floats merged(const fs::path& base, const fs::path& adapter) {
    fs::remove_all(folder_ / "merged");
    Case(base, {adapter}).merge(folder_ / "merged");
    Floats all = elements(folder_ / "merged", "m.experts.down_proj");
    all.resize(4);  // of the first expert
    return all;
  }

  const Floats straight_ = {3, 4, 6, 8};
  const Floats turned_ = {3, 6, 4, 8};
  ScratchFolder folder_;
};

TEST_F(Experts, SquareOnesLieAsTheAdaptersOthers) {
  EXPECT_EQ(merged(base_of({2, 6, 2}), adapter_of("0.19.1", 6, 2)), straight_);
  EXPECT_EQ(merged(base_of({2, 2, 6}), adapter_of("0.19.1", 6, 2)), turned_);
  EXPECT_EQ(merged(base_of({2, 2, 6}), adapter_of("", 6, 2)), turned_);
}

TEST_F(Experts, SquareOnesOfAnOldPeftAreInputFirst) {
  EXPECT_EQ(merged(base_of({2, 6, 2}), adapter_of("0.18.1")), turned_);
  EXPECT_EQ(merged(base_of({2, 6, 2}), adapter_of("0.19.0")), turned_);
  // Its others lie so, too: the sizes show it.
  EXPECT_EQ(merged(base_of({2, 6, 2}), adapter_of("0.18.1", 2, 6)), turned_);
}

TEST_F(Experts, SquareOnesOfWhichNothingSaysHowTheyLieAreAnError) {
  for (const char* version : {"0.19.1", "1.0.0.dev0", ""}) {
    const Case one(base_of({2, 6, 2}), {adapter_of(version)});
    EXPECT_EQ(thrown_by<ArgumentError>([&] { plan_merge(one.sources()); }),
              "merge: the experts of m.experts.down_proj are square, and no other module of the "
              "adapter says how they lie\n  hint: a config.json with the model_type of a known "
              "family beside the base does");
  }
}

TEST_F(Experts, SquareOnesOfTwoConventionsAreNotAdded) {
  const Adapter of_old = open_adapter(adapter_of("0.18.1"));
  fs::rename(folder_ / "adapter", folder_ / "old");
  const Adapter of_new = open_adapter(adapter_of("0.19.1"));
  const std::string text = thrown_by<ArgumentError>([&] {
    combine_adapters({{&of_old, 1}, {&of_new, 1}}, folder_ / "sum");
  });
  EXPECT_EQ(text.rfind("combine: m.experts.down_proj has square experts, and one of ", 0), 0u)
      << text;
  EXPECT_FALSE(fs::exists(folder_ / "sum"));
}

// Mixtral as its files have it; PEFT's names and factors are those of the fused parameters.
class Unfused : public ::testing::Test {
 protected:
  static constexpr const char* moe = "model.layers.0.block_sparse_moe.experts.";
  fs::path base() {
    fs::create_directories(folder_ / "base");
    std::vector<Values> tensors;
    for (const char* number : {"0", "1"}) {
      const std::string one = moe + std::string(number);
      tensors.push_back(filled(one + ".w1.weight", {3, 2}, 10));
      tensors.push_back(filled(one + ".w3.weight", {3, 2}, 20));
      tensors.push_back(filled(one + ".w2.weight", {2, 3}, 30));
    }
    save(folder_ / "base/model.safetensors", tensors);
    put(folder_ / "base/config.json",
        R"({"model_type": "mixtral", "hidden_size": 2, "intermediate_size": 3, "vocab_size": 4,
            "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
            "num_local_experts": 2, "num_experts_per_tok": 1, "max_position_embeddings": 8})");
    return folder_ / "base";
  }
  // Of expert e: B has e + 1 times 1..6, A is [1, 10].
  fs::path adapter(const std::string& parameter, Index d_out, Floats a, Index d_in) {
    Floats b;
    for (Index i = 1; i <= d_out; ++i) {
      b.push_back(static_cast<float>(i));
      b.push_back(static_cast<float>(2 * i));
    }
    const std::string parent = "model.layers.0.mlp.experts";
    save_adapter(folder_ / parameter, {lora_b(parent, {d_out, 2}, b), lora_a(parent, {2, d_in}, a)},
                 R"(, "target_parameters": ["mlp.experts.)" + parameter + R"("])");
    return folder_ / parameter;
  }
  Floats of(const std::string& name) {
    return elements(folder_ / "merged", moe + name + ".weight");
  }

  ScratchFolder folder_;
};

TEST_F(Unfused, FusedExpertsGoIntoTheMatricesOfEach) {
  const Case one(base(), {adapter("gate_up_proj", 6, {1, 10, 1, 10}, 2),
                          adapter("down_proj", 2, {1, 10, 100, 1, 10, 100}, 3)});
  one.merge(folder_ / "merged", {.rules = {}});
  EXPECT_EQ(of("0.w1"), (Floats{11, 20, 12, 30, 13, 40}));
  EXPECT_EQ(of("0.w3"), (Floats{24, 60, 25, 70, 26, 80}));
  EXPECT_EQ(of("1.w1"), (Floats{12, 30, 14, 50, 16, 70}));
  EXPECT_EQ(of("1.w3"), (Floats{28, 100, 30, 120, 32, 140}));
  EXPECT_EQ(of("0.w2"), (Floats{31, 40, 130, 32, 50, 230}));
  EXPECT_EQ(of("1.w2"), (Floats{32, 50, 230, 34, 70, 430}));
  const VerifyReport report = verify_merge(one.sources(), open_checkpoint(folder_ / "merged"), {});
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.tensors.size(), 6u);
}

TEST_F(Unfused, ExpertsOfOtherSizesAreAnError) {
  const Case one(base(), {adapter("gate_up_proj", 4, {1, 10, 1, 10}, 2)});
  const std::string text = thrown_by<ShapeError>([&] { plan_merge(one.sources()); });
  EXPECT_NE(text.find("holds 2 experts of 4x2 (B A), but the base's is 2x6x2"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace eckart

#include "eckart/lora/merge_plan.h"

#include <algorithm>

#include "merge_case.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::Case;
using testing::lora_a;
using testing::lora_b;
using testing::put;
using testing::save;
using testing::save_adapter;
using testing::ScratchFolder;
using testing::thrown_by;
using testing::Values;
using Floats = std::vector<float>;

Values zeros(const std::string& name, std::vector<Index> sizes, Dtype dtype = Dtype::f32) {
  const Shape shape(sizes);
  return {name, std::move(sizes), Floats(static_cast<std::size_t>(shape.count())), dtype};
}

class Planning : public ::testing::Test {
 protected:
  fs::path base_of(const std::vector<Values>& tensors, const std::string& config = "") {
    fs::create_directories(folder_ / "base");
    save(folder_ / "base/model.safetensors", tensors);
    if (!config.empty()) put(folder_ / "base/config.json", config);
    return folder_ / "base";
  }
  // Adds ones to modules of these sizes.
  struct Sizes {
    std::string module;
    Index d_out, d_in;
  };
  fs::path adapter_of(const std::vector<Sizes>& modules, const std::string& more = "") {
    std::vector<Values> tensors;
    for (const auto& [module, d_out, d_in] : modules) {
      tensors.push_back(lora_b(module, {d_out, 1}, Floats(static_cast<std::size_t>(d_out), 1)));
      tensors.push_back(lora_a(module, {1, d_in}, Floats(static_cast<std::size_t>(d_in), 1)));
    }
    save_adapter(folder_ / "adapter", tensors, more);
    return folder_ / "adapter";
  }
  static bool is_transposed(const MergePlan& plan, const std::string& name) {
    const auto tensor = std::find_if(plan.tensors.begin(), plan.tensors.end(),
                                     [&](const PlannedTensor& one) { return one.name == name; });
    EXPECT_NE(tensor, plan.tensors.end());
    EXPECT_EQ(tensor->deltas.size(), 1u);
    return tensor->deltas.front().is_transposed;
  }

  ScratchFolder folder_;
};

TEST_F(Planning, SizesSayHowAMatrixLies) {
  const Case both(base_of({zeros("w.weight", {2, 3}), zeros("v.weight", {3, 2})}),
                  {adapter_of({{"w", 2, 3}, {"v", 2, 3}})});
  const MergePlan plan = plan_merge(both.sources());
  EXPECT_FALSE(is_transposed(plan, "w.weight"));
  EXPECT_TRUE(is_transposed(plan, "v.weight"));
}

TEST_F(Planning, ASquareMatrixOfNoKnownFamilyLiesAsPyTorchsLinear) {
  const Case one(base_of({zeros("w.weight", {2, 2})}), {adapter_of({{"w", 2, 2}})});
  EXPECT_FALSE(is_transposed(plan_merge(one.sources()), "w.weight"));
}

TEST_F(Planning, ASquareMatrixLiesAsTheAdaptersOthersOrItsConfigSays) {
  const fs::path base = base_of({zeros("w.weight", {2, 2}), zeros("v.weight", {2, 3})});
  const Case beside(base, {adapter_of({{"w", 2, 2}, {"v", 3, 2}})});
  EXPECT_TRUE(is_transposed(plan_merge(beside.sources()), "w.weight"));
  const Case said(base, {adapter_of({{"w", 2, 2}}, R"(, "fan_in_fan_out": true)")});
  EXPECT_TRUE(is_transposed(plan_merge(said.sources()), "w.weight"));
}

TEST_F(Planning, ASquareMatrixAmongBothKindsNeedsTheModelType) {
  const fs::path base = base_of(
      {zeros("w.weight", {2, 2}), zeros("v.weight", {2, 3}), zeros("lm_head.weight", {4, 2})});
  const Case mixed(base, {adapter_of({{"w", 2, 2}, {"v", 3, 2}, {"lm_head", 4, 2}})});
  EXPECT_EQ(thrown_by<ArgumentError>([&] { plan_merge(mixed.sources()); }),
            "merge: w is square, and of the adapter's other modules some are stored input x "
            "output: nothing says how this one lies\n"
            "  hint: a config.json with the model_type of a known family beside the base does");
}

TEST_F(Planning, TheTableOfTheFamilySaysHowASquareMatrixLies) {
  const Case gpt2(base_of({zeros("h.0.attn.c_proj.weight", {4, 4}), zeros("wte.weight", {8, 4})},
                          R"({"model_type": "gpt2", "n_embd": 4, "n_layer": 1, "n_head": 2,
                              "n_positions": 8, "vocab_size": 8})"),
                  {adapter_of({{"transformer.h.0.attn.c_proj", 4, 4}})});
  EXPECT_TRUE(is_transposed(plan_merge(gpt2.sources()), "h.0.attn.c_proj.weight"));
}

TEST_F(Planning, ATiedPairIsFoundByNameWhereTheFamilyIsUnknown) {
  const std::string config = R"({"model_type": "new", "tie_word_embeddings": true})";
  const Case tied(base_of({zeros("model.embed_tokens.weight", {4, 2})}, config),
                  {adapter_of({{"lm_head", 4, 2}})});
  const MergePlan plan = plan_merge(tied.sources());
  EXPECT_TRUE(plan.is_untied);
  ASSERT_EQ(plan.tensors.size(), 2u);
  EXPECT_EQ(plan.tensors[0].name, "lm_head.weight");
  EXPECT_EQ(plan.tensors[0].fate, TensorFate::added);
  EXPECT_EQ(plan.tensors[1].fate, TensorFate::copied);
  const MergePlan folded = plan_merge(tied.sources(), {.fold_tied = true});
  EXPECT_FALSE(folded.is_untied);
  ASSERT_EQ(folded.tensors.size(), 1u);
  EXPECT_EQ(folded.tensors[0].deltas.size(), 1u);
}

TEST_F(Planning, AnUntiedModelWithoutAHeadIsAnError) {
  const Case none(base_of({zeros("model.embed_tokens.weight", {4, 2})}, R"({"model_type": "new"})"),
                  {adapter_of({{"lm_head", 4, 2}})});
  const std::string text = thrown_by<ArgumentError>([&] { plan_merge(none.sources()); });
  EXPECT_NE(text.find("changes lm_head, but the base has no tensor of that name"),
            std::string::npos)
      << text;
}

TEST_F(Planning, AnotherQuantizationThanF8IsAnError) {
  fs::create_directories(folder_ / "base");
  const std::vector<std::byte> packed(64);
  save_safetensors(folder_ / "base/model.safetensors",
                   {{{"w.qweight", Dtype::i32, {1, 8}}, std::span(packed).first(32)},
                    {{"w.qzeros", Dtype::i32, {1, 1}}, std::span(packed).first(4)},
                    {{"w.scales", Dtype::f16, {1, 8}}, std::span(packed).first(16)},
                    {{"w.g_idx", Dtype::i32, {8}}, std::span(packed).first(32)}});
  const Case gptq(folder_ / "base", {adapter_of({{"w", 8, 8}})});
  const std::string text = thrown_by<ArgumentError>([&] { plan_merge(gptq.sources()); });
  EXPECT_NE(text.find("w.weight is GPTQ"), std::string::npos) << text;
  EXPECT_NE(text.find("only F8 with scales can be taken out of its quantization"),
            std::string::npos);
}

TEST_F(Planning, F64IsSummedOnlyWhenAnotherDtypeIsAskedFor) {
  fs::create_directories(folder_ / "base");
  const std::vector<double> values = {1, 2};
  save_safetensors(folder_ / "base/model.safetensors",
                   {{{"w.weight", Dtype::f64, {1, 2}}, std::as_bytes(std::span(values))}});
  const Case one(folder_ / "base", {adapter_of({{"w", 1, 2}})});
  EXPECT_EQ(thrown_by<ArgumentError>([&] { plan_merge(one.sources()); }),
            "merge: w.weight is stored as F64, which nothing is rounded to here\n"
            "  hint: `--dtype F32` writes another one");
  EXPECT_EQ(plan_merge(one.sources(), {.dtype = Dtype::f32}).tensors[0].dtype, Dtype::f32);
}

}  // namespace
}  // namespace eckart

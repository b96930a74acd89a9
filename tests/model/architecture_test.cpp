#include "eckart/model/architecture.h"

#include "eckart/core/errors.h"

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;

Architecture read(const std::string& json) {
  return read_architecture(parse_config(json, "config.json"));
}

const std::string known =
    "\n  hint: the families known are bert, bloom, deepseek_v2, deepseek_v3, distilbert, gemma, "
    "gemma2, "
    "gemma3, gpt2, gpt_neox, gpt_oss, llama, mistral, mixtral, phi, phi3, qwen2, qwen2_moe, qwen3, "
    "qwen3_moe, roberta";

TEST(Families, AreFoundByModelType) {
  ASSERT_NE(find_family("llama"), nullptr);
  EXPECT_EQ(find_family("llama")->name, "llama");
  EXPECT_EQ(find_family("gemma3_text"), find_family("gemma3"));
  EXPECT_EQ(find_family("mamba"), nullptr);
  EXPECT_EQ(find_family(""), nullptr);
  EXPECT_EQ(families().size(), 21U);
}

TEST(Families, AnUnknownModelTypeIsAnErrorThatListsTheKnownOnes) {
  EXPECT_EQ(thrown_by<ArgumentError>([] { read(R"({"model_type": "mamba"})"); }),
            "config.json: no family reads the model_type mamba, but the tensors' table comes from "
            "the family" +
                known);
}

TEST(Families, AnAbsentModelTypeIsAnError) {
  EXPECT_EQ(thrown_by<ArgumentError>([] { read("{}"); }),
            "config.json: it has no model_type, but the family is found by it" + known);
}

TEST(TensorSpec, CountsLayersAndExperts) {
  const TensorSpec spec = {.name = "layers.{layer}.experts.{expert}.up.weight",
                           .shape = Shape({3, 2}, {"d_expert", "d_model"}),
                           .role = Role::w_up,
                           .component = Component::experts,
                           .use = Use::per_token,
                           .layers = {0, 1, 4},
                           .n_experts = 8,
                           .n_active_experts = 2};
  EXPECT_EQ(parameters(spec), 3 * 2 * 3 * 8);
  EXPECT_EQ(active_parameters(spec), 3 * 2 * 3 * 2);
  EXPECT_EQ(macs_per_use(spec), 3 * 2 * 3 * 2);
  EXPECT_EQ(tensor_name(spec, 4, 7), "layers.4.experts.7.up.weight");
}

TEST(TensorSpec, CountsExpertsStoredInOneTensor) {
  const TensorSpec spec = {.name = "layers.{layer}.experts.up",
                           .shape = Shape({8, 2, 3}, {"expert", "d_model", "d_expert"}),
                           .role = Role::w_up,
                           .component = Component::experts,
                           .use = Use::per_token,
                           .layers = {0, 1},
                           .n_experts = 8,
                           .n_active_experts = 2,
                           .input_first = true};
  EXPECT_EQ(parameters(spec), 8 * 2 * 3 * 2);
  EXPECT_EQ(active_parameters(spec), 2 * 2 * 3 * 2);
  EXPECT_EQ(macs_per_use(spec), 2 * 2 * 3 * 2);
}

TEST(TensorSpec, ATiedOneHasProductsButNoParameters) {
  TensorSpec spec = {.name = "lm_head.weight",
                     .shape = Shape({5, 2}, {"vocab", "d_model"}),
                     .role = Role::w_unembed,
                     .component = Component::head,
                     .use = Use::per_token};
  EXPECT_EQ(parameters(spec), 10);
  spec.tied_to = "embed_tokens.weight";
  EXPECT_EQ(parameters(spec), 0);
  EXPECT_EQ(active_parameters(spec), 0);
  EXPECT_EQ(macs_per_use(spec), 10);
}

TEST(TensorSpec, ALookUpAndABiasAreNoProducts) {
  TensorSpec spec = {.name = "wte.weight", .shape = Shape{5, 2}, .use = Use::gather};
  EXPECT_EQ(macs_per_use(spec), 0);
  spec.use = Use::none;
  EXPECT_EQ(macs_per_use(spec), 0);
  EXPECT_EQ(parameters(spec), 10);
}

TEST(TensorSpec, MoreParametersThanACountHoldsIsAnErrorThatNamesTheTensor) {
  const TensorSpec spec = {.name = "experts.{expert}.up.weight",
                           .shape = Shape({Index{1} << 40, 1024}),
                           .n_experts = Index{1} << 40};
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { parameters(spec); }),
      "count: the number of parameters of experts.{expert}.up.weight: the result is more than "
      "2^63 - 1, "
      "but counts are 63-bit whole numbers");
}

TEST(Roles, HaveTheNamesOfTheirEnumerators) {
  EXPECT_EQ(to_string(Role::token_embedding), "token_embedding");
  EXPECT_EQ(to_string(Role::w_q), "w_q");
  EXPECT_EQ(to_string(Role::w_kv_b), "w_kv_b");
  EXPECT_EQ(to_string(Role::sinks), "sinks");
  EXPECT_EQ(to_string(Role::w_gate_up), "w_gate_up");
  EXPECT_EQ(to_string(Role::w_down), "w_down");
  EXPECT_EQ(to_string(Role::classifier), "classifier");
  EXPECT_EQ(to_string(Component::embedding), "embedding");
  EXPECT_EQ(to_string(Component::shared_experts), "shared_experts");
  EXPECT_EQ(to_string(Component::head), "head");
}

}  // namespace
}  // namespace eckart

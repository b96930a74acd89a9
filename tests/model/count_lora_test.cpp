#include "eckart/core/errors.h"
#include "eckart/model/count.h"

#include "tests/model/golden_configs.h"
#include "tests/model/tiny_configs.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::golden;
using testing::read_json;
using testing::thrown_by;
using testing::tiny_llama;

TEST(CountLora, FourAttentionMatricesOf32LayersAtRank8) {
  const LoraCount lora = count_lora(
      golden("Llama-2-7b"), {.rank = 8, .targets = {"q_proj", "k_proj", "v_proj", "o_proj"}});
  EXPECT_EQ(lora.parameters, 8'388'608);
  ASSERT_EQ(lora.targets.size(), 4U);
  EXPECT_EQ(lora.targets[0].name, "model.layers.{layer}.self_attn.q_proj");
  EXPECT_EQ(lora.targets[0].n_matrices, 32);
  EXPECT_EQ(lora.targets[0].parameters, 8 * (4096 + 4096) * 32);
}

TEST(CountLora, EveryMatrixOfTheLayersIsATargetByDefault) {
  // A layer's q, o 16, k, v 12, gate, up, down 14.
  const LoraCount lora = count_lora(read_json(tiny_llama), {.rank = 1});
  EXPECT_EQ(lora.targets.size(), 7U);
  EXPECT_EQ(lora.parameters, 2 * 98);
  EXPECT_DOUBLE_EQ(lora.share, 196.0 / 872.0);
  EXPECT_EQ(lora.weights_bytes, 392);
  EXPECT_EQ(lora.gradient_bytes, 392);
  EXPECT_EQ(lora.optimizer_bytes, 12 * 196);
}

TEST(CountLora, ARoleNamesItsMatrices) {
  const Architecture arch = read_json(tiny_llama);
  EXPECT_EQ(count_lora(arch, {.rank = 1, .targets = {"w_q", "w_v"}}).parameters, 2 * 28);
  EXPECT_EQ(count_lora(arch, {.rank = 1, .targets = {"lm_head"}}).parameters, 18);
  EXPECT_EQ(count_lora(arch, {.rank = 1, .targets = {"mlp.up_proj", "w_up"}}).parameters, 28);
}

TEST(CountLora, ExpertsCountEachAndTheRouterDoesNot) {
  const LoraCount lora = count_lora(golden("Mixtral-8x7B"), {.rank = 2});
  ASSERT_EQ(lora.targets.size(), 7U);
  EXPECT_EQ(lora.targets[4].n_matrices, 32 * 8);
  EXPECT_EQ(lora.targets[4].parameters, Index{2} * (4096 + 14'336) * 256);
  for (const LoraTarget& target : lora.targets) EXPECT_NE(target.role, Role::router);
}

TEST(CountLora, MatricesStoredInputFirstHaveTheirSidesRight) {
  const LoraCount gpt2 = count_lora(golden("gpt2"), {.rank = 1, .targets = {"c_attn"}});
  EXPECT_EQ(gpt2.targets[0].d_in, 768);
  EXPECT_EQ(gpt2.targets[0].d_out, 2304);
  const LoraCount oss = count_lora(golden("gpt-oss-20b"), {.rank = 1, .targets = {"w_gate_up"}});
  EXPECT_EQ(oss.targets[0].d_in, 2880);
  EXPECT_EQ(oss.targets[0].d_out, 5760);
  EXPECT_EQ(oss.targets[0].n_matrices, 24 * 32);
}

TEST(CountLora, ARankAboveATargetsSmallerSideIsAnErrorThatNamesIt) {
  const Architecture arch = read_json(tiny_llama);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { count_lora(arch, {.rank = 5}); }),
            "lora: rank is 5 and model.layers.{layer}.self_attn.k_proj has d_in 8 and d_out 4, but "
            "a rank is at most the smaller of the two\n"
            "  hint: a rank up to 4 fits it");
  EXPECT_EQ(count_lora(arch, {.rank = 5, .targets = {"q_proj"}}).parameters, 5 * 16 * 2);
}

TEST(CountLora, ATargetThatFitsNothingIsAnErrorThatListsTheMatrices) {
  EXPECT_EQ(thrown_by<ArgumentError>([] {
              count_lora(read_json(tiny_llama), {.rank = 1, .targets = {"q_proj", "query"}});
            }),
            "lora: the target is query, but no matrix of the model has that name or role\n"
            "  hint: its matrices end in q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
            "down_proj, lm_head");
}

TEST(CountLora, ARankBelowOneIsAnError) {
  EXPECT_EQ(thrown_by<ArgumentError>([] { count_lora(read_json(tiny_llama), {.rank = 0}); }),
            "lora: rank is 0, but must be at least 1");
}

TEST(CountLora, StandsInTheCountWhenARankIsGiven) {
  const Architecture arch = read_json(tiny_llama);
  EXPECT_FALSE(count(arch).lora.has_value());
  const Count counted = count(arch, {.lora_rank = 2, .lora_targets = {"q_proj"}});
  ASSERT_TRUE(counted.lora.has_value());
  EXPECT_EQ(counted.lora->rank, 2);
  EXPECT_EQ(counted.lora->parameters, 2 * 16 * 2);
}

}  // namespace
}  // namespace eckart

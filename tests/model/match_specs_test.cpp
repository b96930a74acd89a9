#include "eckart/model/match_specs.h"

#include <string_view>
#include <vector>

#include "tests/model/stored.h"
#include "tests/model/tiny_configs.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

SpecMatch match(std::string_view name) {
  const Architecture architecture = testing::architecture_of(testing::tiny_llama);
  return match_specs(architecture, std::vector<std::string_view>{name}).of.front();
}

TEST(MatchSpecs, TheNumbersOfANameAreItsLayer) {
  const SpecMatch found = match("model.layers.1.self_attn.q_proj.weight");
  EXPECT_GE(found.spec, 0);
  EXPECT_EQ(found.layer, 1);
  EXPECT_EQ(found.expert, -1);
  EXPECT_TRUE(found.is_in_table);
}

TEST(MatchSpecs, AMarkWhereANumberBelongsIsNoMatch) {
  EXPECT_EQ(match("model.layers.#.self_attn.q_proj.weight").spec, -1);
  EXPECT_EQ(match("model.layers.\xff.self_attn.q_proj.weight").spec, -1);
  EXPECT_EQ(match("model.layers.{layer}.self_attn.q_proj.weight").spec, -1);
}

}  // namespace
}  // namespace eckart

#include "eckart/model/name_pattern.h"

#include <string>

#include <gtest/gtest.h>

namespace eckart {
namespace {

TEST(MatchesPattern, StarsStandForAnyLettersAndQuestionMarksForOne) {
  EXPECT_TRUE(matches_pattern("layers.3.q_proj.weight", "*"));
  EXPECT_TRUE(matches_pattern("layers.3.q_proj.weight", "*q_proj*"));
  EXPECT_TRUE(matches_pattern("layers.3.q_proj.weight", "layers.?.*.weight"));
  EXPECT_TRUE(matches_pattern("layers.3.q_proj.weight", "layers.3.q_proj.weight"));
  EXPECT_TRUE(matches_pattern("aab", "*ab"));
  EXPECT_TRUE(matches_pattern("", "**"));
  EXPECT_FALSE(matches_pattern("layers.13.q_proj.weight", "layers.?.*"));
  EXPECT_FALSE(matches_pattern("layers.3.q_proj.weight", "q_proj"));
  EXPECT_FALSE(matches_pattern("", "?"));
  EXPECT_FALSE(matches_pattern("abc", ""));
  // Brackets are the name's own.
  EXPECT_TRUE(matches_pattern("qkv_proj.weight[q]", "*[q]"));
}

TEST(MatchesPattern, ManyStarsTakeNoMoreThanTheProductOfTheLengths) {
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "*a";
  EXPECT_FALSE(matches_pattern(std::string(2000, 'a'), pattern + "b"));
}

}  // namespace
}  // namespace eckart

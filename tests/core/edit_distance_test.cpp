#include "eckart/core/edit_distance.h"

#include <gtest/gtest.h>

namespace eckart {
namespace {

TEST(EditDistance, CountsTheFewestChanges) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("count", "count"), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("cuont", "count"), 2U);
  EXPECT_EQ(edit_distance("lora_rank", "lora-rank"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

}  // namespace
}  // namespace eckart

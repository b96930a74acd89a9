#include "eckart/model/name_positions.h"

#include <optional>
#include <vector>

#include "tests/model/stored.h"
#include <gtest/gtest.h>

namespace eckart::detail {
namespace {

using eckart::testing::stored;

std::vector<StoredTensor> named(std::initializer_list<const char*> names) {
  std::vector<StoredTensor> list;
  for (const char* name : names) list.push_back(stored(name, Dtype::f32, {1}));
  return list;
}

TEST(NamePositions, AreFoundInAnyOrderOfTheListAndOfTheQuestions) {
  const std::vector<StoredTensor> tensors = named({"h.10.w", "h.2.w", "a", "h.2.b"});
  const StoredList list = stored_list(tensors);
  NamePositions positions(list);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(positions.find("h.2.w"), 1U);
    EXPECT_EQ(positions.find("a"), 2U);
    EXPECT_EQ(positions.find("h.2.b"), 3U);
    EXPECT_EQ(positions.find("h.10.w"), 0U);
    EXPECT_EQ(positions.find("h.02.w"), std::nullopt);
    EXPECT_EQ(positions.find("z"), std::nullopt);
  }
}

TEST(NamePositions, OfEqualNamesTheFirstCounts) {
  const std::vector<StoredTensor> tensors = named({"a", "b", "b", "c"});
  const StoredList list = stored_list(tensors);
  NamePositions positions(list);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(positions.find("b"), 1U);
  EXPECT_EQ(positions.find("c"), 3U);
}

TEST(NamePositions, OfNothingFindNothing) {
  const StoredList none;
  EXPECT_EQ(NamePositions(none).find("a"), std::nullopt);
}

}  // namespace
}  // namespace eckart::detail

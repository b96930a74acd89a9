// Axes that no matrix has: a tensor without elements may have them, and its file is sound.
#include "eckart/model/logical_tensors.h"

#include <limits>

#include "tests/model/stored.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::stored;

constexpr Index huge = std::numeric_limits<Index>::max();

// Taken as it is stored, under its own name, or refused: nothing overflows on the way.
void expect_as_stored(const std::vector<StoredTensor>& list) {
  const std::vector<LogicalTensor> tensors = logical_tensors(stored_list(list));
  ASSERT_FALSE(tensors.empty());
  EXPECT_FALSE(tensors.front().is_quantized) << list.front().name;
  EXPECT_EQ(tensors.front().name, list.front().name);
  EXPECT_EQ(tensors.front().shape, list.front().shape);
  EXPECT_EQ(tensors.front().parameters, 0);
}

TEST(StorageSchemes, OverlongAxesOfCompressedTensors) {
  expect_as_stored({stored("a.weight_packed", Dtype::u8, {0, huge})});
  expect_as_stored({stored("a.weight_packed", Dtype::i32, {0, huge})});
}

TEST(StorageSchemes, OverlongAxesOfGptqAndAwq) {
  expect_as_stored(
      {stored("a.qweight", Dtype::i32, {0, huge}), stored("a.scales", Dtype::f16, {0, huge})});
  expect_as_stored(
      {stored("a.qweight", Dtype::i32, {huge, 0}), stored("a.scales", Dtype::f16, {0, 8})});
  expect_as_stored({stored("a.qweight", Dtype::i32, {0, 8}), stored("a.scales", Dtype::f16, {0, 8}),
                    stored("a.qzeros", Dtype::i32, {0, huge})});
}

TEST(StorageSchemes, OverlongAxesOfMxfp4) {
  expect_as_stored({stored("experts_blocks", Dtype::u8, {0, huge, 16}),
                    stored("experts_scales", Dtype::u8, {0, 1})});
  // Each axis is short enough, their product is not.
  expect_as_stored({stored("experts_blocks", Dtype::u8, {0, Index{1} << 40, Index{1} << 40}),
                    stored("experts_scales", Dtype::u8, {0, 1})});
  // Nothing times anything is nothing.
  const std::vector<StoredTensor> empty = {
      stored("experts_blocks", Dtype::u8, {Index{1} << 40, Index{1} << 40, 0}),
      stored("experts_scales", Dtype::u8, {0, 1})};
  EXPECT_EQ(logical_tensors(stored_list(empty)).front().shape, (Shape{Index{1} << 40, 0}));
}

TEST(StorageSchemes, OverlongAxesOfMlxAndOfNvfp4) {
  expect_as_stored(
      {stored("a.weight", Dtype::u32, {0, huge}), stored("a.scales", Dtype::f16, {0, huge})});
  expect_as_stored({stored("a.weight", Dtype::u8, {0, huge}),
                    stored("a.weight_scale", Dtype::f8_e4m3, {0, huge})});
}

TEST(StorageSchemes, OverlongAxesOfScaledMatrices) {
  expect_as_stored({stored("a.weight", Dtype::f8_e4m3, {0, huge}),
                    stored("a.weight_scale_inv", Dtype::f32, {2, 2})});
  expect_as_stored({stored("a.weight", Dtype::f8_e4m3, {0, 8}),
                    stored("a.weight_scale_inv", Dtype::f32, {0, huge})});
  expect_as_stored(
      {stored("a.weight", Dtype::u8, {0, huge}), stored("a.weight.absmax", Dtype::f32, {0})});
}

}  // namespace
}  // namespace eckart

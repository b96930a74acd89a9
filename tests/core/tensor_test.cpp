#include "eckart/core/tensor.h"

#include "eckart/core/errors.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

// The sanitizers end the program where a plain build is told that there is no memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif
#else
constexpr bool is_sanitized = false;
#endif

namespace eckart {
namespace {

using testing::has_elements;
using testing::thrown_by;

TEST(Tensor, ADefaultTensorIsEmpty) {
  const Tensor<float> tensor;
  EXPECT_EQ(tensor.shape(), Shape({0}));
  EXPECT_EQ(tensor.count(), 0);
}

TEST(Tensor, ANewTensorIsZero) {
  EXPECT_TRUE(has_elements(Tensor<double>(Shape{2, 2}).view(), {0, 0, 0, 0}));
  EXPECT_TRUE(has_elements(Tensor<int>(Shape{3}, 7).view(), {7, 7, 7}));
  EXPECT_TRUE(has_elements(Tensor<int>(Shape(), 7).view(), {7}));
}

TEST(Tensor, ElementsAreGivenInRowMajorOrder) {
  const Tensor<int> tensor(Shape{2, 3}, std::vector<int>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tensor(0, 2), 3);
  EXPECT_EQ(tensor(1, 0), 4);
  EXPECT_EQ(tensor.at(1, 2), 6);
}

TEST(Tensor, TheWrongNumberOfElementsIsAnError) {
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Tensor<int>(Shape({2, 3}, {"a", "b"}), std::vector<int>{1, 2});
            }),
            "tensor: 2 elements for 2x3 (a, b), which has 6");
}

TEST(Tensor, VectorsAndMatricesAreWrittenAsTheyLook) {
  EXPECT_EQ(Tensor<float>::vector({1, 2, 3}).shape(), Shape({3}));
  EXPECT_EQ(Tensor<float>::vector({}).shape(), Shape({0}));
  const auto matrix = Tensor<float>::matrix({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_EQ(matrix.shape(), Shape({3, 2}));
  EXPECT_EQ(matrix(2, 0), 5);
  EXPECT_EQ(Tensor<float>::matrix({}).shape(), Shape({0, 0}));
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Tensor<float>::matrix({{1, 2}, {3}});
            }),
            "matrix: a row of 1 elements after rows of 2");
}

TEST(Tensor, DataBeginsAtACacheLine) {
  for (const Index n : {0, 1, 3, 17, 1000}) {
    const Tensor<std::uint8_t> tensor(Shape{n});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0u) << n;
    EXPECT_NE(tensor.data(), nullptr) << n;
  }
}

TEST(Tensor, ACopyIsItsOwn) {
  auto original = Tensor<int>(Shape({2}, {"x"}), std::vector<int>{1, 2});
  Tensor<int> copy = original;
  copy(0) = 9;
  EXPECT_TRUE(has_elements(original.view(), {1, 2}));
  EXPECT_TRUE(has_elements(copy.view(), {9, 2}));
  EXPECT_EQ(copy.shape(), original.shape());
  original = copy;
  copy(1) = 8;
  EXPECT_TRUE(has_elements(original.view(), {9, 2}));
}

TEST(Tensor, MovingTakesTheElementsAndLeavesNothing) {
  auto from = Tensor<int>::matrix({{1, 2}, {3, 4}});
  const int* const elements = from.data();
  Tensor<int> to = std::move(from);
  EXPECT_EQ(to.data(), elements);
  EXPECT_EQ(to.shape(), Shape({2, 2}));
  EXPECT_EQ(from.shape(), Shape({0}));  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(from.view().count(), 0);
  Tensor<int> assigned;
  assigned = std::move(to);
  EXPECT_EQ(assigned.data(), elements);
  EXPECT_EQ(to.count(), 0);  // NOLINT(bugprone-use-after-move)
  // What was moved from can be copied and given a new value.
  const Tensor<int> copy = to;
  EXPECT_EQ(copy.count(), 0);
  to = Tensor<int>::vector({5});
  EXPECT_TRUE(has_elements(to.view(), {5}));
}

TEST(Tensor, WhatWasMovedFromIsEmptyWhateverIsDoneWithIt) {
  auto from = Tensor<int>::matrix({{1, 2}, {3, 4}}).named({"row", "column"});
  const Tensor<int> to = std::move(from);
  // NOLINTBEGIN(bugprone-use-after-move)
  EXPECT_EQ(from.shape(), Shape{0});
  EXPECT_EQ(from.rank(), 1);
  EXPECT_EQ(from.size(0), 0);
  EXPECT_EQ(from.view().count(), 0);
  EXPECT_EQ(from.named({"token"}).shape(), Shape({0}, {"token"}));
  EXPECT_EQ(std::move(from).reshaped({0, 3}).shape(), Shape({0, 3}));
  EXPECT_THROW(from.at(0), ShapeError);
  // NOLINTEND(bugprone-use-after-move)

  Tensor<int> scalar(Shape{}, 7);
  const Tensor<int> taken = std::move(scalar);
  EXPECT_EQ(taken.shape(), Shape{});
  EXPECT_EQ(taken(), 7);
  EXPECT_EQ(scalar.count(), 0);  // NOLINT(bugprone-use-after-move)
}

TEST(Tensor, AssigningToItselfChangesNothing) {
  auto tensor = Tensor<int>::matrix({{1, 2}, {3, 4}});
  Tensor<int>& same = tensor;
  tensor = same;
  EXPECT_TRUE(has_elements(tensor.view(), {1, 2, 3, 4}));
  tensor = std::move(same);
  EXPECT_EQ(tensor.shape(), Shape({2, 2}));
  EXPECT_TRUE(has_elements(tensor.view(), {1, 2, 3, 4}));
}

TEST(Tensor, AViewIsCopiedInRowMajorOrderWithItsNames) {
  const auto matrix = Tensor<int>::matrix({{1, 2, 3}, {4, 5, 6}}).named({"row", "column"});
  const Tensor<int> transposed(matrix.view().transpose());
  EXPECT_EQ(to_string(transposed.shape()), "3x2 (column, row)");
  EXPECT_TRUE(transposed.view().is_row_major());
  EXPECT_TRUE(has_elements(transposed.view(), {1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(has_elements(Tensor<int>(matrix.view().slice(1, {.step = 2})).view(), {1, 3, 4, 6}));
  EXPECT_TRUE(has_elements(Tensor<int>(matrix.view().select(0, 1).broadcast_to({2, 3})).view(),
                           {4, 5, 6, 4, 5, 6}));
}

TEST(Tensor, AViewOfATensorWritesIt) {
  Tensor<int> tensor(Shape{2, 2});
  tensor.view().transpose()(1, 0) = 3;
  tensor(1, 0) = 4;
  tensor.at(1, 1) = 5;
  EXPECT_TRUE(has_elements(tensor.view(), {0, 3, 4, 5}));
}

TEST(Tensor, AtChecksThePosition) {
  const Tensor<int> tensor(Shape{2, 2});
  EXPECT_EQ(thrown_by<ShapeError>([&] { tensor.at(0, 2); }), "at: position (0, 2) is outside 2x2");
  EXPECT_THROW(tensor.at(0), ShapeError);
}

TEST(Tensor, NamesAreGivenToACopyOrToAMovedTensor) {
  auto tensor = Tensor<int>::vector({1, 2});
  const auto named = tensor.named({"token"});
  EXPECT_EQ(to_string(named.shape()), "2 (token)");
  EXPECT_FALSE(tensor.shape().has_names());
  EXPECT_NE(named.data(), tensor.data());
  const int* const elements = tensor.data();
  const auto moved = std::move(tensor).named({"token"});
  EXPECT_EQ(moved.data(), elements);
  EXPECT_EQ(moved.size("token"), 2);
  EXPECT_THROW(moved.named({"a", "b"}), ShapeError);
}

TEST(Tensor, ReshapingKeepsTheElements) {
  auto tensor = Tensor<int>::matrix({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(tensor.reshaped({3, 2})(2, 0), 5);
  EXPECT_EQ(tensor.shape(), Shape({2, 3}));
  EXPECT_EQ(thrown_by<ShapeError>([&] { tensor.reshaped({4}); }),
            "reshape: 2x3 has 6 elements, but 4 has 4");
  const int* const elements = tensor.data();
  const auto flat = std::move(tensor).reshaped({6});
  EXPECT_EQ(flat.data(), elements);
  EXPECT_TRUE(has_elements(flat.view(), {1, 2, 3, 4, 5, 6}));
}

TEST(Tensor, AFailedReshapeOfAMovedTensorLosesNothing) {
  auto tensor = Tensor<int>::vector({1, 2});
  EXPECT_THROW(std::move(tensor).reshaped({3}), ShapeError);
  EXPECT_TRUE(has_elements(tensor.view(), {1, 2}));  // NOLINT(bugprone-use-after-move)
}

TEST(Tensor, MoreBytesThanAnAddressHoldsAreAnError) {
  EXPECT_EQ(thrown_by<ShapeError>(
                [] { Tensor<double>::uninitialized(Shape({Index{1} << 61}, {"token"})); }),
            "tensor: 2305843009213693952 (token) of 8-byte elements takes 18.4 EB, "
            "which this machine can't give");
}

TEST(Tensor, MoreMemoryThanThereIsIsAnError) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer's allocator ends the program here";
  // 2^47 bytes: the whole address space of a process.
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Tensor<float>::uninitialized(Shape{Index{1} << 22, Index{1} << 23});
            }),
            "tensor: 4194304x8388608 of 4-byte elements takes 140.7 TB, which this machine "
            "can't give");
}

}  // namespace
}  // namespace eckart

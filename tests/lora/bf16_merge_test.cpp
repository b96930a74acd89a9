#include "eckart/lora/bf16_merge.h"

#include "eckart/io/narrow.h"
#include "eckart/io/widen.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tests/random_tensor.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::random_matrix;

std::vector<std::byte> as_bf16(const Tensor<float>& values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(2 * values.count()));
  narrow(Dtype::bf16, {values.data(), static_cast<std::size_t>(values.count())}, bytes);
  return bytes;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / 2);
  widen<float>(Dtype::bf16, bytes, values);
  return values;
}

// Integers: every sum in float is exact, in any order.
Tensor<float> integers(Index rows, Index columns, std::uint64_t seed) {
  Tensor<float> values = random_matrix<float>(rows, columns, seed);
  for (Index i = 0; i < values.count(); ++i) {
    values.data()[i] = std::round(4 * values.data()[i]);
  }
  return values;
}

TEST(Bf16Merge, IsTheRoundedSumWhateverTheShape) {
  for (const auto& [rows, columns] :
       {std::pair<Index, Index>{1, 1}, {1, 40}, {7, 1}, {6, 32}, {13, 333}, {5, 1500}, {3, 1024}}) {
    for (const Index rank : {1, 3, 16, 70}) {
      SCOPED_TRACE(::testing::Message() << rows << "x" << columns << " rank " << rank);
      const Tensor<float> left = integers(rows, rank, 1), right_t = integers(columns, rank, 2);
      const std::vector<std::byte> base = as_bf16(integers(rows, columns, 3));
      std::vector<std::byte> out(base.size()), expected(base.size());
      const DeltaStatistics found = Bf16Merge(left, right_t).run(0, rows, base, out);
      const std::vector<float> w = floats_of(base);
      std::vector<float> delta(w.size()), sum(w.size());
      for (Index i = 0; i < rows * columns; ++i) {
        const auto at = static_cast<std::size_t>(i);
        for (Index k = 0; k < rank; ++k) {
          delta[at] += left(i / columns, k) * right_t(i % columns, k);
        }
        sum[at] = w[at] + delta[at];
      }
      narrow(Dtype::bf16, sum, expected);
      EXPECT_EQ(out, expected);
      const DeltaStatistics wanted =
          delta_statistics(rows * columns, w.data(), delta.data(), floats_of(expected).data());
      EXPECT_EQ(found.n_wanted, wanted.n_wanted);
      EXPECT_EQ(found.n_unchanged, wanted.n_unchanged);
      // The bound that the header states.
      EXPECT_NEAR(found.base_squares, wanted.base_squares, 0x1p-16 * wanted.base_squares);
      EXPECT_NEAR(found.wanted_squares, wanted.wanted_squares, 0x1p-16 * wanted.wanted_squares);
      EXPECT_NEAR(found.error_squares, wanted.error_squares, 0x1p-16 * wanted.error_squares);
    }
  }
}

TEST(Bf16Merge, TakesTheRowsThatItIsAskedFor) {
  const Tensor<float> left = integers(20, 2, 1), right_t = integers(9, 2, 2);
  const std::vector<std::byte> base = as_bf16(integers(20, 9, 3));
  std::vector<std::byte> whole(base.size()), part(base.size());
  const Bf16Merge merge(left, right_t);
  merge.run(0, 20, base, whole);
  for (const auto& [first, n] : {std::pair<Index, Index>{0, 8}, {8, 1}, {9, 11}}) {
    const auto begin = static_cast<std::size_t>(18 * first),
               size = static_cast<std::size_t>(18 * n);
    merge.run(first, n, std::span(base).subspan(begin, size), std::span(part).subspan(begin, size));
  }
  EXPECT_EQ(part, whole);
}

TEST(Bf16Merge, MeasuresNumbersWhoseSquaresNoFloatHolds) {
  for (const float size : {0x1p-70f, 0x1p70f}) {
    const Tensor<float> left = Tensor<float>::matrix({{size}, {0}});
    const Tensor<float> right_t = Tensor<float>::matrix({{1}, {2}});
    const std::vector<std::byte> base = as_bf16(Tensor<float>::matrix({{0, size}, {size, 0}}));
    std::vector<std::byte> out(base.size());
    const DeltaStatistics found = Bf16Merge(left, right_t).run(0, 2, base, out);
    EXPECT_EQ(floats_of(out), (std::vector<float>{size, 3 * size, size, 0}));
    const double square = std::pow(static_cast<double>(size), 2);
    EXPECT_EQ(found.base_squares, 2 * square);
    EXPECT_EQ(found.wanted_squares, 5 * square);
    EXPECT_EQ(found.error_squares, 0);
    EXPECT_EQ(found.n_wanted, 2);
  }
}

TEST(Bf16Merge, WhatIsNotFiniteShows) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity, 0x1.FEp127f}) {
    Tensor<float> w = integers(4, 40, 1);
    w(2, 39) = bad;
    // The largest number of BF16 and as much again.
    const Tensor<float> left({4, 1}, 1.0f), right_t({40, 1}, 0x1p126f);
    const std::vector<std::byte> base = as_bf16(w);
    std::vector<std::byte> out(base.size());
    EXPECT_FALSE(std::isfinite(Bf16Merge(left, right_t).run(0, 4, base, out).error_squares));
  }
}

}  // namespace
}  // namespace eckart

#include "eckart/lora/delta_statistics.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace eckart {
namespace {

TEST(DeltaStatistics, AreTheSumsOfEveryEntryWhateverTheLength) {
  for (Index n = 0; n < 40; ++n) {
    std::vector<float> base, delta, realised;
    DeltaStatistics expected;
    for (Index i = 0; i < n; ++i) {
      // Small integers: every sum is exact. Every fifth delta is 0, every third is swallowed.
      base.push_back(static_cast<float>(i));
      delta.push_back(static_cast<float>(i % 5));
      realised.push_back(i % 3 == 0 ? base.back() : base.back() + delta.back() + 1);
      const double wanted = static_cast<double>(i % 5);
      const double error = (i % 3 == 0 ? 0.0 : wanted + 1) - wanted;
      expected.add({static_cast<double>(i * i), wanted * wanted, error * error, i % 5 != 0 ? 1 : 0,
                    i % 5 != 0 && i % 3 == 0 ? 1 : 0});
    }
    const DeltaStatistics found = delta_statistics(n, base.data(), delta.data(), realised.data());
    EXPECT_EQ(found.base_squares, expected.base_squares) << n;
    EXPECT_EQ(found.wanted_squares, expected.wanted_squares) << n;
    EXPECT_EQ(found.error_squares, expected.error_squares) << n;
    EXPECT_EQ(found.n_wanted, expected.n_wanted) << n;
    EXPECT_EQ(found.n_unchanged, expected.n_unchanged) << n;
  }
}

TEST(DeltaStatistics, ATinyDeltaIsNotLost) {
  const float tiny = 1e-30f;  // its square is no float
  const float base = 1, realised = 1;
  const DeltaStatistics found = delta_statistics(1, &base, &tiny, &realised);
  EXPECT_EQ(found.n_unchanged, 1);
  EXPECT_DOUBLE_EQ(found.swallowed(), 1);
  EXPECT_DOUBLE_EQ(found.delta_norm(), static_cast<double>(tiny));
}

TEST(DeltaStatistics, WhatIsNotFiniteShows) {
  std::vector<float> base(20, 1), delta(20, 0), realised(20, 1);
  for (const std::size_t at : {std::size_t{3}, std::size_t{19}}) {
    realised[at] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(
        delta_statistics(20, base.data(), delta.data(), realised.data()).error_squares));
    realised[at] = 1;
  }
}

TEST(DeltaStatistics, OfNothingAreZero) {
  const DeltaStatistics none;
  EXPECT_EQ(none.swallowed(), 0);
  EXPECT_EQ(none.unchanged_share(), 0);
  EXPECT_EQ(none.relative_norm(), 0);
}

}  // namespace
}  // namespace eckart

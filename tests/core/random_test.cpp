#include "eckart/core/random.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

constexpr std::uint64_t all_ones = ~std::uint64_t{0};

class Random : public ::testing::Test {
 protected:
  ~Random() override { set_thread_count(0); }
};

// The known answers that the authors of Philox publish with it (Random123, kat_vectors).
TEST_F(Random, PhiloxGivesItsKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The same answers through position (low half of the counter), stream (high half) and seed (key).
TEST_F(Random, BitsAreTheFirstHalfOfTheBlock) {
  EXPECT_EQ(RandomStream(0).bits(0), 0xe169c58d6627e8d5);
  EXPECT_EQ(RandomStream(all_ones, all_ones).bits(all_ones), 0x41c83b0e408f276d);
  EXPECT_EQ(RandomStream(0x299f31d0a4093822, 0x0370734413198a2e).bits(0x85a308d3243f6a88),
            0x94fdccebd16cfe09);
}

TEST_F(Random, ANumberIsTheSameHoweverItIsReached) {
  constexpr std::size_t n = 50'000;  // four pieces
  const RandomStream random(42, 7);
  std::vector<std::vector<double>> filled;
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    std::vector<double> normals(n);
    random.fill_normal<double>(normals);
    filled.push_back(normals);
  }
  EXPECT_EQ(filled[0], filled[1]);
  EXPECT_EQ(filled[0], filled[2]);
  EXPECT_EQ(filled[0][49'999], random.normal(49'999));
  std::vector<double> tail(10);
  random.fill_normal<double>(tail, n - 10);
  EXPECT_EQ(tail, std::vector<double>(filled[0].end() - 10, filled[0].end()));
}

TEST_F(Random, FloatsAreTheDoublesRounded) {
  const RandomStream random(3);
  std::vector<float> normals(100), uniforms(100);
  random.fill_normal<float>(normals, 1000);
  random.fill_uniform<float>(uniforms, 1000);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(normals[i], static_cast<float>(random.normal(1000 + i)));
    EXPECT_EQ(uniforms[i], static_cast<float>(random.uniform(1000 + i)));
  }
}

TEST_F(Random, SeedsAndStreamsDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t stream = 0; stream < 10; ++stream) {
      for (std::uint64_t position = 0; position < 10; ++position) {
        seen.insert(RandomStream(seed, stream).bits(position));
      }
    }
  }
  // Among 1000 numbers of 64 bits a chance repetition has the probability 3e-14.
  EXPECT_EQ(seen.size(), 1000u);
}

TEST_F(Random, SeedAndStreamUseAllTheirBits) {
  const std::uint64_t base = RandomStream(0, 0).bits(0);
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    EXPECT_NE(RandomStream(one, 0).bits(0), base) << bit;
    EXPECT_NE(RandomStream(0, one).bits(0), base) << bit;
    EXPECT_NE(RandomStream(0, 0).bits(one), base) << bit;
  }
}

// Undoes the ten rounds, so that a test can ask for the output it wants.
Counter inverse_philox(Counter out, Key key) {
  const auto inverse_of = [](std::uint32_t odd) {
    std::uint32_t inverse = odd;  // right in 3 bits; each step doubles them
    for (int step = 0; step < 4; ++step) inverse *= 2 - odd * inverse;
    return inverse;
  };
  const std::uint64_t m0 = 0xD2511F53, m1 = 0xCD9E8D57;
  for (std::uint32_t round = 10; round-- > 0;) {
    const std::uint32_t k0 = key[0] + round * 0x9E3779B9;
    const std::uint32_t k1 = key[1] + round * 0xBB67AE85;
    const std::uint32_t c0 = out[3] * inverse_of(static_cast<std::uint32_t>(m0));
    const std::uint32_t c2 = out[1] * inverse_of(static_cast<std::uint32_t>(m1));
    const auto high0 = static_cast<std::uint32_t>(m0 * c0 >> 32);
    const auto high1 = static_cast<std::uint32_t>(m1 * c2 >> 32);
    out = {c0, out[0] ^ high1 ^ k0, c2, out[2] ^ high0 ^ k1};
  }
  return out;
}

std::uint64_t pair(std::uint32_t lower, std::uint32_t upper) {
  return static_cast<std::uint64_t>(upper) << 32 | lower;
}

// Where seed 0 draws these 128 bits.
struct Place {
  std::uint64_t stream;
  std::uint64_t position;
};

Place place_of(const Counter& output) {
  const Counter counter = inverse_philox(output, {0, 0});
  EXPECT_EQ(philox4x32(counter, {0, 0}), output);
  return {pair(counter[2], counter[3]), pair(counter[0], counter[1])};
}

TEST_F(Random, TheLargestUniformIsBelowOneInEitherType) {
  const Place place = place_of({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff});
  const RandomStream random(0, place.stream);
  EXPECT_EQ(random.bits(place.position), all_ones);
  EXPECT_EQ(random.uniform(place.position), 1 - 0x1.0p-53);
  std::array<float, 1> narrow{};
  random.fill_uniform<float>(narrow, place.position);
  EXPECT_EQ(narrow[0], std::nextafter(1.0f, 0.0f));
  std::array<double, 1> wide{};
  random.fill_uniform<double>(wide, place.position);
  EXPECT_EQ(wide[0], 1 - 0x1.0p-53);
}

TEST_F(Random, TheLargestNormalIsFinite) {
  // The radius' uniform is the largest, the angle 0: sqrt(-2 ln 2^-53).
  const Place place = place_of({0xffffffff, 0xffffffff, 0, 0});
  EXPECT_NEAR(RandomStream(0, place.stream).normal(place.position),
              std::sqrt(2 * 53 * std::log(2.0)), 1e-14);
  // The smallest uniform gives the radius 0.
  const Place zero = place_of({0, 0, 0, 0});
  EXPECT_EQ(RandomStream(0, zero.stream).uniform(zero.position), 0);
  EXPECT_EQ(RandomStream(0, zero.stream).normal(zero.position), 0);
}

// The mean of x^power over the standard normal or, at uniform = true, over [0, 1).
double mean_of_powers(const std::vector<double>& values, int power) {
  double sum = 0;
  for (const double value : values) sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

// A mean of n terms of variance v strays from its expectation by 5 sqrt(v / n) once in 1.7 million
// seeds; the seed here is fixed.
double five_sigma(double variance, std::size_t n) {
  return 5 * std::sqrt(variance / static_cast<double>(n));
}

TEST_F(Random, UniformsHaveTheMomentsOfTheUniform) {
  constexpr std::size_t n = 200'000;
  std::vector<double> values(n);
  RandomStream(2024).fill_uniform<double>(values);
  for (int k = 1; k <= 4; ++k) {
    const double mean = 1.0 / (k + 1);
    EXPECT_NEAR(mean_of_powers(values, k), mean, five_sigma(1.0 / (2 * k + 1) - mean * mean, n))
        << "power " << k;
  }
}

TEST_F(Random, NormalsHaveTheMomentsOfTheNormal) {
  constexpr std::size_t n = 200'000;
  std::vector<double> values(n);
  RandomStream(2024).fill_normal<double>(values);
  const std::array<double, 9> moments = {1, 0, 1, 0, 3, 0, 15, 0, 105};
  for (std::size_t k = 1; k <= 4; ++k) {
    EXPECT_NEAR(mean_of_powers(values, static_cast<int>(k)), moments[k],
                five_sigma(moments[2 * k] - moments[k] * moments[k], n))
        << "power " << k;
  }
}

// Of `k` equally likely cells: the sum has the mean k - 1 and the variance 2 (k - 1).
void expect_even(const std::vector<std::uint64_t>& counts) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    chi_square += off * off / expected;
  }
  const double freedom = static_cast<double>(counts.size()) - 1;
  // Too even is as wrong as too uneven.
  EXPECT_NEAR(chi_square, freedom, 5 * std::sqrt(2 * freedom));
}

TEST_F(Random, UniformsFillEveryCellEvenly) {
  const RandomStream random(11);
  std::vector<std::uint64_t> low(256, 0), high(256, 0);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t scaled = static_cast<std::uint64_t>(random.uniform(i) * 0x1.0p53);
    ++high[scaled >> 45];
    ++low[scaled & 0xff];
  }
  expect_even(high);
  expect_even(low);
}

TEST_F(Random, PairsOfNeighboursFillEveryCellEvenly) {
  std::vector<std::uint64_t> positions(256, 0), streams(256, 0), seeds(256, 0);
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    const std::uint64_t own = RandomStream(i).bits(i) >> 60;
    ++positions[own * 16 + (RandomStream(i).bits(i + 1) >> 60)];
    ++streams[own * 16 + (RandomStream(i, 1).bits(i) >> 60)];
    ++seeds[own * 16 + (RandomStream(i + 1).bits(i) >> 60)];
  }
  expect_even(positions);
  expect_even(streams);
  expect_even(seeds);
}

TEST_F(Random, NormalsFillTheQuartilesEvenly) {
  const RandomStream random(5);
  constexpr double quartile = 0.6744897501960817;
  std::vector<std::uint64_t> counts(4, 0);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double x = random.normal(i);
    ++counts[x < -quartile ? 0 : x < 0 ? 1 : x < quartile ? 2 : 3];
  }
  expect_even(counts);
}

TEST_F(Random, IntegersBelowABoundAreEven) {
  const RandomStream random(9);
  for (const std::uint64_t bound : {2u, 3u, 7u, 100u}) {
    std::vector<std::uint64_t> counts(bound, 0);
    for (std::uint64_t i = 0; i < 50'000; ++i) {
      const std::uint64_t drawn = random.below(i, bound);
      ASSERT_LT(drawn, bound);
      ++counts[drawn];
    }
    expect_even(counts);
  }
}

// Two thirds of 2^64: without drawing again the even numbers come twice as often as the odd ones.
TEST_F(Random, AnAwkwardBoundIsEvenToo) {
  const RandomStream random(10);
  constexpr std::uint64_t bound = 0xaaaaaaaaaaaaaaab;
  std::vector<std::uint64_t> parity(2, 0), half(2, 0);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t drawn = random.below(i, bound);
    ASSERT_LT(drawn, bound);
    ++parity[drawn % 2];
    ++half[drawn < bound / 2 ? 0 : 1];
  }
  EXPECT_NEAR(static_cast<double>(parity[0]), 10'000, 5 * std::sqrt(5000.0));
  EXPECT_NEAR(static_cast<double>(half[0]), 10'000, 5 * std::sqrt(5000.0));
}

TEST_F(Random, TheSmallestAndTheLargestBoundWork) {
  const RandomStream random(1);
  EXPECT_EQ(random.below(12, 1), 0u);
  EXPECT_LT(random.below(12, all_ones), all_ones);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { random.below(0, 0); }),
            "below: the bound is 0, but no integer lies in [0, 0)");
}

TEST_F(Random, FillingNothingIsNothing) {
  RandomStream(1).fill_normal<float>(std::span<float>());
  RandomStream(1).fill_uniform<double>(std::span<double>());
}

}  // namespace
}  // namespace eckart

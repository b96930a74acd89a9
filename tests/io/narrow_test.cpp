#include "eckart/io/narrow.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/widen.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/thrown.h"
#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace eckart {
namespace {

using testing::thrown_by;

constexpr float infinity = std::numeric_limits<float>::infinity();
const std::vector<Dtype> small_dtypes = {Dtype::f16, Dtype::bf16, Dtype::f8_e4m3, Dtype::f8_e5m2};

std::size_t element_of(Dtype dtype) { return static_cast<std::size_t>(bits(dtype)) / 8; }

std::vector<std::uint32_t> narrowed(Dtype dtype, const std::vector<float>& values) {
  const std::size_t element = element_of(dtype);
  std::vector<std::byte> out(values.size() * element + 1);  // from an odd address
  narrow(dtype, values, std::span(out).subspan(1));
  std::vector<std::uint32_t> patterns(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::memcpy(&patterns[i], out.data() + 1 + i * element, element);
  }
  return patterns;
}

// The values of all patterns without the sign, up to the first that is no finite number.
std::vector<float> magnitudes_of(Dtype dtype) {
  std::vector<float> values;
  for (std::uint32_t pattern = 0;; ++pattern) {
    float value = 0;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&pattern);
    widen<float>(dtype, {bytes, element_of(dtype)}, {&value, 1});
    if (!std::isfinite(value)) return values;
    values.push_back(value);
  }
}

// What rounding must find: a value, and the pattern of the nearest one.
struct Case {
  float value;
  std::uint32_t pattern;
};

// Every number of the format, every middle between two neighbours (which is a float), and the
// floats on both sides of each middle.
std::vector<Case> every_boundary(Dtype dtype) {
  const std::vector<float> values = magnitudes_of(dtype);
  const auto sign = static_cast<std::uint32_t>(1u << (bits(dtype) - 1));
  std::vector<Case> cases;
  const auto add = [&](float value, std::uint32_t pattern) {
    cases.push_back({value, pattern});
    cases.push_back({-value, pattern | sign});
  };
  const auto n = static_cast<std::uint32_t>(values.size());
  for (std::uint32_t i = 0; i < n; ++i) {
    // Beyond the largest number the next one would be where its exponent grows or its place counts.
    const double here = static_cast<double>(values[i]);
    const double next = i + 1 < n ? static_cast<double>(values[i + 1])
                                  : 2 * here - static_cast<double>(values[i - 1]);
    const auto middle = static_cast<float>((here + next) / 2);
    add(values[i], i);
    if (std::isinf(middle)) continue;
    add(middle, i % 2 == 0 ? i : i + 1);
    add(std::nextafter(middle, 0.0f), i);
    add(std::nextafter(middle, infinity), i + 1);
  }
  return cases;
}

class Narrow : public ::testing::Test {
 protected:
  ~Narrow() override { hwy::SetSupportedTargetsForTest(0); }

  template <class Body>
  static void for_each_set(const Body& body) {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      hwy::SetSupportedTargetsForTest(target);
      body();
    }
  }
};

TEST_F(Narrow, EveryNumberAndEveryMiddleGoesToTheNearestAndTiesToEven) {
  for (const Dtype dtype : small_dtypes) {
    const std::vector<Case> cases = every_boundary(dtype);
    ASSERT_GT(cases.size(), 4u * 120);
    std::vector<float> values;
    for (const Case& one : cases) values.push_back(one.value);
    for_each_set([&] {
      const std::vector<std::uint32_t> patterns = narrowed(dtype, values);
      for (std::size_t i = 0; i < cases.size(); ++i) {
        ASSERT_EQ(patterns[i], cases[i].pattern) << to_string(dtype) << " of " << cases[i].value;
      }
    });
  }
}

TEST_F(Narrow, WhatIsTooLargeIsInfinityAndNanStaysNan) {
  const float largest = std::numeric_limits<float>::max();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float signalling = std::bit_cast<float>(0x7f800001u);
  const std::vector<float> values = {largest, -largest, infinity, -infinity, nan, -nan, signalling};
  using Patterns = std::vector<std::uint32_t>;
  for_each_set([&] {
    EXPECT_EQ(narrowed(Dtype::f16, values),
              (Patterns{0x7c00, 0xfc00, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7e00}));
    EXPECT_EQ(narrowed(Dtype::bf16, values),
              (Patterns{0x7f80, 0xff80, 0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7fc0}));
    EXPECT_EQ(narrowed(Dtype::f8_e5m2, values),
              (Patterns{0x7c, 0xfc, 0x7c, 0xfc, 0x7e, 0xfe, 0x7e}));
    EXPECT_EQ(narrowed(Dtype::f8_e4m3, values),  // it has no infinity
              (Patterns{0x7f, 0xff, 0x7f, 0xff, 0x7f, 0xff, 0x7f}));
  });
}

// Published figures, so that the walk over neighbours is checked too.
TEST_F(Narrow, KnownValuesHaveTheirPatterns) {
  EXPECT_EQ(narrowed(Dtype::f16, {65504, 65519, 65520, 0x1.0p-24f, 0x1.0p-25f}),
            (std::vector<std::uint32_t>{0x7bff, 0x7bff, 0x7c00, 1, 0}));
  EXPECT_EQ(narrowed(Dtype::bf16, {1.0f, 3.140625f, 1 + 0x1.0p-8f, 1 + 0x1.8p-7f}),
            (std::vector<std::uint32_t>{0x3f80, 0x4049, 0x3f80, 0x3f82}));
  EXPECT_EQ(narrowed(Dtype::f8_e4m3, {448, 464, 465, 0x1.0p-9f, 0x1.0p-10f}),
            (std::vector<std::uint32_t>{0x7e, 0x7e, 0x7f, 1, 0}));
  EXPECT_EQ(narrowed(Dtype::f8_e5m2, {57344, 61439, 61440, -0.0f}),
            (std::vector<std::uint32_t>{0x7b, 0x7b, 0x7c, 0x80}));
}

TEST_F(Narrow, EveryLengthWritesItsElementsAndNoOthers) {
  for_each_set([] {
    for (const Dtype dtype : small_dtypes) {
      const std::size_t element = element_of(dtype);
      for (std::size_t n = 0; n <= 67; ++n) {
        const std::vector<float> ones(n, 1.0f);
        std::vector<std::byte> out((n + 2) * element, std::byte{0xaa});
        narrow(dtype, ones, std::span(out).subspan(element, n * element));
        for (std::size_t i = 0; i < out.size(); ++i) {
          const bool is_inside = i >= element && i < (n + 1) * element;
          ASSERT_EQ(out[i] != std::byte{0xaa}, is_inside) << to_string(dtype) << " of length " << n;
        }
      }
    }
  });
}

TEST_F(Narrow, F32IsCopiedToTheBitAndThreadsChangeNothing) {
  std::vector<float> values(600'001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  std::vector<std::byte> copied(values.size() * 4);
  narrow(Dtype::f32, values, copied);
  EXPECT_EQ(std::memcmp(copied.data(), values.data(), copied.size()), 0);
  set_thread_count(1);
  const std::vector<std::uint32_t> one = narrowed(Dtype::bf16, values);
  set_thread_count(3);
  const std::vector<std::uint32_t> three = narrowed(Dtype::bf16, values);
  set_thread_count(0);
  EXPECT_EQ(one, three);
}

TEST_F(Narrow, RefusesOtherDtypesAndSizes) {
  std::vector<std::byte> out(3);
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              narrow(Dtype::i8, std::vector<float>{1, 2, 3}, out);
            }),
            "narrow: I8 is asked for, but only F32 F16 BF16 F8_E4M3 F8_E5M2 are written");
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              narrow(Dtype::bf16, std::vector<float>{1, 2}, out);
            }),
            "narrow: 3 bytes for 2 elements of BF16, but each takes 2");
  EXPECT_FALSE(is_narrowable(Dtype::f64));
  EXPECT_TRUE(is_narrowable(Dtype::f32));
}

}  // namespace
}  // namespace eckart

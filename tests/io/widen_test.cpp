#include "eckart/io/widen.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/highway.h>

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace eckart {
namespace {

enum class Marks { ieee, fn, fnuz, power };

// A format as its definition has it: sign, exponent, mantissa.
struct Format {
  Dtype dtype;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Marks marks;

  std::size_t bytes() const { return static_cast<std::size_t>(bits(dtype)) / 8; }
  std::uint32_t n_patterns() const { return 1u << bits(dtype); }
};

// OCP's 8-bit formats (E4M3 has no infinity), the FNUZ variants, and the scale E8M0.
const std::vector<Format> formats = {
    {Dtype::f16, 5, 10, 15, Marks::ieee},       {Dtype::bf16, 8, 7, 127, Marks::ieee},
    {Dtype::f8_e4m3, 4, 3, 7, Marks::fn},       {Dtype::f8_e5m2, 5, 2, 15, Marks::ieee},
    {Dtype::f8_e4m3fnuz, 4, 3, 8, Marks::fnuz}, {Dtype::f8_e5m2fnuz, 5, 2, 16, Marks::fnuz},
    {Dtype::f8_e8m0, 8, 0, 127, Marks::power},
};

bool is_negative(const Format& format, std::uint32_t pattern) {
  return format.marks != Marks::power && (pattern >> (bits(format.dtype) - 1)) != 0;
}

// The value by its definition, in powers of two.
double value_of(const Format& format, std::uint32_t pattern) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (format.marks == Marks::power) {
    return pattern == 255 ? nan : std::ldexp(1.0, static_cast<int>(pattern) - 127);
  }
  const double sign = is_negative(format, pattern) ? -1 : 1;
  const int mantissa = static_cast<int>(pattern & ((1u << format.mantissa_bits) - 1));
  const int largest = (1 << format.exponent_bits) - 1;
  const int exponent = static_cast<int>(pattern >> format.mantissa_bits) & largest;
  if (format.marks == Marks::ieee && exponent == largest) {
    return mantissa == 0 ? sign * infinity : nan;
  }
  if (format.marks == Marks::fn && exponent == largest &&
      mantissa == (1 << format.mantissa_bits) - 1) {
    return nan;
  }
  if (format.marks == Marks::fnuz && sign < 0 && exponent == 0 && mantissa == 0) return nan;
  const int implied = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  const int power = std::max(exponent, 1) - format.bias - format.mantissa_bits;
  return sign * std::ldexp(mantissa + implied, power);
}

// The patterns first, first + 1, … in `n` elements that begin at an odd address.
class Stored {
 public:
  Stored(const Format& format, std::uint32_t first, std::size_t n)
      : bytes_(n * format.bytes() + 1) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t pattern = (first + static_cast<std::uint32_t>(i)) % format.n_patterns();
      std::memcpy(bytes_.data() + 1 + i * format.bytes(), &pattern, format.bytes());
    }
  }
  std::span<const std::byte> bytes() const { return std::span(bytes_).subspan(1); }

 private:
  std::vector<std::byte> bytes_;
};

template <class T>
std::string bits_text(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(std::bit_cast<Bits>(value)));
  return text;
}

// Equal to the bit, or both NaN of the stored sign.
template <class T>
::testing::AssertionResult is_widened(const Format& format, std::uint32_t pattern, T actual) {
  const double expected = value_of(format, pattern);
  const bool negative = is_negative(format, pattern);
  if (std::isnan(expected) ? std::isnan(actual) && std::signbit(actual) == negative
                           : bits_text(actual) == bits_text(static_cast<T>(expected))) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << to_string(format.dtype) << " pattern " << pattern << " is " << actual << " ("
         << bits_text(actual) << "), but must be " << expected;
}

template <class T, class S>
std::vector<T> widened(Dtype dtype, const std::vector<S>& stored) {
  std::vector<T> out(stored.size());
  widen<T>(dtype, std::as_bytes(std::span(stored)), out);
  return out;
}

// All tests of this fixture run once for every instruction set that was compiled and is here.
class EveryInstructionSet : public ::testing::Test {
 protected:
  ~EveryInstructionSet() override { hwy::SetSupportedTargetsForTest(0); }

  template <class Body>
  static void for_each_set(const Body& body) {
    const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
    EXPECT_GE(targets.size(), 1u);
    for (const std::int64_t target : targets) {
      SCOPED_TRACE(hwy::TargetName(target));
      hwy::SetSupportedTargetsForTest(target);
      body(target);
    }
  }
};
using Widen = EveryInstructionSet;

template <class T>
void check_every_pattern() {
  for (const Format& format : formats) {
    const std::size_t n = format.n_patterns();
    std::vector<T> out(n);
    widen<T>(format.dtype, Stored(format, 0, n).bytes(), out);
    for (std::uint32_t pattern = 0; pattern < n; ++pattern) {
      ASSERT_TRUE(is_widened(format, pattern, out[pattern]));
    }
  }
}

TEST_F(Widen, EveryPatternIsExactInFloat) {
  for_each_set([](std::int64_t) { check_every_pattern<float>(); });
}

TEST_F(Widen, EveryPatternIsExactInDouble) {
  for_each_set([](std::int64_t) { check_every_pattern<double>(); });
}

#if HWY_ARCH_X86
TEST_F(Widen, EveryPatternIsExactWhereTheThreadFlushesSubnormalsToZero) {
  constexpr unsigned flush_to_zero = 0x8000;
  constexpr unsigned subnormals_are_zero = 0x0040;
  for_each_set([&](std::int64_t) {
    for (const Format& format : formats) {
      const std::size_t n = format.n_patterns();
      const Stored stored(format, 0, n);
      std::vector<float> floats(n);
      std::vector<double> doubles(n);
      const unsigned before = _mm_getcsr();
      _mm_setcsr(before | flush_to_zero | subnormals_are_zero);
      widen<float>(format.dtype, stored.bytes(), floats);
      widen<double>(format.dtype, stored.bytes(), doubles);
      _mm_setcsr(before);
      for (std::uint32_t pattern = 0; pattern < n; ++pattern) {
        ASSERT_TRUE(is_widened(format, pattern, floats[pattern]));
        ASSERT_TRUE(is_widened(format, pattern, doubles[pattern]));
      }
    }
  });
}
#endif

template <class T>
void check_lengths(const Format& format) {
  constexpr T untouched = T{-12345};
  for (std::size_t n = 0; n <= 67; ++n) {
    const std::uint32_t first = static_cast<std::uint32_t>(n) * 7 + 50;
    std::vector<T> out(n + 2, untouched);
    widen<T>(format.dtype, Stored(format, first, n).bytes(), std::span(out).subspan(1, n));
    EXPECT_EQ(out.front(), untouched) << "length " << n;
    EXPECT_EQ(out.back(), untouched) << "length " << n;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t pattern = (first + static_cast<std::uint32_t>(i)) % format.n_patterns();
      ASSERT_TRUE(is_widened(format, pattern, out[i + 1])) << "element " << i << " of " << n;
    }
  }
}

TEST_F(Widen, EveryLengthWritesItsElementsAndNoOthers) {
  for_each_set([](std::int64_t) {
    for (const Format& format : formats) {
      check_lengths<float>(format);
      check_lengths<double>(format);
    }
  });
}

// 32 MiB of output are streamed past the caches, in several pieces, from an address that is no
// multiple of a vector.
TEST_F(Widen, ALongOutputIsTheSameToTheBit) {
  constexpr std::size_t n = (std::size_t{32} << 20) / sizeof(float) + 5;
  const Format& format = formats[0];
  const Stored stored(format, 0, n);
  std::vector<float> expected(format.n_patterns());
  widen<float>(Dtype::f16, stored.bytes().first(expected.size() * 2), expected);
  std::vector<float> out(n + 2, -1.0f);
  for_each_set([&](std::int64_t target) {
    // One lane at a time would take seconds in a debug build, and has no streaming of its own.
    if (target == HWY_SCALAR || target == HWY_EMU128) return;
    std::fill(out.begin(), out.end(), -1.0f);
    widen<float>(Dtype::f16, stored.bytes(), std::span(out).subspan(1, n));
    EXPECT_EQ(out.front(), -1.0f);
    EXPECT_EQ(out.back(), -1.0f);
    for (std::size_t at = 0; at < n; at += expected.size()) {
      const std::size_t length = std::min(expected.size(), n - at);
      ASSERT_EQ(std::memcmp(&out[at + 1], expected.data(), length * sizeof(float)), 0)
          << "in the elements from " << at;
    }
  });
}

TEST_F(Widen, TheResultDoesNotDependOnTheNumberOfThreads) {
  constexpr std::size_t n = 700'001;  // three pieces
  const Format& format = formats[2];
  const Stored stored(format, 3, n);
  std::vector<float> one(n), three(n);
  set_thread_count(1);
  widen<float>(format.dtype, stored.bytes(), one);
  set_thread_count(3);
  widen<float>(format.dtype, stored.bytes(), three);
  set_thread_count(0);
  EXPECT_EQ(std::memcmp(one.data(), three.data(), n * sizeof(float)), 0);
  EXPECT_TRUE(is_widened(format, (3 + n - 1) % 256, one.back()));
}

TEST_F(Widen, OneElementAtATimeAgreesWithTheDefinition) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto word = static_cast<std::uint16_t>(pattern);
    ASSERT_TRUE(is_widened(formats[0], pattern, f16_to_float(word)));
    ASSERT_EQ(bits_text(f16_to_float(word)),
              bits_text(widened<float>(Dtype::f16, std::vector<std::uint16_t>{word})[0]));
    ASSERT_TRUE(is_widened(formats[1], pattern, bf16_to_float(word)));
  }
  for (std::uint32_t pattern = 0; pattern < 256; ++pattern) {
    const auto byte = static_cast<std::uint8_t>(pattern);
    ASSERT_TRUE(is_widened(formats[2], pattern, f8_e4m3_to_float(byte)));
    ASSERT_TRUE(is_widened(formats[3], pattern, f8_e5m2_to_float(byte)));
    ASSERT_EQ(bits_text(f8_e5m2_to_float(byte)),
              bits_text(widened<float>(Dtype::f8_e5m2, std::vector<std::uint8_t>{byte})[0]));
  }
}

// Figures of the formats' own definitions, so that the definition above is checked too.
TEST_F(Widen, KnownPatternsHaveTheirPublishedValues) {
  EXPECT_EQ(f16_to_float(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_float(0x0400), 0x1.0p-14f);
  EXPECT_EQ(f16_to_float(0x0001), 0x1.0p-24f);
  EXPECT_EQ(f16_to_float(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(bf16_to_float(0x4049), 3.140625f);
  EXPECT_EQ(bf16_to_float(0x0001), 0x1.0p-133f);
  EXPECT_EQ(f8_e4m3_to_float(0x7e), 448.0f);
  EXPECT_EQ(f8_e4m3_to_float(0x08), 0x1.0p-6f);
  EXPECT_EQ(f8_e4m3_to_float(0x01), 0x1.0p-9f);
  EXPECT_TRUE(std::isnan(f8_e4m3_to_float(0xff)));
  EXPECT_EQ(f8_e5m2_to_float(0x7b), 57344.0f);
  EXPECT_EQ(f8_e5m2_to_float(0x01), 0x1.0p-16f);
  EXPECT_EQ(f8_e5m2_to_float(0x7c), std::numeric_limits<float>::infinity());
  EXPECT_EQ(value_of(formats[4], 0x7f), 240.0);
  EXPECT_EQ(value_of(formats[4], 0x01), 0x1.0p-10);
  EXPECT_EQ(value_of(formats[5], 0x7f), 57344.0);
  EXPECT_EQ(value_of(formats[5], 0x01), 0x1.0p-17);
  EXPECT_TRUE(std::isnan(value_of(formats[4], 0x80)));
  EXPECT_EQ(value_of(formats[6], 127), 1.0);
  EXPECT_EQ(value_of(formats[6], 0), 0x1.0p-127);
}

TEST_F(Widen, F32IsCopiedToTheBit) {
  const std::vector<std::uint32_t> stored = {0x00000000, 0x80000000, 0x3f800000, 0x00000001,
                                             0x807fffff, 0x00800000, 0x7f7fffff, 0xff800000,
                                             0x7fc00000, 0xffc12345};
  for_each_set([&](std::int64_t) {
    const std::vector<float> out = widened<float>(Dtype::f32, stored);
    EXPECT_EQ(std::memcmp(out.data(), stored.data(), stored.size() * 4), 0);
    const std::vector<double> wide = widened<double>(Dtype::f32, stored);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(bits_text(wide[i]), bits_text(static_cast<double>(std::bit_cast<float>(stored[i]))))
          << i;
    }
    EXPECT_TRUE(std::isnan(wide[8]) && !std::signbit(wide[8]));
    EXPECT_TRUE(std::isnan(wide[9]) && std::signbit(wide[9]));
  });
}

TEST_F(Widen, F64RoundsToTheNearestFloatAndTiesToEven) {
  const std::vector<double> stored = {1 + 0x1.0p-24, 1 + 0x1.8p-23, 1 + 0x1.8p-24, 1e300,
                                      -0x1.0p-150,   0x1.8p-150,    -0.0,          0.1};
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> expected = {1.0f,  1 + 0x1.0p-22f, 1 + 0x1.0p-23f, infinity,
                                       -0.0f, 0x1.0p-149f,    -0.0f,          0.1f};
  const std::vector<float> out = widened<float>(Dtype::f64, stored);
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(bits_text(out[i]), bits_text(expected[i])) << stored[i];
  }
  EXPECT_EQ(widened<double>(Dtype::f64, stored), stored);
}

TEST_F(Widen, IntegersThatFitAreExact) {
  EXPECT_EQ(widened<float>(Dtype::i8, std::vector<std::int8_t>{-128, -1, 0, 127}),
            (std::vector<float>{-128, -1, 0, 127}));
  EXPECT_EQ(widened<float>(Dtype::u8, std::vector<std::uint8_t>{0, 128, 255}),
            (std::vector<float>{0, 128, 255}));
  EXPECT_EQ(widened<float>(Dtype::i16, std::vector<std::int16_t>{-32768, 32767}),
            (std::vector<float>{-32768, 32767}));
  EXPECT_EQ(widened<float>(Dtype::u16, std::vector<std::uint16_t>{32768, 65535}),
            (std::vector<float>{32768, 65535}));
  EXPECT_EQ(widened<double>(Dtype::i32, std::vector<std::int32_t>{INT32_MIN, INT32_MAX}),
            (std::vector<double>{-2147483648.0, 2147483647.0}));
  EXPECT_EQ(widened<double>(Dtype::u32, std::vector<std::uint32_t>{UINT32_MAX}),
            (std::vector<double>{4294967295.0}));
  EXPECT_EQ(widened<double>(Dtype::i64, std::vector<std::int64_t>{INT64_MIN, -3}),
            (std::vector<double>{-0x1.0p63, -3}));
}

TEST_F(Widen, WideIntegersRoundToNearestAndTiesToEven) {
  EXPECT_EQ(widened<float>(Dtype::i32, std::vector<std::int32_t>{16777217, 16777219, -16777217}),
            (std::vector<float>{16777216, 16777220, -16777216}));
  EXPECT_EQ(widened<float>(Dtype::u32, std::vector<std::uint32_t>{UINT32_MAX, 2147483777}),
            (std::vector<float>{0x1.0p32f, 2147483904.0f}));
  // Halfway between two floats, at 2^63: to the even one below; one more: up.
  const std::uint64_t half = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 39);
  EXPECT_EQ(widened<float>(Dtype::u64, std::vector<std::uint64_t>{UINT64_MAX, half, half + 1}),
            (std::vector<float>{0x1.0p64f, 0x1.0p63f, 0x1.000002p63f}));
  EXPECT_EQ(widened<double>(Dtype::u64, std::vector<std::uint64_t>{UINT64_MAX, 9007199254740993}),
            (std::vector<double>{0x1.0p64, 9007199254740992.0}));
  EXPECT_EQ(widened<float>(Dtype::i64, std::vector<std::int64_t>{INT64_MIN, -16777217}),
            (std::vector<float>{-0x1.0p63f, -16777216}));
}

TEST_F(Widen, ABooleanIsZeroOrOne) {
  EXPECT_EQ(widened<float>(Dtype::boolean, std::vector<std::uint8_t>{0, 1, 2, 255}),
            (std::vector<float>{0, 1, 1, 1}));
  EXPECT_EQ(widened<double>(Dtype::boolean, std::vector<std::uint8_t>{0, 1}),
            (std::vector<double>{0, 1}));
}

TEST_F(Widen, TheWrongNumberOfBytesIsAnError) {
  const std::vector<std::byte> bytes(7);
  std::vector<float> out(4);
  try {
    widen<float>(Dtype::f16, bytes, out);
    FAIL() << "nothing was thrown";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "widen: 7 bytes for 4 elements of F16, but each takes 2");
  }
  EXPECT_THROW(widen<float>(Dtype::f8_e4m3, bytes, out), ArgumentError);
  EXPECT_THROW(widen<float>(Dtype::i64, {}, out), ArgumentError);
}

TEST_F(Widen, PackedAndComplexNumbersAreRefused) {
  const std::vector<std::byte> bytes(2);
  std::vector<float> out(4);
  try {
    widen<float>(Dtype::f4, bytes, out);
    FAIL() << "nothing was thrown";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(),
                 "widen: the elements are F4, but only F64 F32 F16 BF16, F8, integers and BOOL can "
                 "be widened");
  }
  for (int i = 0; i < n_dtypes; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const bool refused = dtype == Dtype::f4 || dtype == Dtype::f6_e2m3 || dtype == Dtype::f6_e3m2 ||
                         dtype == Dtype::c64;
    EXPECT_EQ(is_widenable(dtype), !refused) << to_string(dtype);
    if (refused) {
      EXPECT_THROW(widen<double>(dtype, {}, {}), ArgumentError) << to_string(dtype);
    } else {
      EXPECT_NO_THROW(widen<double>(dtype, {}, {})) << to_string(dtype);
    }
  }
}

}  // namespace
}  // namespace eckart

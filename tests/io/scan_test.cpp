#include "eckart/io/scan.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/widen.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/io/scratch_folder.h"
#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace eckart {
namespace {

using testing::ScratchFolder;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

const std::vector<Dtype> floats = {Dtype::f64,     Dtype::f32,         Dtype::f16,
                                   Dtype::bf16,    Dtype::f8_e4m3,     Dtype::f8_e5m2,
                                   Dtype::f8_e8m0, Dtype::f8_e4m3fnuz, Dtype::f8_e5m2fnuz};

std::size_t element_bytes(Dtype dtype) { return static_cast<std::size_t>(bits(dtype)) / 8; }

// What the numbers themselves say, one after the other.
ValueScan expected_scan(Dtype dtype, std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / element_bytes(dtype));
  widen<double>(dtype, bytes, values);
  ValueScan scan;
  scan.n_values = values.size();
  scan.all_zero = !values.empty();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) && scan.n_nan++ == 0) scan.first_nan = i;
    if (std::isinf(values[i]) && scan.n_infinite++ == 0) scan.first_infinite = i;
    if (values[i] != 0) scan.all_zero = false;
  }
  return scan;
}

::testing::AssertionResult is_scan(const ValueScan& actual, const ValueScan& expected) {
  const auto text = [](const ValueScan& scan) {
    const auto position = [](std::optional<std::uint64_t> at) {
      return at ? std::to_string(*at) : std::string("none");
    };
    return std::to_string(scan.n_values) + " values, " + std::to_string(scan.n_nan) +
           " NaN, first " + position(scan.first_nan) + ", " + std::to_string(scan.n_infinite) +
           " infinite, first " + position(scan.first_infinite) +
           (scan.all_zero ? ", all zero" : "");
  };
  if (text(actual) == text(expected)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << text(actual) << "; expected " << text(expected);
}

template <class T>
ValueScan scan(Dtype dtype, const std::vector<T>& values) {
  return scan_values(dtype, std::as_bytes(std::span(values)));
}

std::vector<std::byte> random_bytes(std::size_t n, std::uint64_t seed) {
  const RandomStream random(seed);
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(random.bits(i) & 0xff);
  return bytes;
}

class Scan : public ::testing::Test {
 protected:
  ~Scan() override {
    hwy::SetSupportedTargetsForTest(0);
    set_thread_count(0);
  }

  // Once for every instruction set that was compiled and is here.
  template <class Body>
  static void for_each_set(const Body& body) {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      hwy::SetSupportedTargetsForTest(target);
      body();
    }
  }
};

TEST_F(Scan, EveryPatternIsToldByItsValue) {
  for (const Dtype dtype : floats) {
    if (element_bytes(dtype) > 2) continue;
    for (std::uint32_t pattern = 0; pattern < 1u << bits(dtype); ++pattern) {
      std::byte element[4];
      std::memcpy(element, &pattern, 4);
      const std::span<const std::byte> bytes(element, element_bytes(dtype));
      ASSERT_TRUE(is_scan(scan_values(dtype, bytes), expected_scan(dtype, bytes)))
          << to_string(dtype) << " pattern " << pattern;
    }
  }
}

TEST_F(Scan, EveryLengthAndAddressAgreesWithALoop) {
  for_each_set([] {
    for (const Dtype dtype : floats) {
      for (std::size_t n = 0; n < 150; n += n < 70 ? 1 : 13) {
        const std::vector<std::byte> bytes = random_bytes(n * element_bytes(dtype) + 1, n);
        const auto odd = std::span<const std::byte>(bytes).subspan(1);
        ASSERT_TRUE(is_scan(scan_values(dtype, odd), expected_scan(dtype, odd)))
            << to_string(dtype) << ", " << n << " elements";
      }
    }
  });
}

TEST_F(Scan, OneSpecialValueIsFoundAtEveryPosition) {
  for_each_set([] {
    for (std::size_t at = 0; at < 140; ++at) {
      std::vector<std::uint16_t> halves(140, 0x7bff);  // the largest finite
      halves[at] = 0xfc01;
      ASSERT_TRUE(is_scan(scan(Dtype::f16, halves), {140, 1, 0, at, {}, false}));
      std::vector<double> doubles(140, -std::numeric_limits<double>::max());
      doubles[at] = -std::numeric_limits<double>::infinity();
      ASSERT_TRUE(is_scan(scan(Dtype::f64, doubles), {140, 0, 1, {}, at, false}));
      std::vector<std::uint8_t> bytes(140, 0xfe);  // -448, which has no NaN's pattern
      bytes[at] = 0xff;
      ASSERT_TRUE(is_scan(scan(Dtype::f8_e4m3, bytes), {140, 1, 0, at, {}, false}));
    }
  });
}

TEST_F(Scan, TheNeighboursOfInfinityAreToldApart) {
  const std::vector<std::uint32_t> words = {0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fffffff,
                                            0xff7fffff, 0xff800000, 0xff800001, 0xffffffff};
  EXPECT_TRUE(is_scan(scan(Dtype::f32, words), {8, 4, 2, 2, 1, false}));
  // A NaN of F64 may have all its mantissa bits in the low word.
  const std::vector<std::uint64_t> longs = {0x7fefffffffffffff, 0x7ff0000000000000,
                                            0x7ff0000000000001, 0xfff0000000000001,
                                            0xfff0000000000000, 0xffefffffffffffff};
  EXPECT_TRUE(is_scan(scan(Dtype::f64, longs), {6, 2, 2, 2, 1, false}));
}

TEST_F(Scan, ZerosOfEitherSignAreAllZeroUntilOneBitIsSet) {
  for_each_set([] {
    std::vector<std::uint32_t> words(100, 0);
    for (std::size_t i = 0; i < words.size(); i += 3) words[i] = 0x80000000;
    ASSERT_TRUE(is_scan(scan(Dtype::f32, words), {100, 0, 0, {}, {}, true}));
    for (std::size_t at = 0; at < words.size(); ++at) {
      std::vector<std::uint32_t> changed = words;
      changed[at] |= 1;  // the smallest subnormal
      ASSERT_FALSE(scan(Dtype::f32, changed).all_zero) << at;
    }
  });
}

TEST_F(Scan, ThePatternOfNegativeZeroIsWhatTheFormatMakesOfIt) {
  const std::vector<std::uint8_t> bytes(40, 0x80);
  EXPECT_TRUE(is_scan(scan(Dtype::f8_e4m3, bytes), {40, 0, 0, {}, {}, true}));
  EXPECT_TRUE(is_scan(scan(Dtype::f8_e5m2, bytes), {40, 0, 0, {}, {}, true}));
  EXPECT_TRUE(is_scan(scan(Dtype::f8_e4m3fnuz, bytes), {40, 40, 0, 0, {}, false}));
  EXPECT_TRUE(is_scan(scan(Dtype::f8_e5m2fnuz, bytes), {40, 40, 0, 0, {}, false}));
  EXPECT_TRUE(is_scan(scan(Dtype::f8_e8m0, bytes), {40, 0, 0, {}, {}, false}));
  EXPECT_TRUE(is_scan(scan(Dtype::i8, bytes), {40, 0, 0, {}, {}, false}));
}

TEST_F(Scan, ScalesOfE8m0HaveNoZero) {
  EXPECT_FALSE(scan(Dtype::f8_e8m0, std::vector<std::uint8_t>(40, 0)).all_zero);
}

TEST_F(Scan, IntegersAreLookedAtForZeroAlone) {
  for (const Dtype dtype : {Dtype::boolean, Dtype::u8, Dtype::i8, Dtype::u16, Dtype::i16,
                            Dtype::u32, Dtype::i32, Dtype::u64, Dtype::i64}) {
    std::vector<std::uint64_t> words(25, 0);
    const std::uint64_t n = 200 / element_bytes(dtype);
    EXPECT_TRUE(is_scan(scan(dtype, words), {n, 0, 0, {}, {}, true})) << to_string(dtype);
    words[24] = std::uint64_t{1} << 63;
    EXPECT_TRUE(is_scan(scan(dtype, words), {n, 0, 0, {}, {}, false})) << to_string(dtype);
    words.assign(25, ~std::uint64_t{0});
    EXPECT_TRUE(is_scan(scan(dtype, words), {n, 0, 0, {}, {}, false})) << to_string(dtype);
  }
}

TEST_F(Scan, PackedElementsAreCountedByTheirBits) {
  EXPECT_TRUE(
      is_scan(scan(Dtype::f4, std::vector<std::uint8_t>{0x80, 0x08}), {4, 0, 0, {}, {}, true}));
  EXPECT_TRUE(
      is_scan(scan(Dtype::f4, std::vector<std::uint8_t>{0x80, 0x01}), {4, 0, 0, {}, {}, false}));
  for (const Dtype dtype : {Dtype::f6_e2m3, Dtype::f6_e3m2}) {
    EXPECT_TRUE(is_scan(scan(dtype, std::vector<std::uint8_t>(6, 0)), {8, 0, 0, {}, {}, true}));
    EXPECT_TRUE(is_scan(scan(dtype, std::vector<std::uint8_t>(6, 4)), {8, 0, 0, {}, {}, false}));
  }
}

TEST_F(Scan, AComplexNumberIsNanWhenOneOfItsPartsIs) {
  using Complex = std::complex<float>;
  const std::vector<Complex> values = {{1, 2},         {0, infinity}, {nan, infinity},
                                       {-infinity, 0}, {0, nan},      {-0.0f, 0}};
  EXPECT_TRUE(is_scan(scan(Dtype::c64, values), {6, 2, 2, 2, 1, false}));
  EXPECT_TRUE(scan(Dtype::c64, std::vector<Complex>(9, Complex(-0.0f, 0))).all_zero);
}

TEST_F(Scan, NothingIsNotAllZero) {
  for (const Dtype dtype : floats) {
    EXPECT_TRUE(is_scan(scan_values(dtype, {}), {})) << to_string(dtype);
  }
}

TEST_F(Scan, PositionsInALongArrayAreTheSameForEveryNumberOfThreads) {
  constexpr std::size_t n = 5'000'003;  // 20 MB, ten pieces
  std::vector<float> values(n, 1.0f);
  values[n - 1] = nan;
  values[3'000'001] = nan;
  values[n - 2] = -infinity;
  values[2'000'000] = infinity;
  values[2'000'001] = infinity;
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    EXPECT_TRUE(is_scan(scan(Dtype::f32, values), {n, 2, 3, 3'000'001, 2'000'000, false}))
        << threads << " threads";
  }
}

TEST_F(Scan, ALongArrayOfNanIsCountedInFull) {
  constexpr std::size_t n = 2'000'001;
  EXPECT_TRUE(
      is_scan(scan(Dtype::bf16, std::vector<std::uint16_t>(n, 0xffff)), {n, n, 0, 0, {}, false}));
}

TEST_F(Scan, PartOfAnElementIsAnError) {
  const std::vector<std::byte> bytes(7);
  try {
    scan_values(Dtype::f16, bytes);
    FAIL() << "nothing was thrown";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "scan_values: 7 bytes of F16, but an element takes 16 bits");
  }
  EXPECT_THROW(scan_values(Dtype::f6_e3m2, bytes), ArgumentError);
  EXPECT_NO_THROW(scan_values(Dtype::f4, bytes));
}

// A file of `n` floats 1 that begin at byte `begin`, with NaN at the given elements.
MappedFile file_of_ones(const ScratchFolder& folder, std::size_t begin, std::size_t n,
                        const std::vector<std::size_t>& nans) {
  std::vector<float> values(n, 1.0f);
  for (const std::size_t at : nans) values[at] = nan;
  std::vector<char> bytes(begin, '\xff');
  bytes.resize(begin + n * sizeof(float));
  std::memcpy(bytes.data() + begin, values.data(), n * sizeof(float));
  bytes.insert(bytes.end(), 5, '\xff');
  const std::filesystem::path path = folder / "ones";
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return open_mapped(path);
}

TEST_F(Scan, AFileIsScannedWhereverItsTensorBegins) {
  constexpr std::size_t cut = 2 << 20;  // where the pieces of a file begin
  constexpr std::size_t n = 1'300'000;
  for (const std::size_t begin : {0u, 1u, 13u, 4096u, 2097151u, 2097152u, 2097153u}) {
    const ScratchFolder folder;
    // The elements that hold the last byte before each cut and the first one after it.
    std::vector<std::size_t> nans = {n - 1};
    for (std::size_t at = cut; at < begin + n * 4; at += cut) {
      if (at <= begin) continue;
      nans.push_back((at - 1 - begin) / 4);
      if ((at - begin) % 4 == 0) nans.push_back((at - begin) / 4);
    }
    const MappedFile file = file_of_ones(folder, begin, n, nans);
    const std::size_t first = *std::min_element(nans.begin(), nans.end());
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      EXPECT_TRUE(is_scan(scan_file_values(file, Dtype::f32, begin, begin + n * 4),
                          {n, nans.size(), 0, first, {}, false}))
          << "from byte " << begin << " on " << threads << " threads";
    }
  }
}

TEST_F(Scan, ThePartOfAFileIsScannedAlone) {
  const ScratchFolder folder;
  const MappedFile file = file_of_ones(folder, 3, 100, {10, 60});
  EXPECT_TRUE(is_scan(scan_file_values(file, Dtype::f32, 3 + 11 * 4, 3 + 60 * 4),
                      {49, 0, 0, {}, {}, false}));
  EXPECT_TRUE(is_scan(scan_file_values(file, Dtype::f32, 3 + 11 * 4, 3 + 61 * 4),
                      {50, 1, 0, 49, {}, false}));
  EXPECT_TRUE(is_scan(scan_file_values(file, Dtype::f32, 40, 40), {}));
}

TEST_F(Scan, ARangeBeyondTheFileIsAnError) {
  const ScratchFolder folder;
  const MappedFile file = file_of_ones(folder, 0, 2, {});
  try {
    scan_file_values(file, Dtype::f32, 4, 16);
    FAIL() << "nothing was thrown";
  } catch (const ArgumentError& error) {
    EXPECT_EQ(error.what(),
              "scan_file_values: bytes 4 to 16 are asked for, but " + file.path() + " has 13");
  }
  EXPECT_THROW(scan_file_values(file, Dtype::u8, 8, 4), ArgumentError);
  EXPECT_THROW(scan_file_values(file, Dtype::f32, 0, 13), ArgumentError);
}

}  // namespace
}  // namespace eckart

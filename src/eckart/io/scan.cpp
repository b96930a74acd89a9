// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include "eckart/io/scan.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/io/scan.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

// How a dtype marks its special values. The key of a word is (word & keep) ^ flip; the keys from
// `special` on are infinite, those from `nan` on are NaN. A word without `value` bits is zero.
struct Rule {
  int word_bytes = 1;
  int words = 1;  // in an element
  std::uint64_t value = 0xff;
  std::uint64_t keep = 0;
  std::uint64_t flip = 0;
  std::uint64_t special = 1;
  std::uint64_t nan = 1;
  bool has_zero = true;
};

// Sign apart, infinity is the largest number's successor and NaN is all beyond.
constexpr Rule ieee(int word_bytes, std::uint64_t magnitude, std::uint64_t infinity) {
  return {.word_bytes = word_bytes,
          .value = magnitude,
          .keep = magnitude,
          .special = infinity,
          .nan = infinity + 1};
}

constexpr Rule rule_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return ieee(8, 0x7fff'ffff'ffff'ffff, 0x7ff0'0000'0000'0000);
    case Dtype::f32:
      return ieee(4, 0x7fff'ffff, 0x7f80'0000);
    case Dtype::c64: {
      Rule rule = ieee(4, 0x7fff'ffff, 0x7f80'0000);
      rule.words = 2;
      return rule;
    }
    case Dtype::f16:
      return ieee(2, 0x7fff, 0x7c00);
    case Dtype::bf16:
      return ieee(2, 0x7fff, 0x7f80);
    case Dtype::f8_e5m2:
      return ieee(1, 0x7f, 0x7c);
    case Dtype::f8_e4m3:
      return {.value = 0x7f, .keep = 0x7f, .special = 0x7f, .nan = 0x7f};
    case Dtype::f8_e8m0:
      return {.keep = 0xff, .special = 0xff, .nan = 0xff, .has_zero = false};
    case Dtype::f8_e4m3fnuz:
    case Dtype::f8_e5m2fnuz:
      // The pattern of a negative zero, 0x80, is the one NaN: flipped it is the largest key.
      return {.keep = 0xff, .flip = 0x7f, .special = 0xff, .nan = 0xff};
    case Dtype::f4:
      return {.value = 0x77};  // two elements a byte, each with a sign
    default:
      return {};  // any bit makes a byte not zero
  }
}

// What `survey` answers, together.
constexpr unsigned found_value = 1;    // something that is not zero
constexpr unsigned found_special = 2;  // a NaN or an infinity

template <class D>
hn::VFromD<D> load_words(D d, const std::uint8_t* bytes) {
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> word;
  std::memcpy(&word, bytes, sizeof(word));
  return hn::Set(d, word);
#else
  return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, D>(), bytes));
#endif
}

// One pass that keeps the or of the words and their largest key, so that the loads bound it.
template <class Word>
unsigned survey_words(const Rule& rule, const std::uint8_t* bytes, std::size_t n_words) {
  const hn::ScalableTag<Word> d;
  const std::size_t lanes = hn::Lanes(d);
  const Word keep_word = static_cast<Word>(rule.keep);
  const Word flip_word = static_cast<Word>(rule.flip);
  const auto keep = hn::Set(d, keep_word);
  const auto flip = hn::Set(d, flip_word);
  auto largest_a = hn::Zero(d);
  auto largest_b = largest_a;
  auto seen_a = largest_a;
  auto seen_b = largest_a;
  std::size_t i = 0;
  for (; i + 2 * lanes <= n_words; i += 2 * lanes) {
    const auto a = load_words(d, bytes + i * sizeof(Word));
    const auto b = load_words(d, bytes + (i + lanes) * sizeof(Word));
    seen_a = hn::Or(seen_a, a);
    seen_b = hn::Or(seen_b, b);
    largest_a = hn::Max(largest_a, hn::Xor(hn::And(a, keep), flip));
    largest_b = hn::Max(largest_b, hn::Xor(hn::And(b, keep), flip));
  }
  Word largest_of[HWY_MAX_BYTES / sizeof(Word)];
  Word seen_of[HWY_MAX_BYTES / sizeof(Word)];
  hn::StoreU(hn::Max(largest_a, largest_b), d, largest_of);
  hn::StoreU(hn::Or(seen_a, seen_b), d, seen_of);
  Word largest = 0;
  Word seen = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    seen = static_cast<Word>(seen | seen_of[lane]);
    if (largest_of[lane] > largest) largest = largest_of[lane];
  }
  for (; i < n_words; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
    const Word key = static_cast<Word>((word & keep_word) ^ flip_word);
    seen = static_cast<Word>(seen | word);
    if (key > largest) largest = key;
  }
  return ((seen & rule.value) != 0 ? found_value : 0) |
         (largest >= rule.special ? found_special : 0);
}

unsigned survey(Dtype dtype, const std::uint8_t* bytes, std::size_t n_bytes) {
  const Rule rule = rule_of(dtype);
  switch (rule.word_bytes) {
    case 8:
      return survey_words<std::uint64_t>(rule, bytes, n_bytes / 8);
    case 4:
      return survey_words<std::uint32_t>(rule, bytes, n_bytes / 4);
    case 2:
      return survey_words<std::uint16_t>(rule, bytes, n_bytes / 2);
    default:
      return survey_words<std::uint8_t>(rule, bytes, n_bytes);
  }
}

}  // namespace
}  // namespace eckart::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart {
namespace {

HWY_EXPORT(survey);

// The rules of this last inclusion, which is for the instruction set that every machine has.
using HWY_NAMESPACE::found_special;
using HWY_NAMESPACE::found_value;
using HWY_NAMESPACE::Rule;
using HWY_NAMESPACE::rule_of;

// A huge page. Pieces are cut where a huge page of the file begins, because then reading ahead maps
// it in one step and giving it back splits none: measured, 2 MiB pieces of a file in the page cache
// are scanned at 20 to 23 GB/s and 1 MiB pieces at 15 to 19.
constexpr std::uint64_t piece_bytes = 2 << 20;
// Only a block that holds a special value is looked at again, element by element.
constexpr std::size_t block_bytes = 16 << 10;

std::uint64_t word_at(const std::uint8_t* bytes, int word_bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, static_cast<std::size_t>(word_bytes));  // little-endian
  return word;
}

// Counts what is special in a block whose first element is number `first`.
void count_special(const Rule& rule, std::span<const std::uint8_t> block, std::uint64_t first,
                   ValueScan& scan) {
  const auto word_bytes = static_cast<std::size_t>(rule.word_bytes);
  const std::size_t element_bytes = word_bytes * static_cast<std::size_t>(rule.words);
  for (std::size_t i = 0; i < block.size() / element_bytes; ++i) {
    std::uint64_t key = 0;
    for (std::size_t at = i * element_bytes; at < (i + 1) * element_bytes; at += word_bytes) {
      const std::uint64_t word = word_at(block.data() + at, rule.word_bytes);
      key = std::max(key, (word & rule.keep) ^ rule.flip);
    }
    if (key < rule.special) continue;
    const bool is_nan = key >= rule.nan;
    ++(is_nan ? scan.n_nan : scan.n_infinite);
    std::optional<std::uint64_t>& position = is_nan ? scan.first_nan : scan.first_infinite;
    if (!position) position = first + i;
  }
}

// The bytes [begin, end) of `bytes`, both at the start of an element; `all_zero` holds for these
// alone.
ValueScan scan_piece(Dtype dtype, std::span<const std::uint8_t> bytes, std::uint64_t begin,
                     std::uint64_t end) {
  const Rule rule = rule_of(dtype);
  const auto element_bytes = static_cast<std::uint64_t>(rule.word_bytes * rule.words);
  ValueScan scan;
  unsigned found = rule.has_zero ? 0 : found_value;
  for (std::uint64_t at = begin; at < end; at += block_bytes) {
    const auto block = bytes.subspan(at, std::min<std::uint64_t>(block_bytes, end - at));
    const unsigned in_block = HWY_DYNAMIC_DISPATCH(survey)(dtype, block.data(), block.size());
    if ((in_block & found_special) != 0) count_special(rule, block, at / element_bytes, scan);
    found |= in_block;
  }
  scan.all_zero = (found & found_value) == 0;
  return scan;
}

void add_first(std::optional<std::uint64_t>& first, const std::optional<std::uint64_t>& other) {
  if (other && (!first || *other < *first)) first = other;
}

// Pieces come in any order: sums and minima don't depend on it.
void add(ValueScan& total, const ValueScan& piece) {
  total.n_nan += piece.n_nan;
  total.n_infinite += piece.n_infinite;
  add_first(total.first_nan, piece.first_nan);
  add_first(total.first_infinite, piece.first_infinite);
  total.all_zero = total.all_zero && piece.all_zero;
}

// `file`, if any, holds the bytes from its offset `offset` on.
ValueScan scan(Dtype dtype, std::span<const std::byte> bytes, const MappedFile* file,
               std::uint64_t offset) {
  const auto element_bits = static_cast<std::uint64_t>(bits(dtype));
  if (bytes.size() * 8 % element_bits != 0) {
    throw_argument_error("scan_values: " + std::to_string(bytes.size()) + " bytes of " +
                         std::string(to_string(dtype)) + ", but an element takes " +
                         std::to_string(element_bits) + " bits");
  }
  const Rule rule = rule_of(dtype);
  const auto element_bytes = static_cast<std::uint64_t>(rule.word_bytes * rule.words);
  const std::uint64_t size = bytes.size();
  ValueScan total;
  total.n_values = size * 8 / element_bits;
  total.all_zero = size > 0;
  const std::uint64_t lead = offset % piece_bytes;
  // The first start of an element at or after a cut.
  const auto element_start = [&](std::uint64_t cut) {
    const std::uint64_t at = std::max(cut, lead) - lead;
    return std::min(size, (at + element_bytes - 1) / element_bytes * element_bytes);
  };
  std::mutex mutex;
  const auto scan_range = [&](Index first_piece, Index end_piece) {
    const std::uint64_t begin =
        element_start(static_cast<std::uint64_t>(first_piece) * piece_bytes);
    const std::uint64_t end = element_start(static_cast<std::uint64_t>(end_piece) * piece_bytes);
    if (file != nullptr) file->prefetch(offset + begin, offset + end);
    const ValueScan piece = scan_piece(
        dtype, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, begin, end);
    if (file != nullptr) file->release(offset + begin, offset + end);
    const std::lock_guard lock(mutex);
    add(total, piece);
  };
  parallel_for(static_cast<Index>((lead + size + piece_bytes - 1) / piece_bytes), 1, scan_range);
  return total;
}

}  // namespace

ValueScan scan_values(Dtype dtype, std::span<const std::byte> bytes) {
  return scan(dtype, bytes, nullptr, 0);
}

ValueScan scan_file_values(const MappedFile& file, Dtype dtype, std::uint64_t begin,
                           std::uint64_t end) {
  if (begin > end || end > file.size()) {
    throw_argument_error("scan_file_values: bytes " + std::to_string(begin) + " to " +
                         std::to_string(end) + " are asked for, but " +
                         printable_path(file.path()) + " has " + std::to_string(file.size()));
  }
  return scan(dtype, file.bytes().subspan(begin, end - begin), &file, begin);
}

}  // namespace eckart
#endif  // HWY_ONCE

#include "eckart/io/safetensors_rules.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

constexpr std::string_view download_again = "the download stopped early: fetch the file again";

std::string sizes_text(const std::vector<Index>& sizes) {
  return sizes.empty() ? "a scalar" : fmt::format("{}", fmt::join(sizes, "x"));
}

// Number of elements, or nothing when 63 bits don't hold it. An empty axis makes the tensor empty
// whatever the other sizes and whatever their order.
std::optional<std::uint64_t> count_elements(const std::vector<Index>& sizes) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  Index count = 1;
  for (const Index size : sizes) {
    if (__builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(count);
}

std::string offsets_text(const StoredTensor& tensor) {
  return fmt::format("[{}, {}]", tensor.begin, tensor.end);
}

std::string n_bytes(std::uint64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "byte" : "bytes");
}

// Of things that are told of once a file.
std::string and_more(std::size_t count) {
  if (count == 1) return {};
  return fmt::format("; {} more {}", count - 1, count == 2 ? "tensor does so" : "tensors do so");
}

bool overlaps(const StoredTensor& tensor, const StoredTensor* before) {
  return before != nullptr && tensor.begin < before->end;
}

void report_overlap(const StoredTensor& tensor, const StoredTensor& before,
                    std::uint64_t data_begin, const HeaderReading& reading) {
  if (tensor.name == before.name) return;  // reported as one name standing twice
  reading.add({.tensor = tensor.name,
               .begin = data_begin + tensor.begin,
               .end = data_begin + tensor.end,
               .rule = "offsets_overlap",
               .message = fmt::format(
                   "its data_offsets {} begin inside those of {}, {}, but tensors must not overlap",
                   offsets_text(tensor), printable(before.name), offsets_text(before))});
}

void report_hole(const StoredTensor& tensor, const StoredTensor* before, std::uint64_t data_begin,
                 const HeaderReading& reading) {
  const std::uint64_t expected = before == nullptr ? 0 : before->end;
  const std::string rule =
      before == nullptr
          ? std::string("but the first tensor must begin at 0")
          : fmt::format("but the tensor before it, {}, ends at {}, and no bytes may lie between",
                        printable(before->name), expected);
  reading.add(
      {.tensor = tensor.name,
       .begin = data_begin + expected,
       .end = data_begin + tensor.begin,
       .rule = "offsets_hole",
       .message = fmt::format("its data_offsets {} leave {} unused, {}", offsets_text(tensor),
                              n_bytes(tensor.begin - expected), rule)});
}

void check_length(const HeaderEntries& entries, std::uint64_t data_bytes, const DataRegion& region,
                  const HeaderReading& reading) {
  const std::uint64_t end = region.data_begin + data_bytes;
  if (end > region.file_size) {
    reading.add(
        {.begin = region.file_size,
         .end = end,
         .rule = "file_length",
         .message = fmt::format("the file has {}, but its tensors end at byte {}: {} are missing",
                                n_bytes(region.file_size), end, n_bytes(end - region.file_size)),
         .hint = std::string(download_again)});
  } else if (end < region.file_size && entries.has_all_ranges) {
    reading.add({.begin = end,
                 .end = region.file_size,
                 .rule = "file_length",
                 .message = fmt::format("{} follow the last tensor, which ends at byte {}, but the "
                                        "file must end with it",
                                        n_bytes(region.file_size - end), end)});
  }
}

}  // namespace

std::optional<BrokenRule> check_entry(const EntryDraft& draft) {
  const auto [begin, end] = draft.offsets;
  if (draft.good[offsets_field] && end < begin) {
    return BrokenRule{"offsets_order",
                      fmt::format("its data_offsets [{}, {}] end before they begin", begin, end)};
  }
  if (!draft.good[dtype_field] || !draft.good[shape_field]) return std::nullopt;
  const auto what = [&] {
    return fmt::format("{} of {}", to_string(draft.dtype), sizes_text(draft.sizes));
  };
  const std::optional<std::uint64_t> count = count_elements(draft.sizes);
  std::uint64_t n_bits = 0;
  if (!count ||
      __builtin_mul_overflow(*count, static_cast<std::uint64_t>(bits(draft.dtype)), &n_bits)) {
    return BrokenRule{"shape_overflow", what() + " has more bits than a 64-bit count holds"};
  }
  if (n_bits % 8 != 0) {
    return BrokenRule{
        "misaligned_bits",
        fmt::format("{} takes {} bits, but a tensor must fill whole bytes", what(), n_bits)};
  }
  if (!draft.good[offsets_field] || n_bits / 8 == end - begin) return std::nullopt;
  return BrokenRule{"size_mismatch",
                    fmt::format("{} takes {}, but its data_offsets [{}, {}] span {}", what(),
                                n_bytes(n_bits / 8), begin, end, end - begin)};
}

// By sorting: a hostile file can choose names that collide in a hash table.
void check_names(HeaderEntries& entries, const HeaderReading& reading) {
  const std::vector<StoredTensor>& tensors = entries.tensors;
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const int compared = tensors[a].name.compare(tensors[b].name);
    return compared != 0 ? compared < 0 : a < b;
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::sort(order.begin(), order.end(), before);
  }
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::string& name = tensors[order[i]].name;
    if (name != tensors[order[i - 1]].name) continue;
    HeaderEntries::Facts& first = entries.facts[order[i - 1]];
    const HeaderEntries::Facts& second = entries.facts[order[i]];
    first.is_sound = false;
    reading.add({.tensor = name,
                 .begin = second.begin,
                 .end = second.end,
                 .rule = "duplicate_name",
                 .message = fmt::format(
                     "stands twice in the header, at byte {} and at byte {}, but a name means one "
                     "tensor",
                     first.begin, second.begin),
                 .hint = "readers differ in which of the two they take: don't trust the file"});
  }
}

std::vector<std::uint32_t> by_offset(const std::vector<StoredTensor>& tensors) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto before = [&](std::uint32_t i, std::uint32_t j) {
    const StoredTensor& a = tensors[i];
    const StoredTensor& b = tensors[j];
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.end != b.end) return a.end < b.end;
    const int compared = a.name.compare(b.name);
    return compared != 0 ? compared < 0 : i < j;
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::sort(order.begin(), order.end(), before);
  }
  return order;
}

void check_layout(const HeaderEntries& entries, const std::vector<std::uint32_t>& order,
                  const DataRegion& region, const HeaderReading& reading) {
  const StoredTensor* before = nullptr;  // of those so far the one that ends last
  for (const std::uint32_t i : order) {
    if (!entries.facts[i].has_range) continue;
    const StoredTensor& tensor = entries.tensors[i];
    if (overlaps(tensor, before)) {
      report_overlap(tensor, *before, region.data_begin, reading);
    } else if (entries.has_all_ranges && tensor.begin > (before == nullptr ? 0 : before->end)) {
      report_hole(tensor, before, region.data_begin, reading);
    }
    if (before == nullptr || tensor.end >= before->end) before = &tensor;
  }
  check_length(entries, before == nullptr ? 0 : before->end, region, reading);
}

void check_habits(const HeaderEntries& entries, std::uint64_t data_begin,
                  const HeaderReading& reading) {
  const StoredTensor* first_empty = nullptr;
  const StoredTensor* first_unaligned = nullptr;
  std::size_t n_empty = 0;
  std::size_t n_unaligned = 0;
  for (std::size_t i = 0; i < entries.tensors.size(); ++i) {
    if (!entries.facts[i].is_sound) continue;
    const StoredTensor& tensor = entries.tensors[i];
    const auto element_bits = static_cast<std::uint64_t>(bits(tensor.dtype));
    if (tensor.begin == tensor.end) {
      if (n_empty++ == 0) first_empty = &tensor;
    } else if (element_bits > 8 && (data_begin + tensor.begin) % (element_bits / 8) != 0) {
      if (n_unaligned++ == 0) first_unaligned = &tensor;
    }
  }
  if (first_empty != nullptr && entries.tensors.size() > 1) {
    reading.add(
        {.severity = Severity::warning,
         .tensor = first_empty->name,
         .rule = "zero_size_shared_offset",
         .message = "holds no elements and shares an offset with a neighbour, which is legal" +
                    and_more(n_empty)});
  }
  if (first_unaligned != nullptr) {
    const std::uint64_t begin = data_begin + first_unaligned->begin;
    reading.add(
        {.severity = Severity::warning,
         .tensor = first_unaligned->name,
         .begin = begin,
         .end = data_begin + first_unaligned->end,
         .rule = "unaligned_tensor",
         .message = fmt::format("begins at byte {}, no multiple of the {} bytes of {}, which "
                                "is legal but slower to read{}",
                                begin, bits(first_unaligned->dtype) / 8,
                                to_string(first_unaligned->dtype), and_more(n_unaligned))});
  }
}

}  // namespace eckart

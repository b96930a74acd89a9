#include "eckart/core/errors.h"
#include "eckart/io/safetensors.h"
#include "eckart/io/safetensors_entries.h"
#include "eckart/io/safetensors_rules.h"
#include "eckart/io/utf8.h"
#include "eckart/io/validate.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

constexpr std::uint64_t length_bytes = 8;
// The reference reader's limit.
constexpr std::uint64_t max_header_bytes = 100'000'000;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

// Says what the file is when it is another kind of file, and the broken rule when it is not.
void add_wrong_file(std::span<const std::byte> file, Finding broken, const HeaderReading& reading) {
  if (std::optional<MistakenFile> mistaken = recognize(file)) {
    broken = {.begin = 0,
              .end = file.size(),
              .rule = std::move(mistaken->rule),
              .message = std::move(mistaken->message),
              .hint = std::move(mistaken->hint)};
  }
  reading.add(std::move(broken));
}

// The JSON of the header, or nothing when the file has no room for it or it can be no JSON.
std::optional<std::string_view> find_header(std::span<const std::byte> file,
                                            const HeaderReading& reading) {
  const std::string again = "the download stopped early or failed: fetch the file again";
  if (file.size() < length_bytes) {
    add_wrong_file(file,
                   {.begin = 0,
                    .end = file.size(),
                    .rule = "header_too_small",
                    .message = fmt::format("the file has {} bytes, but the length of a header "
                                           "alone takes {}",
                                           file.size(), length_bytes),
                    .hint = again},
                   reading);
    return std::nullopt;
  }
  const std::uint64_t length = little_endian(file);
  if (length > max_header_bytes) {
    add_wrong_file(file,
                   {.begin = 0,
                    .end = length_bytes,
                    .rule = "header_too_large",
                    .message = fmt::format("the first 8 bytes give a header of {} bytes, but a "
                                           "header has at most {}",
                                           length, max_header_bytes),
                    .hint = "this is most likely no safetensors file"},
                   reading);
    return std::nullopt;
  }
  if (length > file.size() - length_bytes) {
    const std::uint64_t end = length_bytes + length;
    add_wrong_file(file,
                   {.begin = file.size(),
                    .end = end,
                    .rule = "header_length",
                    .message = fmt::format("the file has {} bytes, but its header ends at byte {}: "
                                           "{} bytes of the header are missing",
                                           file.size(), end, end - file.size()),
                    .hint = again},
                   reading);
    return std::nullopt;
  }
  const std::string_view json = text_of(file.subspan(length_bytes, length));
  if (const std::optional<std::uint64_t> at = find_invalid_utf8(json)) {
    add_wrong_file(file,
                   {.begin = length_bytes + *at,
                    .end = length_bytes + *at + 1,
                    .rule = "header_utf8",
                    .message = fmt::format("byte {} of the header is not UTF-8, but a header is "
                                           "UTF-8 text",
                                           length_bytes + *at)},
                   reading);
    return std::nullopt;
  }
  return json;
}

void check_start(std::string_view json, const HeaderReading& reading) {
  if (reading.strictness != Strictness::check || json.empty() || json.front() == '{') return;
  reading.add({.severity = Severity::warning,
               .begin = length_bytes,
               .end = length_bytes + 1,
               .rule = "header_start",
               .message = "the header begins with white space, which the specification forbids and "
                          "older readers refuse"});
}

// The sound entries in `order` that are in the file, with offsets from its start.
std::vector<StoredTensor> sound_tensors(HeaderEntries& entries,
                                        const std::vector<std::uint32_t>& order,
                                        const DataRegion& region) {
  const std::uint64_t data_bytes = region.file_size - region.data_begin;
  const auto is_kept = [&](std::size_t i) {
    return entries.facts[i].is_sound && entries.tensors[i].end <= data_bytes;
  };
  const bool in_order = std::is_sorted(order.begin(), order.end());
  const bool all_kept = std::all_of(order.begin(), order.end(), is_kept);
  std::vector<StoredTensor> tensors;
  if (in_order && all_kept) {
    tensors = std::move(entries.tensors);
  } else {
    tensors.reserve(order.size());
    for (const std::uint32_t i : order) {
      if (is_kept(i)) tensors.push_back(std::move(entries.tensors[i]));
    }
  }
  for (StoredTensor& tensor : tensors) {
    tensor.begin += region.data_begin;
    tensor.end += region.data_begin;
  }
  return tensors;
}

}  // namespace

SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& name,
                                          Strictness strictness, Findings& findings) {
  const HeaderReading reading{name, strictness, findings, length_bytes};
  SafetensorsHeader header;
  const std::optional<std::string_view> json = find_header(file, reading);
  if (!json) return header;
  const std::size_t first = json->find_first_not_of(" \t\n\r");
  if (first == std::string_view::npos || (*json)[first] != '{') {
    add_wrong_file(file,
                   {.begin = length_bytes,
                    .end = length_bytes + json->size(),
                    .rule = "header_json",
                    .message = "the header does not begin with {, but must be a JSON object"},
                   reading);
    return header;
  }
  HeaderEntries entries = read_header_entries(*json, reading);
  if (!entries.is_header) return header;
  header.data_begin = length_bytes + json->size();
  check_start(*json, reading);
  check_names(entries, reading);
  const std::vector<std::uint32_t> order = by_offset(entries.tensors);
  const DataRegion region{header.data_begin, file.size()};
  check_layout(entries, order, region, reading);
  if (strictness == Strictness::check) check_habits(entries, header.data_begin, reading);
  header.tensors = sound_tensors(entries, order, region);
  header.metadata = std::move(entries.metadata);
  return header;
}

SafetensorsHeader read_safetensors_header(const MappedFile& file, Strictness strictness,
                                          Findings& findings) {
  SafetensorsHeader header =
      read_safetensors_header(file.bytes(), file.path(), strictness, findings);
  file.release(0, header.data_begin);
  return header;
}

SafetensorsFile::SafetensorsFile(MappedFile file, SafetensorsHeader header)
    : file_(std::move(file)), header_(std::move(header)), by_name_(header_.tensors.size()) {
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  const auto before = [this](std::uint32_t a, std::uint32_t b) {
    return header_.tensors[a].name < header_.tensors[b].name;
  };
  if (!std::is_sorted(by_name_.begin(), by_name_.end(), before)) {
    std::sort(by_name_.begin(), by_name_.end(), before);
  }
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [this](std::uint32_t i, std::string_view wanted) {
                                        return header_.tensors[i].name < wanted;
                                      });
  if (found == by_name_.end() || header_.tensors[*found].name != name) return nullptr;
  return &header_.tensors[*found];
}

std::span<const std::byte> SafetensorsFile::bytes(const StoredTensor& tensor) const {
  if (tensor.begin > tensor.end || tensor.end > file_.size()) {
    throw_argument_error(
        fmt::format("bytes: tensor {} is said to be at bytes {} to {}, but {} has {} bytes",
                    printable(tensor.name), tensor.begin, tensor.end, printable_path(path()),
                    file_.size()),
        "take it from `tensors` or `find` of this file");
  }
  return file_.bytes().subspan(tensor.begin, tensor.bytes());
}

SafetensorsFile open_safetensors(const std::filesystem::path& path) {
  MappedFile file = open_mapped(path);
  Findings findings;
  SafetensorsHeader header = read_safetensors_header(file, Strictness::read, findings);
  throw_first_error(findings);
  return SafetensorsFile(std::move(file), std::move(header));
}

}  // namespace eckart

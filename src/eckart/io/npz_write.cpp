// Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT (local file header 4.3.7,
// central directory 4.3.12, end of it 4.3.14 to 4.3.16, zip64 field 4.5.3).
#include "eckart/io/npz_write.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/npy_write.h"

#include <algorithm>
#include <span>
#include <utility>

#include <zlib.h>

namespace eckart {
namespace {

constexpr std::uint64_t max_16 = 0xffff;
constexpr std::uint64_t max_32 = 0xffffffff;
constexpr std::uint16_t plain_version = 20;
constexpr std::uint16_t zip64_version = 45;
constexpr std::uint16_t first_date = 0x0021;     // 1980-01-01
constexpr std::uint16_t names_in_utf8 = 0x0800;  // flag
constexpr std::uint16_t zip64_field = 1;
constexpr std::uint32_t regular_file = 0100644U << 16;  // mode, as on Unix
constexpr std::size_t longest_name = 65'000;
constexpr std::size_t crc_piece = std::size_t{1} << 30;  // zlib counts in 32 bits

// Little-endian numbers, one after the other.
class Record {
 public:
  Record& u16(std::uint64_t value) { return number(value, 2); }
  Record& u32(std::uint64_t value) { return number(value, 4); }
  Record& u64(std::uint64_t value) { return number(value, 8); }
  /// The value, or where it does not fit, all ones: the zip64 field has it then.
  Record& u32_or_all_ones(std::uint64_t value) { return u32(std::min(value, max_32)); }
  Record& text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  Record& number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
      bytes_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
    return *this;
  }

  std::vector<std::byte> bytes_;
};

std::uint32_t crc_of(std::uint32_t crc, std::span<const std::byte> bytes) {
  uLong sum = crc;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), crc_piece);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(n));
    bytes = bytes.subspan(n);
  }
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

NpzWriter::NpzWriter(const std::filesystem::path& path) : file_(path) {}

void NpzWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  at_ += bytes.size();
}

void NpzWriter::check_name(std::string_view name) const {
  const std::string shown = printable(std::string(name));
  if (name.empty() || name.size() > longest_name ||
      name.find_first_of(std::string_view("/\\\0", 3)) != std::string_view::npos || name == ".." ||
      name == ".") {
    throw_argument_error(
        "save: an array of the archive is called \"" + shown + "\", but that is no name of a file",
        "use letters, digits, points and underscores");
  }
  const std::string file_name = std::string(name) + ".npy";
  if (std::any_of(members_.begin(), members_.end(),
                  [&](const Member& member) { return member.file_name == file_name; })) {
    throw_argument_error("save: two arrays of the archive are called \"" + shown +
                         "\", but each must have a name of its own");
  }
}

void NpzWriter::begin_member(Member member) {
  member.offset = at_;
  const bool is_long = member.bytes >= max_32;
  Record extra;
  if (is_long) extra.u16(zip64_field).u16(16).u64(member.bytes).u64(member.bytes);
  Record header;
  header.u32(0x04034b50).u16(is_long ? zip64_version : plain_version).u16(names_in_utf8);
  header.u16(0).u16(0).u16(first_date).u32(member.crc32);  // stored, midnight
  header.u32(is_long ? max_32 : member.bytes).u32(is_long ? max_32 : member.bytes);
  header.u16(member.file_name.size()).u16(extra.size());
  header.text(member.file_name).text(extra.view());
  write(header.bytes());
  members_.push_back(std::move(member));
}

template <class T>
void NpzWriter::add(std::string_view name, TensorView<const T> tensor) {
  check_name(name);
  const std::vector<std::byte> header = npy_header_bytes<T>(tensor.shape());
  Member member;
  member.file_name = std::string(name) + ".npy";
  member.crc32 = crc_of(0, header);
  member.bytes = header.size();
  write_npy_elements(tensor, [&](std::span<const std::byte> bytes) {
    member.crc32 = crc_of(member.crc32, bytes);
    member.bytes += bytes.size();
  });
  begin_member(std::move(member));
  write(header);
  write_npy_elements(tensor, [&](std::span<const std::byte> bytes) { write(bytes); });
}

void NpzWriter::commit() {
  const std::uint64_t begin = at_;
  for (const Member& member : members_) {
    const bool is_long = member.bytes >= max_32;
    const bool is_far = member.offset >= max_32;
    Record extra;
    if (is_long || is_far) {
      extra.u16(zip64_field).u16((is_long ? 16U : 0U) + (is_far ? 8U : 0U));
      if (is_long) extra.u64(member.bytes).u64(member.bytes);
      if (is_far) extra.u64(member.offset);
    }
    const std::uint16_t version = extra.size() > 0 ? zip64_version : plain_version;
    constexpr std::uint16_t made_on_unix = 3 << 8;
    Record entry;
    entry.u32(0x02014b50).u16(made_on_unix | version).u16(version).u16(names_in_utf8);
    entry.u16(0).u16(0).u16(first_date).u32(member.crc32);
    entry.u32(is_long ? max_32 : member.bytes).u32(is_long ? max_32 : member.bytes);
    entry.u16(member.file_name.size()).u16(extra.size()).u16(0).u16(0).u16(0).u32(regular_file);
    entry.u32_or_all_ones(member.offset).text(member.file_name).text(extra.view());
    write(entry.bytes());
  }
  const std::uint64_t size = at_ - begin;
  const std::uint64_t end = at_;
  const std::uint64_t count = members_.size();
  Record last;
  if (count >= max_16 || size >= max_32 || begin >= max_32) {
    last.u32(0x06064b50).u64(44).u16(zip64_version).u16(zip64_version).u32(0).u32(0);
    last.u64(count).u64(count).u64(size).u64(begin);
    last.u32(0x07064b50).u32(0).u64(end).u32(1);
  }
  last.u32(0x06054b50).u16(0).u16(0).u16(std::min(count, max_16)).u16(std::min(count, max_16));
  last.u32_or_all_ones(size).u32_or_all_ones(begin).u16(0);
  write(last.bytes());
  file_.commit();
}

template void NpzWriter::add<float>(std::string_view, TensorView<const float>);
template void NpzWriter::add<double>(std::string_view, TensorView<const double>);
template void NpzWriter::add<std::int64_t>(std::string_view, TensorView<const std::int64_t>);

}  // namespace eckart

// Zip archives as far as NumPy writes them: stored and deflated members, zip64, data descriptors.
// Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
//
// What two readers could read differently is refused: a directory and a local header that disagree,
// members that overlap or have one name, bytes behind the end of the archive.
#pragma once

#include "eckart/io/findings.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// The bytes of an archive and the path that stands in findings.
struct ZipSource {
  std::span<const std::byte> bytes;
  std::string path;
};

/// What is needed to read a member.
struct ZipContent {
  bool deflated = false;
  std::uint32_t crc32 = 0;
  std::uint64_t compressed_bytes = 0;
  std::uint64_t bytes = 0;       // inflated
  std::uint64_t data_begin = 0;  // in the archive
};

/// A member as the central directory has it. Offsets are in bytes from the start of the archive.
struct ZipEntry {
  std::string name;
  ZipContent content;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t attributes = 0;       // Unix mode in the upper half
  std::uint64_t directory_begin = 0;  // its header in the directory
  std::uint64_t directory_end = 0;
  std::uint64_t local_begin = 0;  // its local header
  std::uint64_t end = 0;          // behind its data and data descriptor
};

/// The central directory.
struct ZipDirectory {
  std::uint64_t begin = 0;
  std::vector<ZipEntry> entries;  // in its order; content.data_begin and end are not known yet
};

/// Finds and reads the central directory. What breaks a rule goes to `findings`; nothing when there
/// is no directory. Memory is proportional to the archive's size.
std::optional<ZipDirectory> read_zip_directory(const ZipSource& source, Findings& findings);

/// Checks every entry by itself, against its local header and against the others, and fills in
/// where its data stands. What breaks a rule goes to `findings`; returns the entries without an
/// error, in the directory's order.
std::vector<ZipEntry> check_zip_entries(const ZipSource& source, ZipDirectory directory,
                                        Findings& findings);

/// What is wrong with a member's bytes.
struct ZipFault {
  std::string rule;
  std::string message;
};

/// Hands the first `wanted` bytes of a member to `sink`, piece by piece. When that is all of them,
/// their number, the end of the compressed bytes and the CRC-32 are checked too. Never inflates
/// more than was declared. Memory: 64 KiB.
std::optional<ZipFault> read_zip_content(
    const ZipSource& source, const ZipContent& content, std::uint64_t wanted,
    const std::function<void(std::span<const std::byte>)>& sink);

/// Little-endian numbers at a place, which the caller has checked.
inline std::uint64_t zip_number(std::span<const std::byte> bytes, std::uint64_t at, int n_bytes) {
  std::uint64_t value = 0;
  for (int i = n_bytes; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + static_cast<std::uint64_t>(i)]);
  }
  return value;
}
inline std::uint16_t zip_u16(std::span<const std::byte> bytes, std::uint64_t at) {
  return static_cast<std::uint16_t>(zip_number(bytes, at, 2));
}
inline std::uint32_t zip_u32(std::span<const std::byte> bytes, std::uint64_t at) {
  return static_cast<std::uint32_t>(zip_number(bytes, at, 4));
}

/// In these fields the largest number means that the true one stands in the zip64 extra field.
inline constexpr std::uint64_t zip_in_extra = 0xffffffff;

/// Sizes as a header has them, before and after the zip64 extra field is taken into account.
struct ZipSizes {
  std::uint64_t bytes = 0;
  std::uint64_t compressed_bytes = 0;
  std::uint64_t local_begin = 0;  // in the directory only
};
/// Takes from `extra`, the extra fields of a header, what stands there of `sizes`. A local header
/// has both sizes there or none. Nothing when the extra fields are broken or lack what is needed.
std::optional<ZipSizes> resolved_zip_sizes(ZipSizes sizes, std::span<const std::byte> extra,
                                           bool is_local);

/// A finding about a member, without a place.
Finding zip_finding(const ZipSource& source, const ZipEntry& entry, std::string rule,
                    std::string message);

}  // namespace eckart

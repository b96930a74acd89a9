#include "eckart/io/validate.h"
#include "eckart/io/zip.h"

#include <algorithm>
#include <utility>

namespace eckart {
namespace {

constexpr std::uint32_t directory_mark = 0x02014b50;      // PK 01 02
constexpr std::uint32_t end_mark = 0x06054b50;            // PK 05 06
constexpr std::uint32_t zip64_end_mark = 0x06064b50;      // PK 06 06
constexpr std::uint32_t zip64_locator_mark = 0x07064b50;  // PK 06 07
constexpr std::uint64_t directory_header_bytes = 46;
constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t zip64_end_bytes = 56;
constexpr std::uint64_t zip64_locator_bytes = 20;
constexpr std::uint64_t max_comment_bytes = 0xffff;
constexpr std::uint16_t zip64_extra = 1;

// What the end records say of the directory.
struct End {
  std::uint64_t at = 0;  // where the first of the end records begins
  std::uint64_t n_entries = 0;
  std::uint64_t directory_bytes = 0;
  std::uint64_t directory_begin = 0;
  bool one_disk = true;
};

class DirectoryReader {
 public:
  DirectoryReader(const ZipSource& source, Findings& findings)
      : source_(source), bytes_(source.bytes), findings_(findings) {}

  std::optional<ZipDirectory> read() {
    const std::optional<std::uint64_t> end_at = find_end();
    if (!end_at) return std::nullopt;
    std::optional<End> end = read_end(*end_at);
    if (!end || !check(*end)) return std::nullopt;
    ZipDirectory directory;
    directory.begin = end->directory_begin;
    std::uint64_t at = end->directory_begin;
    for (std::uint64_t i = 0; i < end->n_entries; ++i) {
      if (!read_entry(at, end->at, directory)) return std::nullopt;
    }
    if (at != end->at) {
      fail(at, end->at,
           "the directory says that it has " + std::to_string(end->n_entries) +
               " members, but more bytes follow them");
      return std::nullopt;
    }
    return directory;
  }

 private:
  // The end record is the last thing in an archive but for a comment, whose length it states.
  std::optional<std::uint64_t> find_end() {
    if (bytes_.size() >= end_bytes) {
      const std::uint64_t last = bytes_.size() - end_bytes;
      const std::uint64_t first = last - std::min(last, max_comment_bytes);
      std::optional<std::uint64_t> misplaced;
      for (std::uint64_t at = last + 1; at-- > first;) {
        if (zip_u32(bytes_, at) != end_mark) continue;
        if (zip_u16(bytes_, at + 20) == last - at) return at;
        if (!misplaced) misplaced = at;
      }
      if (misplaced) {
        const std::uint64_t stated = zip_u16(bytes_, *misplaced + 20);
        fail(*misplaced, bytes_.size(),
             "the archive's end record announces a comment of " + std::to_string(stated) +
                 " bytes, but " + std::to_string(last - *misplaced) + " follow it");
        return std::nullopt;
      }
    }
    const bool is_zip =
        bytes_.size() >= 2 && bytes_[0] == std::byte{'P'} && bytes_[1] == std::byte{'K'};
    const auto mistaken = is_zip ? std::nullopt : recognize(bytes_);
    if (mistaken) {
      findings_.add({Severity::error,
                     source_.path,
                     {},
                     {},
                     {},
                     mistaken->rule,
                     mistaken->message,
                     mistaken->hint});
    } else if (bytes_.empty()) {
      fail(0, 0, "the file is empty");
    } else if (is_zip) {
      fail(0, bytes_.size(),
           "the archive's directory, which stands at its end, is missing: the "
           "file was cut off",
           "copy or download it again");
    } else {
      fail(0, bytes_.size(), "the file is not a zip archive: it has no end record");
    }
    return std::nullopt;
  }

  std::optional<End> read_end(std::uint64_t at) {
    End end;
    end.at = at;
    end.one_disk = zip_u32(bytes_, at + 4) == 0;
    const std::uint64_t entries_here = zip_u16(bytes_, at + 8);
    end.n_entries = zip_u16(bytes_, at + 10);
    end.directory_bytes = zip_u32(bytes_, at + 12);
    end.directory_begin = zip_u32(bytes_, at + 16);
    if (at >= zip64_locator_bytes &&
        zip_u32(bytes_, at - zip64_locator_bytes) == zip64_locator_mark) {
      return read_zip64_end(at, end);
    }
    if (entries_here != end.n_entries) end.one_disk = false;
    return end;
  }

  std::optional<End> read_zip64_end(std::uint64_t at, const End& small) {
    const std::uint64_t locator = at - zip64_locator_bytes;
    const std::uint64_t record = zip_number(bytes_, locator + 8, 8);
    if (record > locator || locator - record < zip64_end_bytes ||
        zip_u32(bytes_, record) != zip64_end_mark ||
        zip_number(bytes_, record + 4, 8) != locator - record - 12) {
      fail(locator, at, "the zip64 end record is not where its locator says");
      return std::nullopt;
    }
    End end;
    end.at = record;
    end.n_entries = zip_number(bytes_, record + 32, 8);
    end.directory_bytes = zip_number(bytes_, record + 40, 8);
    end.directory_begin = zip_number(bytes_, record + 48, 8);
    end.one_disk = zip_u32(bytes_, record + 16) == 0 && zip_u32(bytes_, record + 20) == 0 &&
                   zip_number(bytes_, record + 24, 8) == end.n_entries &&
                   zip_u32(bytes_, locator + 4) == 0 && zip_u32(bytes_, locator + 16) <= 1;
    const auto agrees = [](std::uint64_t field, std::uint64_t most, std::uint64_t truth) {
      return field == most || field == truth;
    };
    if (!agrees(small.n_entries, 0xffff, end.n_entries) ||
        !agrees(small.directory_bytes, zip_in_extra, end.directory_bytes) ||
        !agrees(small.directory_begin, zip_in_extra, end.directory_begin)) {
      fail(record, at + end_bytes, "the end record and the zip64 end record disagree");
      return std::nullopt;
    }
    return end;
  }

  bool check(const End& end) {
    if (!end.one_disk) {
      return fail(end.at, bytes_.size(), "the archive is one of several parts",
                  "join the parts to one archive first");
    }
    // Bytes before the archive would shift all offsets, and readers shift them differently.
    if (end.directory_begin > end.at || end.at - end.directory_begin != end.directory_bytes) {
      return fail(end.at, bytes_.size(),
                  "the directory is said to take " + std::to_string(end.directory_bytes) +
                      " bytes from byte " + std::to_string(end.directory_begin) +
                      " on, but it must reach to the end record at byte " + std::to_string(end.at));
    }
    if (end.n_entries > end.directory_bytes / directory_header_bytes) {
      return fail(end.directory_begin, end.at,
                  "the directory is said to have " + std::to_string(end.n_entries) +
                      " members, but its " + std::to_string(end.directory_bytes) +
                      " bytes have no room for them");
    }
    return true;
  }

  // Reads one header of the directory, which ends at `end`, and moves `at` behind it.
  bool read_entry(std::uint64_t& at, std::uint64_t end, ZipDirectory& directory) {
    const std::string number = std::to_string(directory.entries.size() + 1);
    if (end - at < directory_header_bytes || zip_u32(bytes_, at) != directory_mark) {
      return fail(at, end, "member " + number + " of the directory has no header");
    }
    const std::uint64_t name_bytes = zip_u16(bytes_, at + 28);
    const std::uint64_t extra_bytes = zip_u16(bytes_, at + 30);
    const std::uint64_t comment_bytes = zip_u16(bytes_, at + 32);
    const std::uint64_t header_bytes =
        directory_header_bytes + name_bytes + extra_bytes + comment_bytes;
    if (header_bytes > end - at) {
      return fail(at, end, "the header of member " + number + " runs beyond the directory");
    }
    ZipEntry entry;
    const auto name = bytes_.subspan(at + directory_header_bytes, name_bytes);
    entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    entry.flags = zip_u16(bytes_, at + 8);
    entry.method = zip_u16(bytes_, at + 10);
    entry.content.crc32 = zip_u32(bytes_, at + 16);
    entry.attributes = zip_u32(bytes_, at + 38);
    entry.directory_begin = at;
    entry.directory_end = at + header_bytes;
    const std::optional<ZipSizes> sizes = resolved_zip_sizes(
        {zip_u32(bytes_, at + 24), zip_u32(bytes_, at + 20), zip_u32(bytes_, at + 42)},
        bytes_.subspan(at + directory_header_bytes + name_bytes, extra_bytes), false);
    if (!sizes) {
      return fail(at, at + header_bytes,
                  "the extra fields of member " + number + " are broken or lack its zip64 sizes");
    }
    entry.content.bytes = sizes->bytes;
    entry.content.compressed_bytes = sizes->compressed_bytes;
    entry.content.deflated = entry.method == 8;
    entry.local_begin = sizes->local_begin;
    directory.entries.push_back(std::move(entry));
    at += header_bytes;
    return true;
  }

  bool fail(std::uint64_t begin, std::uint64_t end, const std::string& message,
            const std::string& hint = {}) {
    findings_.add({Severity::error, source_.path, {}, begin, end, "npz_directory", message, hint});
    return false;
  }

  const ZipSource& source_;
  std::span<const std::byte> bytes_;
  Findings& findings_;
};

}  // namespace

std::optional<ZipDirectory> read_zip_directory(const ZipSource& source, Findings& findings) {
  return DirectoryReader(source, findings).read();
}

std::optional<ZipSizes> resolved_zip_sizes(ZipSizes sizes, std::span<const std::byte> extra,
                                           bool is_local) {
  std::optional<std::span<const std::byte>> zip64;
  while (!extra.empty()) {
    if (extra.size() < 4) return std::nullopt;
    const std::uint64_t length = zip_u16(extra, 2);
    if (length > extra.size() - 4) return std::nullopt;
    if (zip_u16(extra, 0) == zip64_extra) {
      if (zip64) return std::nullopt;
      zip64 = extra.subspan(4, length);
    }
    extra = extra.subspan(4 + length);
  }
  const bool both = is_local && zip64 && zip64->size() >= 16;
  std::uint64_t taken = 0;
  for (std::uint64_t* const field : {&sizes.bytes, &sizes.compressed_bytes, &sizes.local_begin}) {
    if (*field == zip_in_extra) {
      if (!zip64 || zip64->size() < taken + 8) return std::nullopt;
      *field = zip_number(*zip64, taken, 8);
      taken += 8;
    } else if (both) {
      taken += 8;
    }
  }
  return sizes;
}

}  // namespace eckart

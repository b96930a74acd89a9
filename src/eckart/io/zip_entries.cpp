#include "eckart/io/utf8.h"
#include "eckart/io/zip.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

constexpr std::uint32_t local_mark = 0x04034b50;       // PK 03 04
constexpr std::uint32_t descriptor_mark = 0x08074b50;  // PK 07 08
constexpr std::uint64_t local_header_bytes = 30;
constexpr std::uint16_t encrypted_flags = 1U << 0 | 1U << 6 | 1U << 13;
constexpr std::uint16_t descriptor_flag = 1U << 3;
constexpr std::uint16_t utf8_flag = 1U << 11;
// The flags that a local header must have in common with the directory.
constexpr std::uint16_t compared_flags = encrypted_flags | descriptor_flag | utf8_flag;

constexpr std::uint32_t unix_type = 0170000;
constexpr std::uint32_t unix_file = 0100000;
constexpr std::uint32_t unix_folder = 0040000;
constexpr std::uint32_t unix_link = 0120000;

constexpr std::string_view npy_ending = ".npy";

// Why a name is refused, or an empty text.
std::string name_fault(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.find('\0') != std::string_view::npos) return "has a NUL in it";
  if (find_invalid_utf8(name)) return "is not UTF-8";
  if (name.find('\\') != std::string_view::npos) return "has a backslash in it";
  if (name.front() == '/') return "is an absolute path";
  if (name.size() > 1 && name[1] == ':') return "names a drive";
  while (!name.empty()) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part == "..") return "leaves its folder";
    if (part.empty() || part == ".") return "has an empty part";
    if (slash == std::string_view::npos) break;
    name.remove_prefix(slash + 1);
  }
  return {};
}

std::string method_name(std::uint16_t method) {
  constexpr std::array<std::pair<int, const char*>, 9> names = {{{1, "shrink"},
                                                                 {6, "implode"},
                                                                 {9, "deflate64"},
                                                                 {12, "bzip2"},
                                                                 {14, "LZMA"},
                                                                 {93, "Zstandard"},
                                                                 {95, "xz"},
                                                                 {98, "PPMd"},
                                                                 {99, "AES encryption"}}};
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& entry) { return entry.first == method; });
  return found == names.end() ? "method " + std::to_string(method) : found->second;
}

class EntryChecker {
 public:
  EntryChecker(const ZipSource& source, std::uint64_t directory_begin, Findings& findings)
      : source_(source), bytes_(source.bytes.first(directory_begin)), findings_(findings) {}

  // `is_repeat`: an entry before it has the same name.
  bool check(ZipEntry& entry, bool is_repeat) {
    const std::string fault = name_fault(entry.name);
    if (!fault.empty()) {
      return fail(entry, "npz_name",
                  "the member's name \"" + printable(entry.name) + "\" " + fault +
                      ", but it must be a plain path inside the archive");
    }
    if (is_repeat) {
      return fail(entry, "npz_duplicate",
                  "two members have this name, and readers differ in which "
                  "one they take");
    }
    if ((entry.flags & encrypted_flags) != 0) {
      return fail(entry, "npz_encrypted", "the member is encrypted",
                  "unpack the archive with its password and save the arrays again");
    }
    if (!check_type(entry)) return false;
    if (entry.method != 0 && entry.method != 8) {
      return fail(entry, "npz_method",
                  "the member is compressed with " + method_name(entry.method) +
                      ", but only stored and deflated ones are read",
                  "save the arrays again with np.savez_compressed");
    }
    if (!entry.content.deflated && entry.content.compressed_bytes != entry.content.bytes) {
      return fail(entry, "npz_size",
                  "the member is stored, but its two sizes differ: " +
                      std::to_string(entry.content.compressed_bytes) + " and " +
                      std::to_string(entry.content.bytes) + " bytes");
    }
    return check_local(entry) && check_descriptor(entry);
  }

 private:
  bool check_type(const ZipEntry& entry) {
    const std::uint32_t type = entry.attributes >> 16 & unix_type;
    const bool is_plain = type == 0 || type == unix_file || type == unix_folder;
    return is_plain || fail(entry, "npz_symlink",
                            std::string("the member is ") +
                                (type == unix_link ? "a symbolic link" : "a device or a pipe") +
                                ", not a file");
  }

  bool check_local(ZipEntry& entry) {
    const std::uint64_t at = entry.local_begin;
    if (at > bytes_.size() || bytes_.size() - at < local_header_bytes ||
        zip_u32(bytes_, at) != local_mark) {
      return fail(entry, "npz_local_header",
                  "the member's local header is said to be at byte " + std::to_string(at) +
                      ", but there is none");
    }
    const std::uint64_t name_bytes = zip_u16(bytes_, at + 26);
    const std::uint64_t extra_bytes = zip_u16(bytes_, at + 28);
    const std::uint64_t rest = bytes_.size() - at - local_header_bytes;
    if (name_bytes + extra_bytes > rest ||
        entry.content.compressed_bytes > rest - name_bytes - extra_bytes) {
      return fail(entry, "npz_local_header",
                  "the member is said to have " + std::to_string(entry.content.compressed_bytes) +
                      " bytes from byte " + std::to_string(at) +
                      " on, which would reach into the directory");
    }
    const auto name = bytes_.subspan(at + local_header_bytes, name_bytes);
    if (std::string_view(reinterpret_cast<const char*>(name.data()), name.size()) != entry.name) {
      return disagree(entry, "name");
    }
    if ((zip_u16(bytes_, at + 6) & compared_flags) != (entry.flags & compared_flags)) {
      return disagree(entry, "flags");
    }
    if (zip_u16(bytes_, at + 8) != entry.method) return disagree(entry, "method");
    const std::optional<ZipSizes> sizes =
        resolved_zip_sizes({zip_u32(bytes_, at + 22), zip_u32(bytes_, at + 18), 0},
                           bytes_.subspan(at + local_header_bytes + name_bytes, extra_bytes), true);
    if (!sizes) {
      return fail(entry, "npz_local_header",
                  "the extra fields of the local header are broken or lack its zip64 sizes");
    }
    // With a data descriptor the local header may leave open what was not known yet.
    const bool may_be_open = (entry.flags & descriptor_flag) != 0;
    const auto agrees = [&](std::uint64_t local, std::uint64_t truth) {
      return local == truth || (may_be_open && local == 0);
    };
    if (!agrees(sizes->bytes, entry.content.bytes)) return disagree(entry, "size");
    if (!agrees(sizes->compressed_bytes, entry.content.compressed_bytes)) {
      return disagree(entry, "compressed size");
    }
    if (!agrees(zip_u32(bytes_, at + 14), entry.content.crc32)) return disagree(entry, "CRC-32");
    entry.content.data_begin = at + local_header_bytes + name_bytes + extra_bytes;
    entry.end = entry.content.data_begin + entry.content.compressed_bytes;
    return true;
  }

  // CRC-32 and sizes behind the data; with or without a mark, with sizes of 4 or 8 bytes.
  bool check_descriptor(ZipEntry& entry) {
    if ((entry.flags & descriptor_flag) == 0) return true;
    const std::uint64_t rest = bytes_.size() - entry.end;
    for (const std::uint64_t mark_bytes : {std::uint64_t{4}, std::uint64_t{0}}) {
      for (const int size_bytes : {4, 8}) {
        const std::uint64_t length = mark_bytes + 4 + 2 * static_cast<std::uint64_t>(size_bytes);
        if (length > rest) continue;
        const std::uint64_t at = entry.end + mark_bytes;
        const std::uint64_t second = at + 4 + static_cast<std::uint64_t>(size_bytes);
        if ((mark_bytes > 0 && zip_u32(bytes_, entry.end) != descriptor_mark) ||
            zip_u32(bytes_, at) != entry.content.crc32 ||
            zip_number(bytes_, at + 4, size_bytes) != entry.content.compressed_bytes ||
            zip_number(bytes_, second, size_bytes) != entry.content.bytes) {
          continue;
        }
        entry.end += length;
        return true;
      }
    }
    return fail(entry, "npz_local_header",
                "no data descriptor with the directory's sizes and CRC-32 follows the data");
  }

  bool disagree(const ZipEntry& entry, const std::string& what) {
    return fail(entry, "npz_local_header",
                "the directory and the local header at byte " + std::to_string(entry.local_begin) +
                    " disagree about the " + what);
  }

  bool fail(const ZipEntry& entry, std::string rule, std::string message, std::string hint = {}) {
    Finding finding = zip_finding(source_, entry, std::move(rule), std::move(message));
    finding.hint = std::move(hint);
    finding.begin = entry.directory_begin;
    finding.end = entry.directory_end;
    findings_.add(std::move(finding));
    return false;
  }

  const ZipSource& source_;
  std::span<const std::byte> bytes_;  // up to the directory
  Findings& findings_;
};

// Which entries have the name of one before them. Sorted, not hashed: a hostile archive can choose
// names that collide.
std::vector<bool> repeated_names(const std::vector<ZipEntry>& entries) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int compared = entries[a].name.compare(entries[b].name);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::vector<bool> is_repeat(entries.size(), false);
  for (std::size_t i = 1; i < order.size(); ++i) {
    is_repeat[order[i]] = entries[order[i]].name == entries[order[i - 1]].name;
  }
  return is_repeat;
}

struct Extent {
  std::uint64_t directory_begin = 0;
  bool is_complete = false;  // the entries are all that the directory has
};

// Members that share bytes are how an archive of 40 kB unpacks to 5 GB.
bool check_overlaps(const ZipSource& source, const std::vector<ZipEntry>& entries,
                    const Extent& extent, Findings& findings) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return entries[a].local_begin < entries[b].local_begin;
  });
  bool sound = true;
  std::uint64_t end = 0;
  const auto warn_gap = [&](std::uint64_t begin) {
    // Without the members that have errors of their own there are gaps that mean nothing.
    if (!extent.is_complete) return;
    findings.add({Severity::warning,
                  source.path,
                  {},
                  end,
                  begin,
                  "npz_gap",
                  std::to_string(begin - end) + " bytes belong to no member",
                  {}});
  };
  for (const std::size_t i : order) {
    const ZipEntry& entry = entries[i];
    if (entry.local_begin < end) {
      Finding finding =
          zip_finding(source, entry, "npz_overlap",
                      "the member begins at byte " + std::to_string(entry.local_begin) +
                          ", but the one before it ends at byte " + std::to_string(end));
      finding.begin = entry.local_begin;
      finding.end = entry.end;
      findings.add(std::move(finding));
      sound = false;
    } else if (entry.local_begin > end) {
      warn_gap(entry.local_begin);
    }
    end = std::max(end, entry.end);
  }
  if (end < extent.directory_begin) warn_gap(extent.directory_begin);
  return sound;
}

}  // namespace

Finding zip_finding(const ZipSource& source, const ZipEntry& entry, std::string rule,
                    std::string message) {
  Finding finding;
  finding.file = source.path;
  finding.tensor = entry.name;
  if (entry.name.ends_with(npy_ending)) {
    finding.tensor.resize(entry.name.size() - npy_ending.size());
  }
  finding.rule = std::move(rule);
  finding.message = std::move(message);
  return finding;
}

std::vector<ZipEntry> check_zip_entries(const ZipSource& source, ZipDirectory directory,
                                        Findings& findings) {
  EntryChecker checker(source, directory.begin, findings);
  std::vector<ZipEntry>& entries = directory.entries;
  const std::vector<bool> is_repeat = repeated_names(entries);
  std::vector<ZipEntry> sound;
  sound.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (checker.check(entries[i], is_repeat[i])) sound.push_back(std::move(entries[i]));
  }
  const Extent extent{directory.begin, sound.size() == entries.size()};
  if (!check_overlaps(source, sound, extent, findings)) sound.clear();
  return sound;
}

}  // namespace eckart

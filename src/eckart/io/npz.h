// NumPy's .npz: a zip archive of .npy files, stored or deflated, zip64 included.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/npy.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// One array of an archive.
struct NpzMember {
  std::string name;  // without `.npy`
  NpyHeader header;
  std::uint64_t compressed_bytes = 0;
  std::uint64_t bytes = 0;  // inflated, header included
  bool deflated = false;
  std::uint32_t crc32 = 0;
  std::uint64_t data_begin = 0;  // where its (compressed) bytes begin in the archive
};

struct NpzLimits {
  /// Inflated bytes of one member.
  std::uint64_t max_member_bytes = std::uint64_t{1} << 36;
  /// Inflated bytes of all members together.
  std::uint64_t max_total_bytes = std::uint64_t{1} << 38;
  /// Inflated over compressed size of a member larger than 1 MiB, and of all members together over
  /// the archive. Deflate can't exceed 1032.
  double max_ratio = 200;
};

/// Reads the central directory and every member's header, and checks every rule: local headers
/// agree, no name twice, no name that leaves a folder, no encryption, no symlink, no bytes that two
/// members share, declared sizes within the limits and true. `verify` inflates every member and
/// compares its CRC-32. Returns the arrays without an error, in the directory's order.
/// Cost: proportional to the number of members, with `verify` to the archive's inflated size; no
/// more than 64 KiB of a member is held in memory.
std::vector<NpzMember> read_npz_directory(const MappedFile& file, bool verify, Findings& findings,
                                          const NpzLimits& limits = {});

/// An open archive.
class NpzFile {
 public:
  const std::string& path() const { return file_.path(); }
  const std::vector<NpzMember>& members() const { return members_; }
  /// One array as float or double, as `load_npy` does. Throws ArgumentError, listing the names,
  /// when there is none of that name; FormatError when its bytes break a rule, its CRC-32 differs
  /// or its elements are no numbers; FileError when there is not the memory for it. Memory: the
  /// result, and the inflated bytes where a deflated member's elements are not those of the result.
  template <class T>
  Tensor<T> load(std::string_view name, const NpyOptions& options = {}) const;

 private:
  friend NpzFile open_npz(const std::filesystem::path& path, const NpzLimits& limits);

  const NpzMember& require(std::string_view name) const;

  MappedFile file_;
  std::vector<NpzMember> members_;
};

/// Maps an archive and reads its directory. Throws FormatError at the first broken rule, FileError
/// when it can't be opened.
NpzFile open_npz(const std::filesystem::path& path, const NpzLimits& limits = {});

}  // namespace eckart

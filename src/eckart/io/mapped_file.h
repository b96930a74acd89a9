// A file's bytes as memory, read-only, without reading what is not looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace eckart {

/// A read-only mapping of a whole regular file. Movable; the mapping ends with the object.
/// A file that another process shortens while it is mapped makes the system send SIGBUS on access.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Reads [begin, end) ahead into memory, so that a pass over it takes no page faults. A wish.
  void prefetch(std::uint64_t begin, std::uint64_t end) const;
  /// Gives the memory of [begin, end) back to the system; the bytes stay readable. A wish.
  void release(std::uint64_t begin, std::uint64_t end) const;

 private:
  friend MappedFile open_mapped(const std::filesystem::path& path);

  std::string path_;
  std::span<const std::byte> bytes_;
};

/// Maps a regular file. Throws FileError, with the system's reason, when it does not exist, can't
/// be read, or is a folder, a pipe or a device.
MappedFile open_mapped(const std::filesystem::path& path);

}  // namespace eckart

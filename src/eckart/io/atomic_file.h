// Writing a file so that its reader sees the old one or the whole new one, never a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace eckart {

/// A file being written beside its target: nothing stands at the target until `commit`, which
/// syncs the bytes, renames and syncs the folder. Destroyed without a commit it leaves nothing
/// behind, and where the file system can (O_TMPFILE), neither does a killed process.
class AtomicFile {
 public:
  /// Throws FileError when the target's folder does not exist or can't be written, or when the
  /// target is something else than a regular file.
  explicit AtomicFile(std::filesystem::path target);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Reserves room for `size` bytes, so that a full disk is known before any work. Throws
  /// FileError.
  void reserve(std::uint64_t size);
  /// Appends. Throws FileError (a full disk says so, with the bytes that were missing).
  void write(std::span<const std::byte> bytes);
  /// Writes at `offset`, which may be anywhere. May be called from several threads.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Puts the file in the target's place. Throws FileError; the target is then as it was.
  void commit();

 private:
  std::filesystem::path target_;
  std::string temporary_;  // empty while the file has no name
  int descriptor_ = -1;
  std::uint64_t end_ = 0;
};

/// Writes `text` to `path` atomically.
void save_text(const std::filesystem::path& path, const std::string& text);

}  // namespace eckart

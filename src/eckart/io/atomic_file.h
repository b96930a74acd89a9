// Writing a file so that its reader sees the old one or the whole new one, never a part.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace eckart {

/// A file being written beside its target: nothing stands at the target until `commit`, which
/// syncs the bytes, renames and syncs the folder. Destroyed without a commit it leaves nothing
/// behind, and where the file system can (O_TMPFILE), neither does a killed process.
///
/// A target that is a symbolic link stays one: what it points to is replaced. The new file has the
/// owner (where the system allows it) and the permissions of the one it replaces, else those of any
/// new file.
class AtomicFile {
 public:
  /// Throws FileError when the target's folder does not exist or can't be written, or when the
  /// target is something else than a regular file, or write-protected.
  explicit AtomicFile(std::filesystem::path target);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Reserves room for `size` bytes, so that a full disk is known before any work; does nothing on
  /// a file system that can't. Throws FileError.
  void reserve(std::uint64_t size);
  /// Appends: writes behind the last byte that any call wrote. Throws FileError (a full disk says
  /// so, with the bytes that could be written).
  void write(std::span<const std::byte> bytes);
  /// Writes at `offset`, which may be anywhere. May be called from several threads.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Syncs the bytes to the disk, so that what `commit` still has to do is a rename. `commit` calls
  /// it; a caller with several files calls it on each before the first commit. Throws FileError.
  void sync();
  /// Puts the file in the target's place. Throws FileError; the target is then as it was, except
  /// where the message says that only the folder could not be synced.
  void commit();
  /// The same where nothing stands: throws FileError when anything is there by now, which stays.
  void commit_new();

 private:
  void open_temporary();
  void take_over_permissions();
  void put_in_place(void (AtomicFile::*take_name)());
  void link_or_rename();
  void take_free_name();
  [[noreturn]] void fail(int error, const std::string& what) const;
  std::string progress(std::uint64_t wanted) const;

  std::filesystem::path asked_;   // as given, for messages
  std::filesystem::path target_;  // symbolic links followed
  std::string temporary_;         // path of the file; empty while it has no name
  int descriptor_ = -1;
  std::atomic<bool> synced_ = false;
  std::uint64_t reserved_ = 0;
  std::atomic<std::uint64_t> written_ = 0;  // bytes that the system took, counted for messages
  std::atomic<std::uint64_t> end_ = 0;      // behind the last byte written
};

/// Writes `text` to `path` atomically. Throws FileError as AtomicFile.
void save_text(const std::filesystem::path& path, std::string_view text);
/// The same of a file that was opened before the text was made: `commit` is called here.
void save_text(AtomicFile& file, std::string_view text);

}  // namespace eckart

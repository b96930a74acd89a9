// A folder of results that appears whole or not at all, and that a killed run goes on with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// What a run is made from: the same inputs and options make the same fingerprint, and only then
/// are finished parts taken over.
class Fingerprint {
 public:
  void add(std::string_view text);
  /// Path, size, time of the last change, the safetensors header and 64 blocks of 16 KiB, evenly
  /// spread from the first bytes behind it to the file's last ones (or, of files up to 1 MiB, all
  /// bytes). A change of other bytes that keeps size and time is not seen.
  void add_file(const std::filesystem::path& path);
  std::string text() const;  // 32 hexadecimal digits
  /// Throws FileError when the size or time of a file is no longer what it was when it was added.
  void check_unchanged() const;

 private:
  struct File {
    std::filesystem::path path;
    std::string facts;
  };
  std::string collected_;
  std::vector<File> files_;
};

/// The folder is filled as `TARGET.partial`, beside the target, and takes its name at the end.
///
/// Its `manifest.jsonl` lists finished parts, each with the hash (XXH3, 128 bit) of its bytes: what
/// a killed run has finished is kept when the fingerprint is the same and the hash fits; a torn last
/// line or a part that does not fit is made again.
class OutputFolder {
 public:
  /// Throws FileError when the target exists and is not an empty folder (a result is never
  /// overwritten), when its parent does not exist or can't be written, when `TARGET.partial` belongs
  /// to another run (another fingerprint: the hint says to remove it) or is in use by a running one.
  OutputFolder(std::filesystem::path target, const Fingerprint& fingerprint);
  /// Removes the partial folder when no part was finished in it; else leaves it for the next run.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& target() const { return target_; }
  /// Whether this run goes on where another was cut off.
  bool is_resumed() const { return is_resumed_; }

  /// Parts: finished pieces of work, by name. `note` is text (UTF-8) that is kept with the part.
  bool has_part(const std::string& name) const { return by_name_.count(name) != 0; }
  /// Throws ArgumentError when there is no such part, as `part_path`.
  const std::string& part_note(const std::string& name) const;
  std::vector<std::string> parts() const;  // in the order in which they were finished
  /// Where its bytes lie.
  std::filesystem::path part_path(const std::string& name) const;
  /// Writes the bytes and lists the part. Atomic: it is there whole, or not. A part of a name that
  /// is there already takes its place. Throws FileError.
  void add_part(const std::string& name, std::span<const std::byte> bytes,
                const std::string& note = {});

  /// Lists a part whose bytes lie in a file of the result. It is listed again by the next run, which
  /// then finds that file as it was left, and whose caller has to check the bytes by what the note
  /// says of them. Not synced: a power failure may take the last ones. Throws FileError.
  void note_part(const std::string& name, const std::string& note);

  /// Throws FileError when the disk has not room for so many bytes, with those that are free.
  void check_room(std::uint64_t bytes) const;

  /// Where a file of the result is to be written: a folder that only the result is in.
  std::filesystem::path result_path(const std::string& file_name) const;
  /// Syncs the result's files (unless told not to: a power failure soon after may then leave them
  /// incomplete) and folders, gives it the target's name, and removes parts and manifest. Killed in
  /// between it leaves either the partial folder or the whole target. Throws FileError; when a file
  /// of the fingerprint has changed since it was taken, all is discarded.
  void commit(bool is_synced = true);
  /// Removes all that was written: for work that no later run could end. The name is free then.
  void discard();
  /// Removes all of the result but these files (names below the result's folder): what a run that
  /// was cut off has left of another plan. Throws FileError.
  void keep_only(const std::set<std::filesystem::path>& files) const;
  /// Calls `write`; when it throws an std::invalid_argument, as no later run of the same inputs would
  /// end better, or a file of the fingerprint has changed meanwhile, all is discarded.
  void fill(const std::function<void()>& write);

 private:
  struct Part {
    std::string name;
    std::string file;  // empty: in the result
    std::string note;
  };

  void check_target() const;
  void lock();
  bool is_own() const;
  void leave();
  void make_folders();
  void discard_if_changed();
  void read_manifest(const std::string& fingerprint);
  bool read_line(const std::string& line);
  void append(const std::string& line, bool is_synced);
  void list(Part part);
  const Part& require(const std::string& name) const;

  std::filesystem::path target_;  // as given, for messages
  std::filesystem::path place_;   // absolute, symbolic links followed
  std::filesystem::path partial_;
  Fingerprint fingerprint_;
  int lock_ = -1;
  int manifest_ = -1;
  bool is_resumed_ = false;
  std::size_t n_files_ = 0;  // of parts, also of those that did not fit
  std::vector<Part> parts_;
  std::map<std::string, std::size_t> by_name_;  // into parts_
};

}  // namespace eckart

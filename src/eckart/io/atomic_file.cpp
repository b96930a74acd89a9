#include "eckart/io/atomic_file.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/write_error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;

constexpr int max_links = 40;     // as many symbolic links as Linux itself follows
constexpr int max_attempts = 16;  // random names tried; two equal ones are already a wonder
constexpr std::size_t max_stem_bytes = 200;  // leaves room for the affixes in a 255-byte file name

std::string shown(const fs::path& path) { return printable_path(path.string()); }

[[noreturn]] void refuse(const fs::path& asked, const std::string& why,
                         const std::string& hint = {}) {
  throw_file_error(asked.string(), "save: " + shown(asked) + " can't be written, " + why, hint);
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// The file that a write to `asked` would reach, which need not exist.
fs::path followed(const fs::path& asked) {
  fs::path target = asked;
  for (int i = 0; i < max_links; ++i) {
    std::error_code no_link;
    const fs::path next = fs::read_symlink(target, no_link);
    if (no_link) return target;
    target = next.is_absolute() ? next : folder_of(target) / next;
  }
  refuse(asked, detail::write_error_text(ELOOP));
}

// Throws unless `target` is a regular file that may be written, or nothing at all.
void check_target(const fs::path& asked, const fs::path& target) {
  if (!target.has_filename()) refuse(asked, "because it names a folder", "add a file name");
  struct stat facts {};
  if (lstat(target.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;  // the folder's own error says more
    refuse(asked, detail::write_error_text(errno), detail::write_error_hint(errno));
  }
  if (S_ISDIR(facts.st_mode)) refuse(asked, "because it is a folder", "add a file name");
  if (!S_ISREG(facts.st_mode)) {
    const char* const kind = S_ISFIFO(facts.st_mode)   ? "a pipe"
                             : S_ISSOCK(facts.st_mode) ? "a socket"
                                                       : "a device";
    refuse(asked, "because it is " + std::string(kind) + ", not a regular file");
  }
  // A rename would get around the protection that any other write respects.
  if (faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0) {
    refuse(asked,
           errno == EROFS ? detail::write_error_text(errno)
                          : "because the file there is write-protected",
           errno == EROFS ? detail::write_error_hint(errno)
                          : "`chmod u+w` it, or choose another name");
  }
}

std::string temporary_name(const fs::path& target) {
  std::random_device random;
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".%08x%08x.tmp", random(), random());
  const std::string stem = target.filename().string().substr(0, max_stem_bytes);
  return (folder_of(target) / ('.' + stem + suffix)).string();
}

std::string own_path(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

// Whether /proc shows this descriptor, which is how a file without a name is given one.
bool is_linkable(int descriptor) {
  struct stat direct {};
  struct stat by_path {};
  return fstat(descriptor, &direct) == 0 && stat(own_path(descriptor).c_str(), &by_path) == 0 &&
         direct.st_ino == by_path.st_ino && direct.st_dev == by_path.st_dev;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target)
    : asked_(std::move(target)), target_(followed(asked_)) {
  check_target(asked_, target_);
  open_temporary();
  take_over_permissions();
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : asked_(std::move(other.asked_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      synced_(other.synced_.load()),
      reserved_(other.reserved_),
      written_(other.written_.load()),
      end_(other.end_.load()) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  if (descriptor_ >= 0) close(descriptor_);
}

void AtomicFile::open_temporary() {
  const fs::path folder = folder_of(target_);
  descriptor_ = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) {
    if (is_linkable(descriptor_)) return;
    close(std::exchange(descriptor_, -1));
  }
  // Some file systems have no nameless files, and each says so with another error: a named one
  // then finds out whether the folder can be written at all.
  for (int attempt = 0; descriptor_ < 0 && attempt < max_attempts; ++attempt) {
    const std::string name = temporary_name(target_);
    descriptor_ = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      temporary_ = name;
    } else if (errno == ENOENT || errno == ENOTDIR) {
      std::error_code unknown;
      const bool stands = fs::exists(folder, unknown);
      refuse(asked_, "because " + shown(folder) + (stands ? " is not a folder" : " does not exist"),
             stands ? "" : "make the folder first");
    } else if (errno != EEXIST) {
      fail(errno, {});
    }
  }
  if (descriptor_ < 0) fail(EEXIST, {});
}

void AtomicFile::take_over_permissions() {
  struct stat old {};
  if (lstat(target_.c_str(), &old) != 0) return;
  // Only root may give a file away, and only members of a group may give it to the group: else the
  // file is the writer's own, as any file that is written anew.
  const uid_t same_user = static_cast<uid_t>(-1);
  const gid_t same_group = static_cast<gid_t>(-1);
  bool kept = fchown(descriptor_, same_user, old.st_gid) == 0;
  kept = fchown(descriptor_, old.st_uid, same_group) == 0 && kept;
  // What the old group was allowed must not pass to another group.
  const mode_t mode = old.st_mode & (kept ? 0777 : 0707);
  if (fchmod(descriptor_, mode) != 0) fail(errno, {});
}

void AtomicFile::reserve(std::uint64_t size) {
  if (size == 0) return;
  if (size > static_cast<std::uint64_t>(INT64_MAX)) fail(EFBIG, {});
  int result = 0;
  do {
    result = fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  if (result == 0) {
    reserved_ = size;
    return;
  }
  const int error = errno;
  if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) return;
  struct statvfs space {};
  std::string free_bytes;
  if (error == ENOSPC && fstatvfs(descriptor_, &space) == 0) {
    free_bytes = ", and " +
                 std::to_string(static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize) +
                 " are free";
  }
  fail(error, "it takes " + std::to_string(size) + " bytes" + free_bytes);
}

void AtomicFile::write(std::span<const std::byte> bytes) { write_at(end_, bytes); }

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.size() > static_cast<std::uint64_t>(INT64_MAX) ||
      offset > static_cast<std::uint64_t>(INT64_MAX) - bytes.size()) {
    fail(EFBIG, {});
  }
  const std::uint64_t wanted = std::max({reserved_, end_.load(), offset + bytes.size()});
  while (!bytes.empty()) {
    const ssize_t taken =
        pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) fail(errno, progress(wanted));
    if (taken == 0) fail(EIO, progress(wanted));  // never seen, and would loop for ever
    const auto n = static_cast<std::size_t>(taken);
    written_ += n;
    offset += n;
    bytes = bytes.subspan(n);
    std::uint64_t end = end_;
    while (end < offset && !end_.compare_exchange_weak(end, offset)) {
    }
  }
  synced_ = false;
}

void AtomicFile::sync() {
  if (synced_) return;
  int result = 0;
  do {
    result = fsync(descriptor_);
  } while (result != 0 && errno == EINTR);
  if (result != 0) fail(errno, progress(std::max(reserved_, end_.load())));
  synced_ = true;
}

void AtomicFile::commit() { put_in_place(&AtomicFile::link_or_rename); }

void AtomicFile::commit_new() { put_in_place(&AtomicFile::take_free_name); }

void AtomicFile::put_in_place(void (AtomicFile::*take_name)()) {
  sync();
  const fs::path folder = folder_of(target_);
  // Opened before the rename, so that running out of descriptors is known in time. A folder that
  // may be written but not listed can't be opened; the system syncs it when it likes.
  const int folder_descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor < 0 && errno != EACCES) fail(errno, {});
  (this->*take_name)();
  close(std::exchange(descriptor_, -1));
  if (folder_descriptor < 0) return;
  const int result = fsync(folder_descriptor);
  const int error = errno;
  close(folder_descriptor);
  if (result != 0 && error != EINVAL && error != EROFS) {  // EINVAL: no such thing as a sync here
    throw_file_error(asked_.string(), "save: " + shown(asked_) +
                                          " is written, but its folder can't be synced, " +
                                          detail::write_error_text(error) +
                                          ": after a power failure it may be gone");
  }
}

void AtomicFile::link_or_rename() {
  if (temporary_.empty()) {
    // A new file gets its own name at once, so that not even a kill here leaves another one.
    const std::string self = own_path(descriptor_);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
    for (int attempt = 0; errno == EEXIST && attempt < max_attempts; ++attempt) {
      const std::string name = temporary_name(target_);
      if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        temporary_ = name;
        break;
      }
    }
    if (temporary_.empty()) fail(errno, {});
  }
  check_target(asked_, target_);  // it may have become a folder or a pipe meanwhile
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno, {});
  temporary_.clear();
}

void AtomicFile::take_free_name() {
  const std::string from = temporary_.empty() ? own_path(descriptor_) : temporary_;
  int result = -1;
  if (!temporary_.empty()) {
    result = renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE);
    if (result == 0) temporary_.clear();
  }
  // Some file systems rename over whatever is there, or not at all; a second name is never one of
  // something else. The first is removed with the object.
  const bool is_unknown = errno == EINVAL || errno == ENOSYS;
  if (result != 0 && (temporary_.empty() || is_unknown)) {
    result = linkat(AT_FDCWD, from.c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW);
  }
  if (result == 0) return;
  if (errno != EEXIST) fail(errno, {});
  refuse(asked_, "because it is there by now",
         "a result never overwrites another: remove it, or choose another name");
}

void AtomicFile::fail(int error, const std::string& what) const {
  refuse(asked_, detail::write_error_text(error) + (what.empty() ? "" : ": " + what),
         detail::write_error_hint(error));
}

std::string AtomicFile::progress(std::uint64_t wanted) const {
  return std::to_string(written_.load()) + " bytes of " + std::to_string(wanted) +
         " could be written";
}

void save_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  save_text(file, text);
}

void save_text(AtomicFile& file, std::string_view text) {
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace eckart

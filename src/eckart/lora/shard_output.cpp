#include "eckart/lora/shard_output.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/write_error.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace eckart {
namespace {

// Of a copy that has to go through this process.
constexpr std::size_t copy_buffer = std::size_t{1} << 20;

// Closes a descriptor on every way out.
class Source {
 public:
  explicit Source(const std::filesystem::path& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) {
      throw_file_error(path.string(), printable_path(path.string()) + ": can't be opened: " +
                                          std::generic_category().message(errno));
    }
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { close(descriptor_); }

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// What `read` or `write` of the system says, again after an interruption.
template <class Call>
ssize_t uninterrupted(const Call& call) {
  for (;;) {
    const ssize_t result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace

ShardOutput::ShardOutput(std::filesystem::path path, std::vector<TensorPlan> tensors,
                         const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)), layout_(lay_out_safetensors(std::move(tensors), metadata)) {
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    by_name_.emplace(layout_.tensors[i].name, i);
  }
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(errno);
  try {
    if (!has_head()) {
      if (ftruncate(descriptor_, 0) != 0) fail(errno);
      reserve();
      write(0, std::as_bytes(std::span(layout_.head)));
    }
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

ShardOutput::ShardOutput(ShardOutput&& other) noexcept
    : path_(std::move(other.path_)),
      layout_(std::move(other.layout_)),
      by_name_(std::move(other.by_name_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

ShardOutput::~ShardOutput() {
  if (descriptor_ >= 0) close(descriptor_);
}

const StoredTensor& ShardOutput::place(std::string_view name) const {
  return layout_.tensors[by_name_.at(name)];
}

bool ShardOutput::has_head() const {
  struct stat facts {};
  if (fstat(descriptor_, &facts) != 0 ||
      static_cast<std::uint64_t>(facts.st_size) != layout_.file_size()) {
    return false;
  }
  std::string head(layout_.head.size(), '\0');
  return read(0, std::as_writable_bytes(std::span(head))) && head == layout_.head;
}

// A full disk is known before anything is computed. The size is set too: a shorter file is one that
// was never begun.
void ShardOutput::reserve() const {
  const auto size = static_cast<off_t>(layout_.file_size());
  const ssize_t reserved =
      uninterrupted([&] { return static_cast<ssize_t>(fallocate(descriptor_, 0, 0, size)); });
  if (reserved == 0) return;
  const int error = errno;
  if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) {
    if (ftruncate(descriptor_, size) != 0) fail(errno);
    return;
  }
  struct statvfs space {};
  if (error == ENOSPC && fstatvfs(descriptor_, &space) == 0) {
    throw_file_error(
        path_.string(),
        "save: " + printable_path(path_.string()) + " can't be written, " +
            detail::write_error_text(error) + ": it takes " + std::to_string(size) +
            " bytes, and " +
            std::to_string(static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize) +
            " are free",
        detail::write_error_hint(error));
  }
  fail(error);
}

void ShardOutput::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t taken = uninterrupted([&] {
      return pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (taken <= 0) fail(taken < 0 ? errno : EIO);
    offset += static_cast<std::uint64_t>(taken);
    bytes = bytes.subspan(static_cast<std::size_t>(taken));
  }
}

void ShardOutput::copy(std::uint64_t offset, const std::filesystem::path& from, std::uint64_t begin,
                       std::uint64_t size) const {
  const Source source(from);
  auto in = static_cast<off_t>(begin);
  auto out = static_cast<off_t>(offset);
  while (size > 0) {
    const ssize_t taken = uninterrupted(
        [&] { return copy_file_range(source.descriptor(), &in, descriptor_, &out, size, 0); });
    if (taken > 0) {
      size -= static_cast<std::uint64_t>(taken);
      continue;
    }
    if (taken < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
      fail(errno);
    }
    break;  // between these two files the system can't
  }
  std::vector<std::byte> buffer(std::min<std::uint64_t>(size, copy_buffer));
  while (size > 0) {
    const std::size_t wanted = std::min<std::uint64_t>(size, buffer.size());
    const ssize_t n =
        uninterrupted([&] { return pread(source.descriptor(), buffer.data(), wanted, in); });
    if (n <= 0) {
      throw_file_error(from.string(), printable_path(from.string()) + ": can't be read: " +
                                          (n < 0 ? std::generic_category().message(errno)
                                                 : "it has become shorter"));
    }
    write(static_cast<std::uint64_t>(out), std::span(buffer).first(static_cast<std::size_t>(n)));
    in += n;
    out += n;
    size -= static_cast<std::uint64_t>(n);
  }
}

bool ShardOutput::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = uninterrupted(
        [&] { return pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (n <= 0) return false;
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

void ShardOutput::fail(int error) const {
  throw_file_error(path_.string(),
                   "save: " + printable_path(path_.string()) + " can't be written, " +
                       detail::write_error_text(error),
                   detail::write_error_hint(error));
}

}  // namespace eckart

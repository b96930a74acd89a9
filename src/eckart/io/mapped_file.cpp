#include "eckart/io/mapped_file.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace eckart {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

// Closes a descriptor on every way out.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int number() const { return number_; }

 private:
  int number_;
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// madvise takes an address that may be written to, though none of the advice used here writes.
void* address(std::span<const std::byte> bytes, std::uint64_t offset) {
  return const_cast<std::byte*>(bytes.data() + offset);
}

void unmap(std::span<const std::byte> bytes) {
  if (!bytes.empty()) ::munmap(address(bytes, 0), bytes.size());
}

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap(bytes_);
    path_ = std::move(other.path_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(bytes_); }

void MappedFile::prefetch(std::uint64_t begin, std::uint64_t end) const {
  end = std::min(end, size());
  if (begin >= end) return;
  begin -= begin % page_bytes();
  // Populating makes the page tables too, so that the pass after it takes no faults at all; kernels
  // before 5.14 lack it and only read ahead.
  if (::madvise(address(bytes_, begin), end - begin, MADV_POPULATE_READ) != 0 && errno == EINVAL) {
    ::madvise(address(bytes_, begin), end - begin, MADV_WILLNEED);
  }
}

void MappedFile::release(std::uint64_t begin, std::uint64_t end) const {
  // Whole pages alone: what shares the first or last page may be in use. The file's end is a
  // page's.
  begin = std::min(begin, size());
  begin += (page_bytes() - begin % page_bytes()) % page_bytes();
  if (end < size()) {
    end -= end % page_bytes();
  } else {
    end = size();
  }
  if (begin >= end) return;
  ::madvise(address(bytes_, begin), end - begin, MADV_DONTNEED);
}

MappedFile open_mapped(const std::filesystem::path& path) {
  MappedFile file;
  file.path_ = path.string();
  const std::string who = printable_path(file.path_) + ": ";
  // Without O_NONBLOCK the opening of a pipe would wait for a writer.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (descriptor.number() < 0) {
    throw_file_error(file.path_, who + "can't be opened: " + reason(errno));
  }
  struct stat status = {};
  if (::fstat(descriptor.number(), &status) != 0) {
    throw_file_error(file.path_, who + "can't be read: " + reason(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw_file_error(file.path_, who + "is " + kind_of(status.st_mode) +
                                     ", but only a regular file can be mapped");
  }
  if (status.st_size == 0) return file;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > std::numeric_limits<std::size_t>::max()) {
    throw_file_error(file.path_, who + "has " + std::to_string(size) +
                                     " bytes, but this machine can't address as many");
  }
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.number(), 0);
  if (mapped == MAP_FAILED) {
    throw_file_error(file.path_, who + "can't be mapped: " + reason(errno));
  }
  file.bytes_ = {static_cast<const std::byte*>(mapped), size};
  return file;
}

}  // namespace eckart

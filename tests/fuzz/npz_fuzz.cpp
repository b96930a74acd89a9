// Any bytes as an .npz archive: its directory, with and without verifying, and every array.
#include "eckart/core/errors.h"
#include "eckart/io/npz.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace {

// The file in memory that the archive is written to; its path works like any other.
int memory_file() {
  static const int descriptor = memfd_create("fuzz.npz", MFD_CLOEXEC);
  return descriptor;
}

void load_all(const eckart::NpzFile& npz) {
  for (const eckart::NpzMember& member : npz.members()) {
    try {
      const eckart::Tensor<float> tensor = npz.load<float>(member.name);
      if (static_cast<std::uint64_t>(tensor.count()) > member.bytes) std::abort();
    } catch (const eckart::FileError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int descriptor = memory_file();
  if (ftruncate(descriptor, 0) != 0) std::abort();
  if (pwrite(descriptor, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  eckart::Findings findings;
  eckart::read_npz_directory(eckart::open_mapped(path), true, findings);
  try {
    load_all(eckart::open_npz(path));
  } catch (const eckart::FileError&) {
    // What can't be opened is not sound to the stricter reading either.
    if (findings.errors() == 0) std::abort();
  }
  return 0;
}

// Scanning a checkpoint's values in the page cache against reading the same file with pread.
#include "eckart/core/parallel.h"
#include "eckart/core/tensor.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/scan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace {

using eckart::Dtype;
using eckart::Index;
using eckart::MappedFile;
using eckart::ValueScan;

// Larger than the caches, and small enough to stay in the page cache.
constexpr std::uint64_t file_bytes = std::uint64_t{2} << 30;
constexpr std::uint64_t small_tensor_bytes = 300'000;
constexpr int rounds = 7;
constexpr double goal = 0.70;

// Ones of BF16, but a NaN and an infinity near the end, so that the check sees the last pieces.
constexpr std::uint16_t one = 0x3f80;
constexpr std::uint64_t nan_at = file_bytes / 2 - 5;
constexpr std::uint64_t infinity_at = file_bytes / 2 - 70'000'000;

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags, 0600)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

bool write_file(const std::string& path) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  std::vector<std::uint16_t> words(std::size_t{1} << 22, one);
  const std::size_t bytes = words.size() * 2;
  for (std::uint64_t at = 0; at < file_bytes; at += bytes) {
    if (::pwrite(file.number(), words.data(), bytes, static_cast<off_t>(at)) !=
        static_cast<ssize_t>(bytes)) {
      return false;
    }
  }
  const std::uint16_t nan = 0x7fc0;
  const std::uint16_t infinity = 0x7f80;
  return ::pwrite(file.number(), &nan, 2, static_cast<off_t>(nan_at * 2)) == 2 &&
         ::pwrite(file.number(), &infinity, 2, static_cast<off_t>(infinity_at * 2)) == 2;
}

bool is_right(const ValueScan& scan) {
  return scan.n_values == file_bytes / 2 && scan.n_nan == 1 && scan.first_nan == nan_at &&
         scan.n_infinite == 1 && scan.first_infinite == infinity_at && !scan.all_zero;
}

// Every thread reads its pieces into one buffer that it keeps.
void read_file(int descriptor, std::size_t buffer_bytes) {
  const auto grain = static_cast<Index>(buffer_bytes);
  eckart::parallel_for(static_cast<Index>(file_bytes), grain, [&](Index begin, Index end) {
    thread_local std::vector<std::byte> buffer;
    buffer.resize(buffer_bytes);
    const auto wanted = static_cast<std::size_t>(end - begin);
    if (::pread(descriptor, buffer.data(), wanted, begin) != end - begin) std::abort();
  });
}

void print_row(const std::string& name, double least, double probe) {
  const double bytes = static_cast<double>(file_bytes) / 1e9;
  fmt::print("{:<44}{:>8.1f} GB/s{:>8.0f}%\n", name, bytes / least, 100 * probe / least);
}

int run(const std::string& path) {
  if (!write_file(path)) {
    fmt::print("{} can't be written\n", path);
    return EXIT_FAILURE;
  }
  const MappedFile file = eckart::open_mapped(path);
  if (!is_right(eckart::scan_file_values(file, Dtype::bf16, 0, file_bytes)) ||
      !is_right(eckart::scan_values(Dtype::bf16, file.bytes()))) {
    fmt::print("wrong: the scan doesn't find what was written\n");
    return EXIT_FAILURE;
  }
  const Descriptor descriptor(path, O_RDONLY);
  const eckart::Tensor<std::uint8_t> memory(eckart::Shape{Index{file_bytes}}, 1);
  const std::span<const std::byte> bytes =
      std::as_bytes(std::span<const std::uint8_t>(memory.data(), file_bytes));

  // In turns, the files each through a mapping of its own, so that each pays for its page tables.
  const auto scan_new_mapping = [&] {
    eckart::scan_file_values(eckart::open_mapped(path), Dtype::bf16, 0, file_bytes);
  };
  const auto scan_small_tensors = [&] {
    const MappedFile mapped = eckart::open_mapped(path);
    for (std::uint64_t at = 0; at < file_bytes; at += small_tensor_bytes) {
      eckart::scan_file_values(mapped, Dtype::bf16, at,
                               std::min(file_bytes, at + small_tensor_bytes));
    }
  };
  const auto scan_by_faults = [&] {
    eckart::scan_values(Dtype::bf16, eckart::open_mapped(path).bytes());
  };
  const eckart::bench::MachineLoad load;
  const std::vector<double> least = eckart::bench::least_seconds(
      {[&] { read_file(descriptor.number(), 1 << 20); },
       [&] { read_file(descriptor.number(), 4 << 20); }, scan_new_mapping, scan_small_tensors,
       scan_by_faults, [&] { eckart::bench::read_memory(bytes); },
       [&] { eckart::scan_values(Dtype::bf16, bytes); }},
      rounds);
  const double probe = std::min(least[0], least[1]);
  fmt::print("scanning {} MiB of BF16 in the page cache, {} threads, least of {} rounds\n",
             file_bytes >> 20, eckart::thread_count(), rounds);
  print_row("probe: pread into 1 MiB a thread", least[0], probe);
  print_row("probe: pread into 4 MiB a thread", least[1], probe);
  print_row("scan_file_values", least[2], probe);
  print_row("scan_file_values, tensors of 300 kB", least[3], probe);
  print_row("scan_values on the mapping, by page faults", least[4], probe);
  print_row("probe: read of memory", least[5], probe);
  print_row("scan_values on memory", least[6], probe);
  fmt::print("scan_values on memory reaches {:.0f}% of the read of memory\n",
             100 * least[5] / least[6]);
  load.report();
  const bool reached = probe / least[2] >= goal;
  fmt::print("goal: scan_file_values at least {:.0f}% of pread: {}\n", 100 * goal,
             reached ? "reached" : "missed");
  return reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  const std::string path = (folder / ("eckart_bench_scan_" + std::to_string(::getpid()))).string();
  const int status = run(path);
  std::filesystem::remove(path);
  return status;
}

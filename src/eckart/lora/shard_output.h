// A file of a result that is written in place, so that what a killed run wrote of it stays.
// Included by the library alone.
#pragma once

#include "eckart/io/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eckart {

/// One safetensors file. Its folder is one that takes its final name when all is done, so that
/// nobody reads the file before.
class ShardOutput {
 public:
  /// Makes the file, or takes over one of the same header and size, and reserves its room on the
  /// disk. Throws FileError (a full disk says so, with the bytes that are free).
  ShardOutput(std::filesystem::path path, std::vector<TensorPlan> tensors,
              const std::map<std::string, std::string>& metadata);
  ShardOutput(ShardOutput&& other) noexcept;
  ShardOutput& operator=(ShardOutput&&) = delete;
  ~ShardOutput();

  const StoredTensor& place(std::string_view name) const;
  std::uint64_t file_size() const { return layout_.file_size(); }
  /// Writes at an offset of the file; several threads may.
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// Copies bytes of another file without taking them through this process, where the system can.
  void copy(std::uint64_t offset, const std::filesystem::path& from, std::uint64_t begin,
            std::uint64_t size) const;
  /// Reads what stands there, as many bytes as `bytes` has. False when it can't be read whole.
  bool read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  [[noreturn]] void fail(int error) const;
  bool has_head() const;
  void reserve() const;

  std::filesystem::path path_;
  SafetensorsLayout layout_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  int descriptor_ = -1;
};

}  // namespace eckart

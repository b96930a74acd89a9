// safetensors: an 8-byte length, a JSON header, and the tensors' bytes.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/dtype.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eckart {

/// One entry of a header. Offsets are in bytes from the start of the file.
struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t bytes() const { return end - begin; }
};

/// A header read whole.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            // by position in the file, then name
  std::map<std::string, std::string> metadata;  // `__metadata__`
  std::uint64_t data_begin = 0;                 // where the tensors' bytes begin: 8 + header length
};

/// How strictly a header is read. `check` makes errors of what the reference reader lets pass
/// though the specification forbids it; `read` makes warnings of those.
enum class Strictness { check, read };

/// Reads the header of `file` and checks every rule of the format. What breaks a rule goes to
/// `findings`, also when reading goes on. Returns what could be read; `tensors` holds only entries
/// that are sound by themselves, and none when the header is no header.
SafetensorsHeader read_safetensors_header(const MappedFile& file, Strictness strictness,
                                          Findings& findings);

/// An open safetensors file, mapped.
class SafetensorsFile {
 public:
  const std::string& path() const { return file_.path(); }
  std::uint64_t file_size() const { return file_.size(); }
  const MappedFile& file() const { return file_; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  std::uint64_t data_begin() const { return header_.data_begin; }
  /// The tensor of that name, or nullptr.
  const StoredTensor* find(std::string_view name) const;
  /// The bytes of a tensor of this file, in place.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;

 private:
  friend SafetensorsFile open_safetensors(const std::filesystem::path& path);

  MappedFile file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // into header_.tensors
};

/// Maps a file and reads its header. Throws FormatError at the first broken rule, FileError when it
/// can't be opened.
SafetensorsFile open_safetensors(const std::filesystem::path& path);

/// What a file is to hold. The names, dtypes and shapes are known before the bytes.
struct TensorPlan {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
};

/// Writes one safetensors file whose tensors' bytes come in any order and in pieces: nothing but
/// the header is held in memory. Layout as the reference writer's: tensors by descending dtype,
/// then name; header padded with spaces to a multiple of 8. Writing is atomic (see AtomicFile).
class SafetensorsWriter {
 public:
  /// Throws ArgumentError when a name stands twice, is `__metadata__`, or a size is no whole number
  /// of bytes; FileError as AtomicFile.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorPlan> tensors,
                    std::map<std::string, std::string> metadata = {});

  /// The tensors in file order, with their places.
  const std::vector<StoredTensor>& layout() const { return layout_; }
  /// Writes bytes of one tensor, from `offset` bytes into it. Throws ArgumentError when the name is
  /// not planned or the bytes reach beyond the tensor. May be called from several threads.
  void write(std::string_view name, std::span<const std::byte> bytes, std::uint64_t offset = 0);
  /// Finishes the file. Throws ArgumentError when a tensor was not written whole.
  void commit();

 private:
  std::vector<StoredTensor> layout_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::vector<std::uint64_t> written_;  // bytes so far, one entry a tensor
  AtomicFile file_;
};

/// A tensor to be written: its plan and its bytes.
struct TensorBytes {
  TensorPlan plan;
  std::span<const std::byte> bytes;
};

/// Writes one file. Throws ArgumentError and FileError as SafetensorsWriter.
void save_safetensors(const std::filesystem::path& path, const std::vector<TensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

struct ShardOptions {
  std::uint64_t max_shard_bytes =
      5'000'000'000;  // of tensors in one file; a larger tensor has its own
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
};

/// Which tensors of a sharded checkpoint go into which file, in the given order, each shard filled
/// up to `max_shard_bytes`. Shards are named `model-00001-of-00003.safetensors`, or
/// `model.safetensors` when there is only one.
struct ShardPlan {
  std::string file;
  std::vector<std::size_t> tensors;  // positions in the list that was planned
};
std::vector<ShardPlan> plan_shards(const std::vector<TensorPlan>& tensors,
                                   const ShardOptions& options = {});

/// Writes the shards and, when there are several, `model.safetensors.index.json`. The index comes
/// last, so that a killed run leaves no index that names a missing shard.
void save_sharded_safetensors(const std::filesystem::path& folder,
                              const std::vector<TensorBytes>& tensors,
                              const ShardOptions& options = {});

}  // namespace eckart

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
#include <memory>
#include <mutex>
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
/// that are sound by themselves and lie in the file, and none when the header is no header.
/// Memory: about three times the header's bytes at most.
SafetensorsHeader read_safetensors_header(const MappedFile& file, Strictness strictness,
                                          Findings& findings);
/// The same from a whole file in memory; `name` stands in the findings.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& name,
                                          Strictness strictness, Findings& findings);

/// An open safetensors file, mapped.
class SafetensorsFile {
 public:
  /// `header` is that of `file` and was read without an error.
  SafetensorsFile(MappedFile file, SafetensorsHeader header);

  const std::string& path() const { return file_.path(); }
  std::uint64_t file_size() const { return file_.size(); }
  const MappedFile& file() const { return file_; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  std::uint64_t data_begin() const { return header_.data_begin; }
  /// The tensor of that name, or nullptr. Logarithmic time.
  const StoredTensor* find(std::string_view name) const;
  /// Positions in `tensors` in the order of the names' bytes.
  const std::vector<std::uint32_t>& by_name() const { return by_name_; }
  /// The bytes of a tensor of this file, in place. Throws ArgumentError when they would reach
  /// beyond the file, as those of another file's tensor may.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;

 private:
  MappedFile file_;
  SafetensorsHeader header_;
  std::vector<std::uint32_t> by_name_;
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

/// The head of a file and where its tensors lie.
struct SafetensorsLayout {
  std::vector<StoredTensor> tensors;  // in file order
  std::string head;                   // the header's length and the header: all before the tensors
  /// Bytes of the whole file.
  std::uint64_t file_size() const { return tensors.empty() ? head.size() : tensors.back().end; }
};

/// Lays a file out as the reference writer does: tensors by descending dtype, then name; header
/// padded with spaces to a multiple of 8; metadata sorted by key. Throws ArgumentError when a name
/// stands twice, is `__metadata__` or no UTF-8, when a tensor is no whole number of bytes, or the
/// header would be longer than readers take (100 MB).
SafetensorsLayout lay_out_safetensors(std::vector<TensorPlan> tensors,
                                      const std::map<std::string, std::string>& metadata = {});

/// Writes one safetensors file whose tensors' bytes come in any order and in pieces: nothing but
/// the header is held in memory. Room on the disk is reserved at once, and writing is atomic (see
/// AtomicFile).
class SafetensorsWriter {
 public:
  /// Throws ArgumentError as `lay_out_safetensors`, FileError as AtomicFile.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorPlan> tensors,
                    const std::map<std::string, std::string>& metadata = {});

  /// The tensors in file order, with their places.
  const std::vector<StoredTensor>& layout() const { return layout_; }
  /// Writes bytes of one tensor, from `offset` bytes into it. Throws ArgumentError when the name is
  /// not planned or the bytes reach beyond the tensor; FileError as AtomicFile. May be called from
  /// several threads.
  void write(std::string_view name, std::span<const std::byte> bytes, std::uint64_t offset = 0);
  /// Checks that every byte was written and syncs them to the disk: `commit` then only renames. A
  /// caller with several files finishes them all before the first commit. Throws ArgumentError when
  /// a tensor was not written whole, FileError as AtomicFile.
  void finish();
  /// Finishes the file and puts it in its place. Throws as `finish`.
  void commit();
  /// The same where nothing stands: throws FileError when anything is there by now, which stays.
  void commit_new();

 private:
  /// Parts of a tensor that are written: where each begins, and its end. No two of them touch.
  using Parts = std::map<std::uint64_t, std::uint64_t>;

  SafetensorsWriter(const std::filesystem::path& path, SafetensorsLayout layout);
  void note_written(std::size_t tensor, std::uint64_t begin, std::uint64_t end);

  std::vector<StoredTensor> layout_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::vector<Parts> written_;  // one entry a tensor
  std::unique_ptr<std::mutex> written_lock_;
  AtomicFile file_;
};

/// A tensor to be written: its plan and its bytes.
struct TensorBytes {
  TensorPlan plan;
  std::span<const std::byte> bytes;
};

/// Writes one file. Throws ArgumentError as SafetensorsWriter and when a tensor's bytes are not as
/// many as its plan says; FileError as AtomicFile.
void save_safetensors(const std::filesystem::path& path, const std::vector<TensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

struct ShardOptions {
  std::uint64_t max_shard_bytes =
      5'000'000'000;  // of tensors in one file; a larger tensor has its own
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
};

/// Which tensors of a sharded checkpoint go into which file, in the given order, each shard filled
/// up to `max_shard_bytes`. Shards are named `model-00001-of-00003.safetensors`, or
/// `model.safetensors` when there is only one. Throws ArgumentError when `max_shard_bytes` is 0 or
/// a tensor is no whole number of bytes.
struct ShardPlan {
  std::string file;
  std::vector<std::size_t> tensors;  // positions in the list that was planned
};
std::vector<ShardPlan> plan_shards(const std::vector<TensorPlan>& tensors,
                                   const ShardOptions& options = {});

/// Writes the shards into a folder that exists and, when there are several,
/// `model.safetensors.index.json`. Every shard is on the disk before the first one takes its name,
/// so that what fails (a full disk, say) leaves the folder as it was; the index comes last, so that
/// a killed run leaves no new index that names a missing shard. One descriptor a shard is open
/// meanwhile.
/// Throws ArgumentError as SafetensorsWriter; FileError as AtomicFile, and when the folder holds a
/// checkpoint that readers would take instead (an index beside one file, or the other way round).
void save_sharded_safetensors(const std::filesystem::path& folder,
                              const std::vector<TensorBytes>& tensors,
                              const ShardOptions& options = {});

}  // namespace eckart

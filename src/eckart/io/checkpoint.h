// A checkpoint: one safetensors file, or the shards of an index, seen as one set of tensors.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/safetensors.h"
#include "eckart/io/shard_index.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// A tensor of a checkpoint and the shard it stands in.
struct CheckpointTensor {
  const StoredTensor* stored = nullptr;
  std::size_t shard = 0;  // into Checkpoint::shards()
};

/// Open files, mapped. Tensors are in natural order of their names (`layers.2` before `layers.10`).
/// Movable, not copyable: moving keeps what points into it.
class Checkpoint {
 public:
  /// The path it was opened by.
  const std::string& path() const { return path_; }
  /// The folder that holds its files, where config.json is looked for.
  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<SafetensorsFile>& shards() const { return shards_; }
  const std::optional<ShardIndex>& index() const { return index_; }
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// Sum of the tensors' bytes.
  std::uint64_t tensor_bytes() const;
  /// Things that did not stop the opening: warnings of the formats, tensors that the index names
  /// but no shard holds or the other way round, files of the folder that are not part of it.
  const Findings& warnings() const { return warnings_; }

  /// The tensor of that name, or nullptr. Logarithmic time.
  const StoredTensor* find(std::string_view name) const;
  /// The bytes of a tensor, in place. Throws ArgumentError, naming the closest names, when there is
  /// no tensor of that name.
  std::span<const std::byte> bytes(std::string_view name) const;
  /// A copy of a tensor, widened to T (float or double). Throws ArgumentError when there is no
  /// tensor of that name or its dtype is not one that can be widened (see widen.h).
  template <class T>
  Tensor<T> tensor(std::string_view name) const;

 private:
  friend Checkpoint open_checkpoint(const std::filesystem::path& path);

  const CheckpointTensor& require(std::string_view name) const;

  std::string path_;
  std::filesystem::path folder_;
  std::vector<SafetensorsFile> shards_;
  std::optional<ShardIndex> index_;
  std::vector<CheckpointTensor> tensors_;
  Findings warnings_;
};

/// What a path means as a checkpoint.
struct CheckpointFiles {
  std::filesystem::path folder;
  bool is_folder = false;                      // a folder was given, not one of its files
  std::optional<std::filesystem::path> index;  // the index to read, or
  std::vector<std::filesystem::path> files;    // these files, without an index
  /// Other indexes and `.safetensors` files of the folder. Beside an index these may be its shards.
  std::vector<std::filesystem::path> others;
};

/// Finds the checkpoint of a path: a `.safetensors` file is itself; an index is its shards; a
/// folder is, as for transformers, its `model.safetensors`, else `model.safetensors.index.json`,
/// else its only index, else all its `.safetensors` files. Reads no file. Throws FileError, saying
/// what stands there instead, when there is none, or when several indexes leave the choice open.
CheckpointFiles find_checkpoint(const std::filesystem::path& path);

/// Opens the checkpoint of a path. Throws FormatError at the first broken rule of a format: a
/// missing shard, a tensor in two shards, an unsafe shard name among them.
Checkpoint open_checkpoint(const std::filesystem::path& path);

/// `a` before `b` with runs of digits compared as numbers: `layers.2.w` before `layers.10.w`.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace eckart

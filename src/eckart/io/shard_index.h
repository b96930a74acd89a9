// `*.safetensors.index.json`: which shard holds which tensor.
#pragma once

#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace eckart {

struct ShardIndex {
  struct Entry {
    std::string tensor;
    std::uint32_t shard = 0;  // into `shards`
  };

  std::string path;
  std::vector<std::string> shards;  // file names in order of first mention, each a plain name
  std::vector<Entry> entries;       // in the order of the file
  std::optional<std::uint64_t> total_size;        // `metadata.total_size`: bytes of all tensors
  std::optional<std::uint64_t> total_parameters;  // `metadata.total_parameters`: never trusted
};

/// Reads an index and checks every rule that concerns it alone: strict JSON, no key twice, every
/// shard a plain file name (no folder, no `..`, no drive or scheme) that does not leave the index's
/// folder by a symlink. Opens no shard; entries with a refused name are left out, and of a tensor
/// that stands twice all but the last.
/// Hugging Face's cache keeps files as links from `models--NAME/snapshots/REVISION` to
/// `models--NAME/blobs`: links of exactly this kind are let pass.
/// One pass; memory for the entries. At most 256 MiB, 2 million tensors and 10,000 shards are read.
ShardIndex read_shard_index(const MappedFile& file, Findings& findings);
/// The same from a whole index in memory; `path` stands in the findings and says which folder the
/// shards are in.
ShardIndex read_shard_index(std::span<const std::byte> bytes, const std::string& path,
                            Findings& findings);

}  // namespace eckart

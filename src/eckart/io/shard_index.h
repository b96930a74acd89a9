// `*.safetensors.index.json`: which shard holds which tensor.
#pragma once

#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"

#include <cstdint>
#include <filesystem>
#include <optional>
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
/// folder by a symlink. Opens no shard; entries with a refused name are left out.
ShardIndex read_shard_index(const MappedFile& file, Findings& findings);

}  // namespace eckart

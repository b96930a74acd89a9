// The files of a checkpoint opened together and held against each other: behind `open_checkpoint`
// and `validate`.
#pragma once

#include "eckart/core/errors.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/findings.h"
#include "eckart/io/safetensors.h"
#include "eckart/io/shard_index.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {

struct OpenShards {
  std::optional<ShardIndex> index;
  /// The index could be taken whole. Where it could not, nothing is known of what it leaves out.
  bool is_index_whole = false;
  std::vector<SafetensorsFile> shards;    // as the index or the list of files has them
  std::vector<bool> is_sound;             // one a shard: it was read, and has no error of its own
  std::vector<CheckpointTensor> tensors;  // in natural order; a name may stand in several shards
};

/// Opens all files and reports every rule that they break alone and together. Headers are read on
/// several threads; findings are in the order of the shards. Under `Strictness::read` an index that
/// disagrees with the shards is a warning, except where a shard is missing or a name is in two.
OpenShards open_shards(const CheckpointFiles& files, Strictness strictness, Findings& findings);

/// Warns of a file whose end is all zero: 64 KiB within a tensor, or 1 MiB anyway. Reads 64 KiB, and
/// 16 MiB where they are zero.
void check_tail(const SafetensorsFile& shard, Findings& findings);

/// Reports what an index says against what its shards hold.
void check_index(const OpenShards& open, Strictness strictness, Findings& findings);

/// Below 0, 0 or above 0 as `a` stands before `b` in natural order, is `b`, or stands behind it.
int compare_naturally(std::string_view a, std::string_view b);

/// A file that can't be opened, as a finding: the path stands beside the message, not in it.
Finding unreadable(const std::filesystem::path& path, const FileError& error);

/// First and past-the-last tensor of that name.
std::pair<std::vector<CheckpointTensor>::const_iterator,
          std::vector<CheckpointTensor>::const_iterator>
tensors_named(const std::vector<CheckpointTensor>& tensors, std::string_view name);

}  // namespace eckart

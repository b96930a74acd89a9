// Which line of an architecture's table each tensor of a file is.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/architecture.h"
#include "eckart/model/logical_tensors.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// How a tensor's name relates to the table's.
struct SpecMatch {
  std::int32_t spec = -1;  // into Architecture::tensors; -1: no line has this name
  Index layer = -1;        // the numbers in the name; -1 where the line has none
  Index expert = -1;
  bool is_in_table = false;   // the layer and the expert are among those of the config
  bool is_old_name = false;   // one of TensorSpec::also_named
  bool lacks_prefix = false;  // the table's name without `base_prefix`
  bool adds_prefix = false;   // the table's name with `base_prefix` in front
};

struct SpecMatches {
  std::vector<SpecMatch> of;  // one entry a name
  /// What stands before the names and is no part of the model's: `module.`, `_orig_mod.`. It is
  /// only looked for when no name fits without it.
  std::string foreign_prefix;
};

/// Matches names with the lines of the table, with and without the base prefix and under the names
/// of old files. Time linear in the number of names and of lines.
SpecMatches match_specs(const Architecture& architecture,
                        const std::vector<std::string_view>& names);
SpecMatches match_specs(const Architecture& architecture,
                        const std::vector<LogicalTensor>& tensors);

}  // namespace eckart

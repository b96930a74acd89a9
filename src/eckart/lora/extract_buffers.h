// What two checkpoints hold besides parameters. Included by the library alone.
#pragma once

#include "eckart/lora/extract_plan.h"

#include <vector>

namespace eckart {

/// Adds, as skipped, the integers and other buffers that only one of the models has, or whose bytes
/// are not the same. What every model computes anew (masks, position numbers, rotary frequencies) is
/// passed over. The list stays in natural order.
void add_changed_buffers(const ExtractSources& sources, std::vector<PlannedExtract>& tensors);

}  // namespace eckart

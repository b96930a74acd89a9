// What becomes of each tensor of an extraction. Included by the library alone.
#pragma once

#include "eckart/lora/extract_plan.h"

namespace eckart {

/// Decides the fates of the tensors that have changed: those that are `low_rank` when it is called.
/// Sets kind, orientation and what stands beside others, and notes what a reader must know. Throws
/// ArgumentError when nothing is left, or when nothing says how a matrix lies.
void decide_fates(ExtractPlan& plan, const ExtractRules& rules);

}  // namespace eckart

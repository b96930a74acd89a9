// What is said when an adapter does not fit a base. Included by the library alone.
#pragma once

#include "eckart/lora/merge_plan.h"

#include <string>
#include <vector>

namespace eckart {

/// An adapter as messages name it: its path.
std::string shown(const Adapter& adapter);
/// `32x64 (B A)`.
std::string sizes_of(const AdapterModule& module);

/// A module or saved tensor that no name of the base fits.
[[noreturn]] void throw_unmatched(const Adapter& adapter, const std::string& name,
                                  const std::vector<std::string>& names);
/// `sizes`: of what the adapter holds for this tensor.
[[noreturn]] void fail_shape(const Adapter& adapter, const PlannedTensor& tensor,
                             const std::string& sizes);
[[noreturn]] void fail_quantized(const PlannedTensor& tensor);

}  // namespace eckart

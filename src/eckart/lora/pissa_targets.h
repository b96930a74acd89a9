// Which matrices of a base PiSSA splits. Included by the library alone.
#pragma once

#include "eckart/lora/pissa.h"

#include <string>
#include <vector>

namespace eckart::detail {

struct PissaTarget {
  const LogicalTensor* tensor = nullptr;
  std::string module;  // its name without `.weight`
  bool is_input_first = false;
  Index d_out = 0;
  Index d_in = 0;
};

/// In natural order. Throws ArgumentError as `init_pissa`.
std::vector<PissaTarget> pissa_targets(const PissaBase& base, const PissaOptions& options);

}  // namespace eckart::detail

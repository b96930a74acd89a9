// Several adapters as one.
#pragma once

#include "eckart/lora/adapter.h"
#include "eckart/lora/rewritten_adapter.h"

#include <filesystem>
#include <vector>

namespace eckart {

struct WeightedAdapter {
  const Adapter* adapter = nullptr;
  double weight = 1;  // any number but 0
};

/// Writes one adapter, a folder of PEFT's, whose delta of every module is the weighted sum of those
/// of the adapters that have it. Without a rule the sum is exact but for rounding to the dtype:
/// factors stand side by side, ranks add up, weights and scales are in the factors and alpha is the
/// rank. With a rule it is cut to rank as by `resize_adapter`.
/// Biases of factors are summed the same way. A tensor that is saved whole (modules_to_save) goes
/// along, whatever the weight. One adapter with weight 1, without a rule and another dtype, is copied
/// byte by byte, DoRA too.
/// Cost, memory, messages: as `resize_adapter`. Throws ArgumentError too when the adapters do not go
/// together: a module of another kind or shape, a tensor saved with different values by two of them
/// or saved by one and changed by another, fan_in_fan_out of both kinds.
RewrittenAdapter combine_adapters(const std::vector<WeightedAdapter>& adapters,
                                  const std::filesystem::path& target,
                                  const RewriteOptions& options = {});

}  // namespace eckart

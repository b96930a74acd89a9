// What of several adapters goes into one, and whether they go together. Included by the library
// alone.
#pragma once

#include "eckart/lora/adapter.h"
#include "eckart/lora/combine.h"
#include "eckart/lora/module_delta.h"
#include "eckart/lora/rewritten_adapter.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// A tensor that is carried as it is.
struct CarriedTensor {
  const Adapter* adapter = nullptr;
  const SavedTensor* saved = nullptr;
};

struct RewritePlan {
  std::vector<DeltaSource> sources;  // in natural order; they point into the adapters
  std::vector<CarriedTensor> carried;
  AdapterConfig config;
  Dtype dtype = Dtype::f32;
  std::uint64_t carried_bytes = 0;  // biases and saved tensors
  bool has_biases = false;
  std::vector<std::string> notes;
};

/// Throws ArgumentError as `combine_adapters` for adapters that do not go together.
RewritePlan plan_rewrite(std::string_view operation, const std::vector<WeightedAdapter>& adapters,
                         const RewriteOptions& options);

/// Writes the planned adapter.
RewrittenAdapter rewrite_adapters(std::string_view operation,
                                  const std::vector<WeightedAdapter>& adapters,
                                  const std::filesystem::path& target,
                                  const RewriteOptions& options);

}  // namespace eckart::detail

// Headers made by hand: stored tensors without a file.
#pragma once

#include "eckart/io/dtype.h"
#include "eckart/io/safetensors.h"
#include "eckart/model/architecture.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart::testing {

inline StoredTensor stored(std::string name, Dtype dtype, Shape shape) {
  const std::uint64_t bytes = stored_bytes(dtype, shape.count()).value_or(0);
  return {std::move(name), dtype, std::move(shape), 0, bytes};
}

/// Every tensor of an architecture's table as its file would hold it, tied ones left out.
inline std::vector<StoredTensor> stored_as_implied(const Architecture& architecture, Dtype dtype) {
  std::vector<StoredTensor> list;
  for (const TensorSpec& spec : architecture.tensors) {
    if (!spec.tied_to.empty()) continue;
    const std::vector<Index> outside = {-1};
    const bool has_expert = spec.name.find("{expert}") != std::string::npos;
    for (const Index layer : spec.layers.empty() ? outside : spec.layers) {
      for (Index expert = 0; expert < (has_expert ? spec.n_experts : 1); ++expert) {
        list.push_back(stored(tensor_name(spec, layer, expert), dtype, spec.shape.without_names()));
      }
    }
  }
  return list;
}

inline Architecture architecture_of(std::string_view json) {
  return read_architecture(parse_config(json, "config.json"));
}

inline StoredTensor* find_stored(std::vector<StoredTensor>& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const StoredTensor& tensor) { return tensor.name == name; });
  return found == list.end() ? nullptr : &*found;
}

inline void remove_stored(std::vector<StoredTensor>& list, std::string_view part_of_name) {
  std::erase_if(list, [&](const StoredTensor& tensor) {
    return tensor.name.find(part_of_name) != std::string::npos;
  });
}

}  // namespace eckart::testing

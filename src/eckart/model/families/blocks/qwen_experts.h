// Which layers of a Qwen mixture have experts.
#pragma once

#include "eckart/model/families/blocks/table.h"

#include <vector>

namespace eckart {

struct ExpertLayers {
  std::vector<Index> dense;
  std::vector<Index> sparse;
};

/// Every decoder_sparse_step-th layer has experts, except those in mlp_only_layers.
ExpertLayers read_qwen_expert_layers(const Table& table);

}  // namespace eckart

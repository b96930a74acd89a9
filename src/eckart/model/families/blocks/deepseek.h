// What DeepSeek-V2 and V3 share: latent attention and, behind the first layers, many experts.
#pragma once

#include "eckart/model/families/blocks/table.h"

#include <vector>

namespace eckart {

struct DeepseekDefaults {
  Index context = 0;
  Index n_experts = 0;
  Index n_active_experts = 0;  // 0: a config must say
  Index n_shared_experts = 0;
  Index d_expert = 0;
};

/// Reads the sizes of both families, without tensors.
void read_deepseek_sizes(Table& table, const DeepseekDefaults& defaults);

struct DeepseekLayers {
  Index first_sparse = 0;           // where first_k_dense_replace is absent
  bool has_selection_bias = false;  // V3 corrects its router with a bias an expert
};

/// The layers' tensors.
void deepseek_layers(Table& table, const DeepseekLayers& options);

/// One layer with experts, in the layers that the scope says: norms, attention, experts.
void deepseek_sparse_layer(Table& table, bool has_selection_bias);

}  // namespace eckart

#include "eckart/model/families/blocks/qwen_experts.h"

#include <algorithm>

namespace eckart {

ExpertLayers read_qwen_expert_layers(const Table& table) {
  const Index step = table.config().size({"decoder_sparse_step"}).value_or(1);
  if (step == 0) table.fail("decoder_sparse_step is 0, but must be at least 1");
  std::vector<Index> only_mlp = table.config().sizes({"mlp_only_layers"});
  std::sort(only_mlp.begin(), only_mlp.end());
  const auto is_sparse = [&](Index layer) {
    return (layer + 1) % step == 0 && !std::binary_search(only_mlp.begin(), only_mlp.end(), layer);
  };
  return {.dense = layers_where(table.arch.n_layers, [&](Index l) { return !is_sparse(l); }),
          .sparse = layers_where(table.arch.n_layers, is_sparse)};
}

}  // namespace eckart

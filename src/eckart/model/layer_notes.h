// What is said about whole layers. Included by the library alone.
#pragma once

#include "eckart/model/architecture.h"
#include "eckart/model/cross_check.h"

#include <set>

namespace eckart::detail {

/// Layers of a file and what stands in them.
struct LayerGroup {
  std::set<Index> layers;
  Index n_tensors = 0;
  Index parameters = 0;

  void add(Index layer, Index n_parameters) {
    layers.insert(layer);
    ++n_tensors;
    parameters += n_parameters;
  }
};

/// Layers that config.json implies and the file has nothing of; it has `n_present` others.
Difference missing_layers(const Architecture& architecture, const std::set<Index>& layers,
                          Index n_present);
/// Layers whose number is n_layers or more.
Difference extra_layers(const Architecture& architecture, const LayerGroup& beyond);
/// A layer that predicts a further token (see TensorSpec::is_extra).
Difference extra_predictor(const LayerGroup& predictor);

}  // namespace eckart::detail

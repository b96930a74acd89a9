#include "eckart/model/layer_notes.h"

#include "eckart/model/prose.h"
#include "eckart/model/shape_fit.h"

#include <string>
#include <vector>

namespace eckart::detail {
namespace {

std::string layers_text(const std::set<Index>& layers) {
  return (layers.size() == 1 ? "layer " : "layers ") +
         number_ranges(std::vector<Index>(layers.begin(), layers.end()));
}

std::string contents(const LayerGroup& group) {
  return count_of(group.n_tensors, "tensor") + ", " + count_of(group.parameters, "parameter");
}

}  // namespace

Difference missing_layers(const Architecture& architecture, const std::set<Index>& layers,
                          Index n_present) {
  Difference difference;
  difference.level = DifferenceLevel::error;
  difference.kind = "missing_layers";
  difference.expected = std::to_string(architecture.n_layers);
  difference.found = std::to_string(n_present);
  difference.count = static_cast<Index>(layers.size());
  difference.message = layers_text(layers) + (layers.size() == 1 ? " is" : " are") +
                       " not in the file: it has " + count_of(n_present, "layer") +
                       ", but config.json says n_layers " + difference.expected;
  if (n_present > 0 && *layers.begin() == n_present) {
    difference.hint =
        "the file fits " + number_in_config(architecture, "n_layers") + " " + difference.found;
  }
  return difference;
}

Difference extra_layers(const Architecture& architecture, const LayerGroup& beyond) {
  const Index end = *beyond.layers.rbegin() + 1;
  Difference difference;
  difference.level = DifferenceLevel::warning;
  difference.kind = "extra_layers";
  difference.expected = std::to_string(architecture.n_layers);
  difference.found = std::to_string(end);
  difference.count = static_cast<Index>(beyond.layers.size());
  difference.message = layers_text(beyond.layers) + (beyond.layers.size() == 1 ? " is" : " are") +
                       " in the file (" + contents(beyond) + "), but config.json says n_layers " +
                       difference.expected + ", counted from 0";
  if (end - architecture.n_layers == difference.count) {
    difference.hint =
        "the file fits " + number_in_config(architecture, "n_layers") + " " + difference.found;
  }
  return difference;
}

Difference extra_predictor(const LayerGroup& predictor) {
  Difference difference;
  difference.level = DifferenceLevel::note;
  difference.kind = "extra_predictor";
  difference.found = std::to_string(predictor.parameters);
  difference.count = predictor.n_tensors;
  difference.message =
      layers_text(predictor.layers) + (predictor.layers.size() == 1 ? " predicts" : " predict") +
      " a further token (" + contents(predictor) + "): not counted as parameters of the model";
  return difference;
}

}  // namespace eckart::detail

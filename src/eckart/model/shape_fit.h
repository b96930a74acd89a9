// Which number of a config would make a stored shape fit.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/architecture.h"

#include <string>
#include <vector>

namespace eckart {

/// A size of the config, in the project's words, and the value with which a stored shape fits.
struct ConfigFit {
  std::string number;  // `d_head`
  Index current = 0;
  Index value = 0;

  friend bool operator==(const ConfigFit& a, const ConfigFit& b) = default;
};

/// What a file holds for one line of the table.
struct FoundShape {
  const TensorSpec* spec = nullptr;
  Shape shape;
};

/// The single changes of the config's sizes with which `found` has the shape that the file holds.
/// Those that also fit `others`, the shapes of the same component's other tensors, are preferred;
/// when none does, all are given. Empty when no single change does it.
std::vector<ConfigFit> shape_fits(const Architecture& architecture, const FoundShape& found,
                                  const std::vector<FoundShape>& others);

/// How the config makes up the axes that `found` contradicts: `heads is n_heads 32 x d_head 64`;
/// empty where the axis is one plain number of the config.
std::string axis_origin(const Architecture& architecture, const FoundShape& found);

/// What would make the shape fit, in words, for a hint: `it fits with d_head 128 in config.json`;
/// empty when nothing is known that would.
std::string fit_in_words(const Architecture& architecture, const FoundShape& found,
                         const std::vector<FoundShape>& others);

/// A number with what the family's configs call it: `n_heads (num_attention_heads)`; alone where
/// they do not have it, or by the same name.
std::string number_in_config(const Architecture& architecture, const std::string& number);

}  // namespace eckart

// Shapes of a file against those of the table, compared and in words. Included by the library
// alone.
#pragma once

#include "eckart/model/architecture.h"
#include "eckart/model/logical_tensors.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/shape_fit.h"

#include <string>
#include <vector>

namespace eckart::detail {

/// Whether the two differ in the rows of a vocabulary.
bool is_other_vocabulary(const LogicalTensor& tensor, const TensorSpec& spec);

/// Whether a tensor has the shape of a line: of a flattened one only the count is known, and MXFP4
/// stores its matrices output first, whatever the line says.
bool has_shape_of(const LogicalTensor& tensor, const TensorSpec& spec);

/// The first shape that the file has for each line of the table that it has.
std::vector<FoundShape> found_shapes(const Architecture& architecture,
                                     const std::vector<LogicalTensor>& tensors,
                                     const SpecMatches& matches);

/// A shape that contradicts the table, in words.
struct ShapeWords {
  std::string found;     // `4096x2048`
  std::string expected;  // `2048x2048 (heads, d_model), where heads is n_heads 32 x d_head 64`
  std::string hint;      // what would fit; empty where nothing is known
};
ShapeWords shape_words(const Architecture& architecture, const LogicalTensor& tensor,
                       const TensorSpec& spec, const std::vector<FoundShape>& others);

}  // namespace eckart::detail

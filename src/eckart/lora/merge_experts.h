// Fused experts of an adapter in a base whose files have a matrix an expert, as transformers saves
// Mixtral and Qwen's mixtures. Included by the library alone.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/architecture.h"
#include "eckart/model/match_specs.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace eckart {

/// A matrix of the base that is part of one expert's.
struct ExpertPart {
  std::size_t entry = 0;  // its place among the base's tensors
  Index expert = 0;
  Index first_row = 0;  // in the expert's fused matrix
};

struct FusedExperts {
  Shape shape;  // experts x rows x columns; no axes where the base does not have them
  std::vector<ExpertPart> parts;
};

class ExpertTable {
 public:
  ExpertTable() = default;
  /// `matches`: of the base's tensors with the architecture's table; `shapes`: theirs.
  ExpertTable(const Architecture& architecture, const SpecMatches& matches,
              const std::vector<Shape>& shapes);

  /// What `layers.3.mlp.experts.gate_up_proj` (gate above up) or `….down_proj` is made of.
  FusedExperts find(const std::string& parameter) const;

 private:
  struct Matrix {
    std::size_t entry = 0;
    Shape shape;
  };
  std::map<std::pair<Index, Role>, std::map<Index, Matrix>> experts_;  // by layer and role
};

}  // namespace eckart

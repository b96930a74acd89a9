// What a checkpoint holds, as a tree to be shown: repeated layers and experts folded.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/architecture.h"
#include "eckart/model/logical_tensors.h"
#include "eckart/model/match_specs.h"

#include <cstdint>
#include <string>
#include <vector>

namespace eckart {

/// A module, a group of equal modules, or a tensor (with the bias that belongs to it).
struct SummaryNode {
  /// Within its parent: `embeddings`, `encoder.layer.{0..5}`, `attention.self.query`.
  std::string label;
  /// The whole name, without a closing `.weight`.
  std::string path;
  /// Of a tensor, with axis names where the architecture's table has it; a scalar for a module.
  Shape shape;
  bool is_tensor = false;
  bool with_bias = false;
  /// Of a tensor: `BF16`, `MXFP4`.
  std::string storage;
  /// How many equal ones this stands for, within one of its parent.
  Index n_copies = 1;
  /// Of one copy, as are the next two. A tensor's bias is included.
  Index parameters = 0;
  std::uint64_t bytes = 0;
  Index n_tensors = 0;
  /// All copies, in all copies of its parents, over the whole model's parameters: 0 to 1.
  double share = 0;
  std::vector<SummaryNode> children;
};

/// Tensors that are no parameters of their own, folded over their numbers.
struct NotCounted {
  std::string name;  // `h.{0..11}.attn.bias`
  std::string storage;
  std::string reason;  // `a buffer`, `tied to wte.weight`, …
  Index n_tensors = 0;
  Index elements = 0;
  std::uint64_t bytes = 0;
};

/// The most rows that a summary's tree has.
inline constexpr Index max_summary_rows = 10'000;

struct Summary {
  SummaryNode root;  // without a label; its sums are the model's
  /// The tree would have had more rows: the root's children are the tensors themselves, as many as
  /// there may be rows, and so many are left out.
  bool is_flat = false;
  Index n_omitted = 0;
  std::vector<NotCounted> not_counted;
};

/// Folds tensors into a tree. Siblings whose names differ in a number alone and that hold equal
/// tensors (names, shapes, storage) become one node. With an architecture, tensors stand in the
/// order of its table with its axis names, and a tied matrix that is stored too, or a layer that
/// predicts a further token, is not counted. `matches` are those of the two where the caller
/// has them; null: made here. Names that fold into more than `max_summary_rows` rows are listed
/// instead. Time n log n in the number of tensors.
Summary summarize(const std::vector<LogicalTensor>& tensors,
                  const Architecture* architecture = nullptr, const SpecMatches* matches = nullptr);

}  // namespace eckart

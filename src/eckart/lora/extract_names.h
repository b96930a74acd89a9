// The tensors of two checkpoints by the names that transformers' class has for them.
// Included by the library alone.
#pragma once

#include "eckart/lora/extract_plan.h"

#include <vector>

namespace eckart {

/// Pairs the parameters of both models and names what is of none: buffers and scales are left out.
/// Sets name, module, parameter, shape, pair, spec and, where a tensor is one of a tied pair,
/// tied_module. Throws ArgumentError for tensors that are missing, unreadable or of other shapes.
std::vector<PlannedExtract> pair_tensors(const ExtractSources& sources, ExtractPlan& plan);

/// Whether a tensor is a table that is looked up (tokens, positions, types), and whether it is the
/// head: by the table of the family, else by its name.
bool is_table(const PlannedExtract& tensor);
bool is_head(const PlannedExtract& tensor);
/// Whether it is one that PEFT's LoRA of embeddings is sure to fit: a table of positions may have an
/// offset or a class of its own, and a name may mislead.
bool is_plain_table(const PlannedExtract& tensor);

}  // namespace eckart

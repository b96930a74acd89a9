// Attention block by block. Internal; docs/algorithms/attention.md has the loops.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/nn/attention_plan.h"

namespace eckart::detail {

/// The mixtures of a plan with values, row-major batch x head x query x d_v.
template <class T>
void attend_in_blocks(const AttentionPlan<T>& plan, T* out);

/// The scores of a plan, natural logarithms of weights up to a constant, row-major batch x head x
/// query x key; -infinity where a key is hidden. At temperature 0 they are not divided by it.
template <class T>
void score_table(const AttentionPlan<T>& plan, T* table);

}  // namespace eckart::detail

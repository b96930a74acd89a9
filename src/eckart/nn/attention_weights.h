// A table of scores to the table of weights. Internal.
#pragma once

#include "eckart/nn/attention_plan.h"

namespace eckart::detail {

/// The scores of a plan (`score_table`) to its weights, in place.
template <class T>
void scores_to_weights(const AttentionPlan<T>& plan, T* table);

}  // namespace eckart::detail

#include "eckart/nn/attention_weights.h"

#include "eckart/core/parallel.h"
#include "eckart/linalg/pieces.h"
#include "eckart/nn/attention_scores.h"
#include "eckart/nn/hardmax.h"
#include "eckart/nn/softmax_simd.h"

#include <algorithm>

namespace eckart::detail {

template <class T>
void scores_to_weights(const AttentionPlan<T>& plan, T* table) {
  if (plan.n_keys == 0) return;
  const ScoreRules<T> rules(plan, 1);
  const Index n_rows = plan.n_batches * plan.n_heads * plan.n_queries;
  parallel_for(n_rows, std::max<Index>(1, piece_elements / plan.n_keys),
               [&](Index begin, Index end) {
                 for (Index row = begin; row < end; ++row) {
                   const T sink = rules.sink(row / plan.n_queries % plan.n_heads);
                   T* const scores = table + row * plan.n_keys;
                   if (rules.is_hard()) {
                     harden_row(scores, plan.n_keys, sink, {});
                   } else {
                     softmax_row(scores, plan.n_keys, sink);
                   }
                 }
               });
}

template void scores_to_weights(const AttentionPlan<float>&, float*);
template void scores_to_weights(const AttentionPlan<double>&, double*);

}  // namespace eckart::detail

#include "eckart/nn/attention.h"

#include "eckart/nn/attention_blocks.h"
#include "eckart/nn/attention_plan.h"
#include "eckart/nn/attention_weights.h"

namespace eckart {

template <class T>
Tensor<T> attention(TensorView<const T> q, TensorView<const T> k, TensorView<const T> v,
                    const AttentionOptions<T>& options) {
  detail::AttentionPlan<T> plan = detail::plan_attention("attention", q, k, options);
  detail::plan_values("attention", k, v, plan);
  Tensor<T> out = Tensor<T>::uninitialized(detail::mixed_shape(q.shape(), v.shape()));
  detail::attend_in_blocks(plan, out.data());
  return out;
}

template <class T>
Tensor<T> attention_weights(TensorView<const T> q, TensorView<const T> k,
                            const AttentionOptions<T>& options) {
  const auto plan = detail::plan_attention("attention_weights", q, k, options);
  Tensor<T> table = Tensor<T>::uninitialized(detail::score_shape(q.shape(), k.shape()));
  detail::score_table(plan, table.data());
  detail::scores_to_weights(plan, table.data());
  return table;
}

template Tensor<float> attention(TensorView<const float>, TensorView<const float>,
                                 TensorView<const float>, const AttentionOptions<float>&);
template Tensor<double> attention(TensorView<const double>, TensorView<const double>,
                                  TensorView<const double>, const AttentionOptions<double>&);
template Tensor<float> attention_weights(TensorView<const float>, TensorView<const float>,
                                         const AttentionOptions<float>&);
template Tensor<double> attention_weights(TensorView<const double>, TensorView<const double>,
                                          const AttentionOptions<double>&);

}  // namespace eckart

#include "eckart/nn/attention_head.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/nn/attention_blocks.h"
#include "eckart/nn/attention_plan.h"
#include "eckart/nn/attention_weights.h"

#include <string>
#include <utility>

namespace eckart {
namespace {

// `name` is a matrix whose `axis` has the size of another's.
template <class T>
void check_weight(const std::string& operation, const char* name, const Tensor<T>& w) {
  if (w.rank() == 2) return;
  throw_shape_error(operation + ": " + name + " is " + to_string(w.shape()) +
                    ", but it must be a matrix");
}

template <class T>
void check_pair(const std::string& operation, const char* left, const Tensor<T>& a,
                const char* right, const Tensor<T>& b, Index b_axis) {
  check_weight(operation, left, a);
  check_weight(operation, right, b);
  if (a.size(1) == b.size(b_axis)) return;
  throw_shape_error(operation + ": " + left + " is " + to_string(a.shape()) + " and " + right +
                    " is " + to_string(b.shape()) + ", but " + left + "'s " +
                    counted(a.size(1), "column") + " must equal " + right + "'s " +
                    counted(b.size(b_axis), b_axis == 0 ? "row" : "column"));
}

template <class T>
void check_head(const std::string& operation, const AttentionHead<T>& head) {
  check_pair(operation, "w_q", head.w_q, "w_k", head.w_k, 1);
  check_pair(operation, "w_v", head.w_v, "w_o", head.w_o, 0);
}

}  // namespace

template <class T>
HeadTrace<T> trace_head(TensorView<const T> x, const AttentionHead<T>& head,
                        const AttentionOptions<T>& options) {
  check_head("trace_head", head);
  if (x.rank() != 2) {
    throw_shape_error("trace_head: x is " + to_string(x.shape()) +
                      ", but it must be token x d_model");
  }
  const MatmulOptions of_x{.operation = "trace_head", .left = "x", .right = "w_q"};
  HeadTrace<T> trace;
  trace.q = matmul(x, head.w_q.view(), of_x);
  trace.k = matmul<T>(x, head.w_k, {.operation = "trace_head", .left = "x", .right = "w_k"});
  trace.v = matmul<T>(x, head.w_v, {.operation = "trace_head", .left = "x", .right = "w_v"});
  const TensorView<const T> q = trace.q;
  const TensorView<const T> k = trace.k;
  const detail::AttentionPlan<T> plan = detail::plan_attention("trace_head", q, k, options);
  const Shape shape = detail::score_shape(q.shape(), k.shape());
  trace.scores = Tensor<T>::uninitialized(shape);
  detail::score_table(plan, trace.scores.data());
  trace.weights = trace.scores;
  detail::scores_to_weights(plan, trace.weights.data());
  trace.mixed = attention(q, k, TensorView<const T>(trace.v), options);
  trace.output = matmul<T>(trace.mixed, head.w_o,
                           {.operation = "trace_head", .left = "mixed", .right = "w_o"});
  return trace;
}

template <class T>
ProductOperator<T> qk_circuit(const AttentionHead<T>& head) {
  check_pair("qk_circuit", "w_q", head.w_q, "w_k", head.w_k, 1);
  return ProductOperator<T>(head.w_q, head.w_k.view().transpose());
}

template <class T>
ProductOperator<T> ov_circuit(const AttentionHead<T>& head) {
  check_pair("ov_circuit", "w_v", head.w_v, "w_o", head.w_o, 0);
  return ProductOperator<T>(head.w_v, head.w_o);
}

template HeadTrace<float> trace_head(TensorView<const float>, const AttentionHead<float>&,
                                     const AttentionOptions<float>&);
template HeadTrace<double> trace_head(TensorView<const double>, const AttentionHead<double>&,
                                      const AttentionOptions<double>&);
template ProductOperator<float> qk_circuit(const AttentionHead<float>&);
template ProductOperator<double> qk_circuit(const AttentionHead<double>&);
template ProductOperator<float> ov_circuit(const AttentionHead<float>&);
template ProductOperator<double> ov_circuit(const AttentionHead<double>&);

}  // namespace eckart

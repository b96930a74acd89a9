#include "eckart/nn/attention_plan.h"

#include "eckart/core/broadcast.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/matrix_checks.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart::detail {
namespace {

// Where the matrices of each batch begin: of all axes before the last three.
std::vector<Index> batch_offsets(const Shape& shape, const std::vector<Index>& strides) {
  std::vector<Index> offsets{0};
  for (Index axis = 0; axis + 3 < shape.rank(); ++axis) {
    std::vector<Index> next;
    for (const Index offset : offsets) {
      for (Index i = 0; i < shape.size(axis); ++i) {
        next.push_back(offset + i * strides[static_cast<std::size_t>(axis)]);
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

template <class T>
Operand<T> operand_of(const TensorView<const T>& view) {
  const std::vector<Index>& strides = view.strides();
  const std::size_t rank = strides.size();
  return {view.data(), batch_offsets(view.shape(), strides), rank > 2 ? strides[rank - 3] : 0,
          strides[rank - 2], strides[rank - 1]};
}

template <class T>
StoredRows stored_of(const TensorView<const T>& view) {
  const Operand<T> operand = operand_of(view);
  return {view.data(), operand.head, operand.row, operand.column, false};
}

Index heads_of(const Shape& shape) { return shape.rank() > 2 ? shape.size(-3) : 1; }

struct Pair {
  std::string_view operation;
  std::string_view left;
  const Shape& a;
  std::string_view right;
  const Shape& b;

  std::string text() const {
    return std::string(operation) + ": " + std::string(left) + " is " + to_string(a) + " and " +
           std::string(right) + " is " + to_string(b);
  }
};

void check_rank(std::string_view operation, std::string_view name, const Shape& shape) {
  if (shape.rank() >= 2) return;
  throw_shape_error(std::string(operation) + ": " + std::string(name) + " is " + to_string(shape) +
                        ", but it must have at least two axes",
                    shape.rank() == 1 ? "a single row of d elements is the matrix 1xd" : "");
}

// One name for one axis: of the same place from the end.
void check_axis_name(const Pair& pair, Index axis) {
  const std::string& a = pair.a.name(axis);
  const std::string& b = pair.b.name(axis);
  if (a.empty() || b.empty() || a == b) return;
  throw_shape_error(pair.text() + ", but axis " + a + " of " + std::string(pair.left) +
                    " would meet axis " + b + " of " + std::string(pair.right));
}

// Leading axes as many and the same.
void check_batches(const Pair& pair) {
  if (pair.a.rank() != pair.b.rank()) {
    throw_shape_error(pair.text() + ", but both must have the same number of axes",
                      "an axis of one head is written as 1");
  }
  for (Index axis = 0; axis + 3 < pair.a.rank(); ++axis) {
    if (pair.a.size(axis) != pair.b.size(axis)) {
      throw_shape_error(pair.text() + ", but " + std::to_string(pair.a.size(axis)) + " meets " +
                            std::to_string(pair.b.size(axis)) + " in axis " + std::to_string(axis) +
                            ", and batches must be the same",
                        "broadcast_to repeats a batch without a copy");
    }
    check_axis_name(pair, axis - pair.a.rank());
  }
}

void check_keys(const Pair& pair) {
  check_batches(pair);
  const Index width = pair.a.size(-1);
  if (pair.b.size(-1) != width) {
    throw_shape_error(
        pair.text() + ", but " + std::string(pair.left) + "'s " + counted(width, "column") +
            " must equal " + std::string(pair.right) + "'s " + counted(pair.b.size(-1), "column"),
        pair.b.size(-2) == width ? "with " + std::string(pair.right) + " transposed they fit" : "");
  }
  check_axis_name(pair, -1);
}

void check_heads(const Pair& pair, Index n_heads, Index n_kv_heads) {
  if (n_heads == 0 && n_kv_heads == 0) return;
  if (n_kv_heads != 0 && n_heads % n_kv_heads == 0) return;
  throw_shape_error(pair.text() + ", but " + std::string(pair.left) + "'s " +
                    counted(n_heads, "head") + " must be a multiple of " + std::string(pair.right) +
                    "'s " + counted(n_kv_heads, "head"));
}

// A table that is broadcast to the scores.
template <class U>
Operand<U> table_of(std::string_view operation, std::string_view name, const Shape& scores,
                    const TensorView<const U>& table) {
  const Shape together = broadcast_shape(
      scores, table.shape(),
      {.outer = true, .operation = operation, .left = "the table of scores", .right = name});
  if (!same_sizes(together, scores)) {
    throw_shape_error(std::string(operation) + ": the table of scores is " + to_string(scores) +
                      " and " + std::string(name) + " is " + to_string(table.shape()) + ", but " +
                      std::string(name) + " must broadcast to the scores, and not they to it");
  }
  return operand_of(
      TensorView<const U>(table.data(), table.shape().without_names(), table.strides())
          .broadcast_to(scores.without_names()));
}

template <class T>
void check_per_head(std::string_view operation, std::string_view name, Index n_heads,
                    const TensorView<const T>& view) {
  if (view.rank() == 1 && view.size(0) == n_heads) return;
  throw_shape_error(std::string(operation) + ": there " + (n_heads == 1 ? "is " : "are ") +
                    counted(n_heads, "head") + " and " + std::string(name) + " is " +
                    to_string(view.shape()) + ", but it must have one element a head");
}

template <class T>
void check_numbers(std::string_view operation, const AttentionOptions<T>& options) {
  const std::string start = std::string(operation) + ": the ";
  if (options.window < 0) {
    throw_argument_error(start + "window is " + std::to_string(options.window) +
                         ", but it must be at least 1, or 0 for no window");
  }
  if (options.window > 0 && !options.causal) {
    throw_argument_error(start + "window is " + std::to_string(options.window) +
                             ", but a window counts back from a causal query's position",
                         "set causal = true, or hide keys on both sides with a mask");
  }
  if (!(options.temperature >= 0)) {
    throw_argument_error(start + "temperature is " + number_text(options.temperature) +
                             ", but it must be at least 0",
                         "0 takes the value of the best key, infinity the mean of all");
  }
  if (!(options.softcap >= 0) || std::isinf(options.softcap)) {
    throw_argument_error(start + "softcap is " + number_text(options.softcap) +
                         ", but it must be a number above 0, or 0 for none");
  }
  if (options.scale && !std::isfinite(*options.scale)) {
    throw_argument_error(start + "scale is " + number_text(*options.scale) +
                         ", but it must be finite");
  }
}

// A shape with other names and sizes for its last axes.
Shape with_last(const Shape& shape, std::vector<std::pair<Index, std::string>> last) {
  std::vector<Index> sizes = shape.sizes();
  std::vector<std::string> names;
  for (Index axis = 0; axis < shape.rank(); ++axis) names.push_back(shape.name(axis));
  for (std::size_t i = 0; i < last.size(); ++i) {
    const std::size_t at = sizes.size() - last.size() + i;
    sizes[at] = last[i].first;
    names[at] = last[i].second;
  }
  return shape_with_names(std::move(sizes), std::move(names));
}

}  // namespace

Shape score_shape(const Shape& q, const Shape& k) {
  return with_last(q, {{k.size(-2), k.name(-2)}});
}

Shape mixed_shape(const Shape& q, const Shape& v) {
  return with_last(q, {{v.size(-1), v.name(-1)}});
}

template <class T>
void plan_options(std::string_view operation, const Shape& scores,
                  const AttentionOptions<T>& options, AttentionPlan<T>& plan) {
  check_numbers(operation, options);
  plan.causal = options.causal;
  plan.window = options.window;
  plan.offset = options.offset.value_or(plan.n_keys - plan.n_queries);
  const double length = plan.d_head > 0 ? std::sqrt(static_cast<double>(plan.d_head)) : 1;
  plan.scale = options.scale.value_or(1 / length);
  plan.temperature = options.temperature;
  plan.softcap = options.softcap;
  if (options.mask) plan.mask = table_of(operation, "mask", scores, *options.mask);
  if (options.bias) plan.bias = table_of(operation, "bias", scores, *options.bias);
  if (options.alibi_slopes) {
    check_per_head(operation, "alibi_slopes", plan.n_heads, *options.alibi_slopes);
    plan.slopes = *options.alibi_slopes;
  }
  if (options.sinks) {
    check_per_head(operation, "sinks", plan.n_heads, *options.sinks);
    plan.sinks = *options.sinks;
  }
}

template <class T>
AttentionPlan<T> plan_attention(std::string_view operation, TensorView<const T> q,
                                TensorView<const T> k, const AttentionOptions<T>& options) {
  check_rank(operation, "q", q.shape());
  check_rank(operation, "k", k.shape());
  const Pair pair{operation, "q", q.shape(), "k", k.shape()};
  check_keys(pair);
  AttentionPlan<T> plan;
  plan.n_heads = heads_of(q.shape());
  plan.n_kv_heads = heads_of(k.shape());
  check_heads(pair, plan.n_heads, plan.n_kv_heads);
  plan.n_queries = q.size(-2);
  plan.n_keys = k.size(-2);
  plan.d_head = q.size(-1);
  plan.q = operand_of(q);
  plan.n_batches = static_cast<Index>(plan.q.batches.size());
  plan.k = stored_of(k);
  plan.k_batches = batch_offsets(k.shape(), k.strides());
  plan_options(operation, score_shape(q.shape(), k.shape()), options, plan);
  return plan;
}

template <class T>
void plan_values(std::string_view operation, TensorView<const T> k, TensorView<const T> v,
                 AttentionPlan<T>& plan) {
  check_rank(operation, "v", v.shape());
  const Pair pair{operation, "k", k.shape(), "v", v.shape()};
  check_batches(pair);
  if (heads_of(k.shape()) != heads_of(v.shape())) {
    throw_shape_error(pair.text() + ", but both must have the same number of heads");
  }
  if (k.size(-2) != v.size(-2)) {
    throw_shape_error(pair.text() + ", but k's " + counted(k.size(-2), "row") + " must equal v's " +
                          counted(v.size(-2), "row"),
                      v.size(-1) == k.size(-2) ? "with v transposed they fit" : "");
  }
  check_axis_name(pair, -2);
  plan.d_v = v.size(-1);
  plan.v = stored_of(v);
  plan.v_batches = batch_offsets(v.shape(), v.strides());
}

template <class T>
void plan_queries(std::string_view operation, TensorView<const T> q, AttentionPlan<T>& plan) {
  const Shape keys({plan.n_kv_heads, plan.n_keys, plan.d_head});
  const Pair pair{operation, "q", q.shape(), "the cache", keys};
  if (q.rank() != 3) {
    throw_shape_error(std::string(operation) + ": q is " + to_string(q.shape()) +
                      ", but it must be head x query x d_head");
  }
  check_keys(pair);
  plan.n_heads = q.size(0);
  check_heads(pair, plan.n_heads, plan.n_kv_heads);
  plan.n_queries = q.size(1);
  plan.q = operand_of(q);
}

template struct AttentionPlan<float>;
template struct AttentionPlan<double>;
template AttentionPlan<float> plan_attention(std::string_view, TensorView<const float>,
                                             TensorView<const float>,
                                             const AttentionOptions<float>&);
template AttentionPlan<double> plan_attention(std::string_view, TensorView<const double>,
                                              TensorView<const double>,
                                              const AttentionOptions<double>&);
template void plan_values(std::string_view, TensorView<const float>, TensorView<const float>,
                          AttentionPlan<float>&);
template void plan_values(std::string_view, TensorView<const double>, TensorView<const double>,
                          AttentionPlan<double>&);
template void plan_queries(std::string_view, TensorView<const float>, AttentionPlan<float>&);
template void plan_queries(std::string_view, TensorView<const double>, AttentionPlan<double>&);
template void plan_options(std::string_view, const Shape&, const AttentionOptions<float>&,
                           AttentionPlan<float>&);
template void plan_options(std::string_view, const Shape&, const AttentionOptions<double>&,
                           AttentionPlan<double>&);

}  // namespace eckart::detail

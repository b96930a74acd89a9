// How an array is walked while some of its axes are reduced.
#pragma once

#include "eckart/core/parallel.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/axis.h"
#include "eckart/linalg/pieces.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// Some axes of an array, walked row by row; neighbours that lie in order are one.
struct AxisGroup {
  std::vector<Index> sizes;
  std::vector<Index> strides;
  Index count = 1;

  void append(Index size, Index stride);
  Index offset(Index position) const {
    Index offset = 0;
    for (std::size_t axis = sizes.size(); axis-- > 0; position /= sizes[axis]) {
      offset += position % sizes[axis] * strides[axis];
    }
    return offset;
  }
};

struct ReducePlan {
  Shape result;
  AxisGroup kept;
  AxisGroup reduced;  // at least one axis, of size 1 where there is none
  /// Neighbouring results are nearer in memory than neighbouring terms: they are summed side by
  /// side.
  bool is_across = false;
  Index outputs_at_once = 1;
  Index terms_at_once = 1;
  Index n_chunks = 1;  // of the terms
};

/// Throws ShapeError when there is no such axis or one stands twice.
ReducePlan plan_reduction(std::string_view operation, const Shape& shape,
                          const std::vector<Index>& strides, const std::vector<Axis>& axes,
                          bool keep_axes);

/// Takes the terms from `begin` to `end` of the outputs from `first` to `last` into their states.
template <class T, class State>
void take_terms(const ReducePlan& plan, TensorView<const T> x, Index first, Index last, Index begin,
                Index end, State* states) {
  if (plan.is_across) {
    const T* const base = x.data() + plan.kept.offset(first);
    const Index stride = plan.kept.strides.back();
    for (Index term = begin; term < end; ++term) {
      const T* const row = base + plan.reduced.offset(term);
      for (Index i = 0; i < last - first; ++i) states[i].add(row[i * stride], term);
    }
    return;
  }
  const Index length = plan.reduced.sizes.back();
  for (Index output = first; output < last; ++output) {
    const T* const base = x.data() + plan.kept.offset(output);
    State& state = states[output - first];
    Index term = begin;
    while (term < end) {
      const Index n = std::min(end - term, length - term % length);
      for_blocks(base + plan.reduced.offset(term), n, plan.reduced.strides.back(),
                 [&](const T* elements, std::size_t count) {
                   state.add_block(elements, count, term);
                   term += static_cast<Index>(count);
                 });
    }
  }
}

/// Calls `finish(output, state)` for every output, once its terms went into the state that
/// `start(output)` made. Pieces depend on sizes alone; states of one output are merged in order.
template <class T, class Start, class Finish>
void reduce(const ReducePlan& plan, TensorView<const T> x, const Start& start,
            const Finish& finish) {
  using State = decltype(start(Index{0}));
  const Index row = plan.is_across ? plan.kept.sizes.back() : plan.kept.count;
  if (plan.kept.count == 0) return;
  const Index blocks_a_row = (row + plan.outputs_at_once - 1) / plan.outputs_at_once;
  const Index n_blocks = plan.kept.count / row * blocks_a_row;
  std::vector<State> parts;  // chunk by chunk, where the terms are cut
  const bool is_cut = plan.n_chunks > 1;
  if (is_cut) {
    for (Index chunk = 0; chunk < plan.n_chunks; ++chunk) {
      for (Index output = 0; output < plan.kept.count; ++output) parts.push_back(start(output));
    }
  }
  parallel_for(n_blocks * plan.n_chunks, 1, [&](Index task, Index) {
    const Index block = task % n_blocks;
    const Index chunk = task / n_blocks;
    const Index first = block / blocks_a_row * row + block % blocks_a_row * plan.outputs_at_once;
    const Index last = std::min(first + plan.outputs_at_once, (block / blocks_a_row + 1) * row);
    const Index begin = chunk * plan.terms_at_once;
    const Index end = std::min(begin + plan.terms_at_once, plan.reduced.count);
    if (is_cut) {
      State* const states = parts.data() + chunk * plan.kept.count + first;
      take_terms(plan, x, first, last, begin, end, states);
      return;
    }
    std::vector<State> states;
    for (Index output = first; output < last; ++output) states.push_back(start(output));
    take_terms(plan, x, first, last, begin, end, states.data());
    for (Index output = first; output < last; ++output) {
      finish(output, states[static_cast<std::size_t>(output - first)]);
    }
  });
  if (!is_cut) return;
  for (Index output = 0; output < plan.kept.count; ++output) {
    State state = parts[static_cast<std::size_t>(output)];
    for (Index chunk = 1; chunk < plan.n_chunks; ++chunk) {
      state.merge(parts[static_cast<std::size_t>(chunk * plan.kept.count + output)]);
    }
    finish(output, state);
  }
}

}  // namespace eckart::detail

// Sums over all elements of a view in pieces of a fixed size, on all cores.
#pragma once

#include "eckart/core/parallel.h"
#include "eckart/core/tensor_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

namespace eckart::detail {

/// Elements of a piece: enough to outweigh handing it to a thread, and a quarter of a megabyte of
/// floats, which a core's cache holds.
inline constexpr Index piece_elements = Index{1} << 16;

/// Elements that are added in one go. Sums of these are added in turn, which bounds the error: no
/// element goes through more than 4096 / 8 + 10 additions there, 16 in its piece, and one for each
/// piece.
inline constexpr Index block_elements = Index{1} << 12;

/// A view's elements as runs of a constant stride, in the order of memory as far as can be.
class Runs {
 public:
  Runs(const Shape& shape, const std::vector<Index>& strides) {
    std::vector<std::size_t> order;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
      if (shape.sizes()[axis] != 1) order.push_back(axis);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(strides[a]) > std::abs(strides[b]);
    });
    for (const std::size_t axis : order) {
      const Index size = shape.sizes()[axis];
      const Index stride = strides[axis];
      if (!axes_.empty() && axes_.back().stride == size * stride) {
        axes_.back() = {axes_.back().size * size, stride};
      } else {
        axes_.push_back({size, stride});
      }
    }
    if (axes_.empty()) axes_.push_back({shape.count() == 0 ? 0 : 1, 1});
  }

  Index length() const { return axes_.back().size; }
  Index stride() const { return axes_.back().stride; }
  /// Where run number `run` begins, in elements from the view's first.
  Index offset(Index run) const {
    Index offset = 0;
    for (std::size_t axis = axes_.size() - 1; axis-- > 0; run /= axes_[axis].size) {
      offset += run % axes_[axis].size * axes_[axis].stride;
    }
    return offset;
  }

 private:
  struct Axis {
    Index size;
    Index stride;
  };
  std::vector<Axis> axes_;  // outermost first
};

/// Calls `body(elements, n)` for adjacent elements, n at most `block_elements`; where the stride is
/// not 1 they are copied first.
template <class T, class Body>
void for_blocks(const T* elements, Index n, Index stride, const Body& body) {
  if (stride == 1) {
    for (Index begin = 0; begin < n; begin += block_elements) {
      body(elements + begin, static_cast<std::size_t>(std::min(block_elements, n - begin)));
    }
    return;
  }
  constexpr Index at_once = 1024;  // 8 KB of stack
  T copies[at_once];
  for (Index begin = 0; begin < n; begin += at_once) {
    const Index count = std::min(at_once, n - begin);
    for (Index i = 0; i < count; ++i) copies[i] = elements[(begin + i) * stride];
    body(static_cast<const T*>(copies), static_cast<std::size_t>(count));
  }
}

/// Results of all pieces of `count` elements, each by `body(begin, end)`, in order.
template <class Body>
std::vector<double> in_pieces(Index count, const Body& body) {
  std::vector<double> results(
      static_cast<std::size_t>((count + piece_elements - 1) / piece_elements));
  parallel_for(count, piece_elements, [&](Index begin, Index end) {
    results[static_cast<std::size_t>(begin / piece_elements)] = body(begin, end);
  });
  return results;
}

/// Combines `run(elements, n)` over all elements of a view by `combine(result, of_run)`, from 0.
template <class T, class Run, class Combine>
double over_elements(TensorView<const T> a, const Run& run, const Combine& combine) {
  const Runs runs(a.shape(), a.strides());
  const std::vector<double> results = in_pieces(a.count(), [&](Index begin, Index end) {
    double result = 0;
    while (begin < end) {
      const Index within = begin % runs.length();
      const Index n = std::min(end - begin, runs.length() - within);
      const T* const first = a.data() + runs.offset(begin / runs.length()) + within * runs.stride();
      for_blocks(first, n, runs.stride(), [&](const T* elements, std::size_t count) {
        result = combine(result, run(elements, count));
      });
      begin += n;
    }
    return result;
  });
  return std::accumulate(results.begin(), results.end(), 0.0, combine);
}

}  // namespace eckart::detail

// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
//
// Both products keep 6 rows by 2 vectors (4 where there are 32 registers) in registers and read one
// packed panel of keys or values in order, so that each vector that is loaded meets six rows.
#include "eckart/nn/attention_simd.h"

#include <cstddef>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/nn/attention_simd.cpp"
// What follows highway.h is made anew for each instruction set, and must not stand before it.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "eckart/nn/exp2_inl.h"
#include "eckart/nn/panels_inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t n_rows = group_rows;

template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

// out (rows `stride` apart) := the products of six packed queries with one panel of keys.
template <class T>
HWY_INLINE void score_tile(const T* HWY_RESTRICT queries, const T* HWY_RESTRICT keys, Index width,
                           T* HWY_RESTRICT out, Index stride) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[n_rows][panel_vectors];
  for (auto& row : sums) {
    for (auto& sum : row) sum = hn::Zero(d);
  }
  for (Index i = 0; i < width; ++i) {
    hn::Vec<decltype(d)> columns[panel_vectors];
    for (std::size_t v = 0; v < panel_vectors; ++v) columns[v] = hn::Load(d, keys + v * lanes);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const auto number = hn::Set(d, queries[r]);
      for (std::size_t v = 0; v < panel_vectors; ++v) {
        sums[r][v] = hn::MulAdd(number, columns[v], sums[r][v]);
      }
    }
    queries += n_rows;
    keys += panel_vectors * lanes;
  }
  for (std::size_t r = 0; r < n_rows; ++r) {
    for (std::size_t v = 0; v < panel_vectors; ++v) {
      hn::Store(sums[r][v], d, out + static_cast<Index>(r) * stride + v * lanes);
    }
  }
}

template <class T>
void multiply_keys_as(const ScoreTask<T>& task) {
  const Index panel = panel_width_as<T>();
  Index end = 0;
  for (Index g = 0; g < task.n_groups; ++g) {
    if (task.groups[g].end > end) end = task.groups[g].end;
  }
  for (Index key = 0; key < end; key += panel) {
    for (Index g = 0; g < task.n_groups; ++g) {
      if (key < task.groups[g].begin || key >= task.groups[g].end) continue;
      score_tile(task.queries + g * group_rows * task.width, task.keys + key * task.width,
                 task.width, task.scores + g * group_rows * task.stride + key, task.stride);
    }
  }
}

template <class T>
void cap_scores_as(T* scores, Index n, T factor) {
  const hn::ScalableTag<T> d;
  const Index lanes = lanes_of<T>();
  const auto factors = hn::Set(d, factor);
  for (Index i = 0; i < n; i += lanes) {
    if (i + lanes <= n) {
      hn::StoreU(hn::Mul(factors, tanh(d, hn::LoadU(d, scores + i))), d, scores + i);
      continue;
    }
    T rest[HWY_MAX_BYTES / sizeof(T)] = {};
    for (Index k = 0; i + k < n; ++k) rest[k] = scores[i + k];
    hn::StoreU(hn::Mul(factors, tanh(d, hn::LoadU(d, rest))), d, rest);
    for (Index k = 0; i + k < n; ++k) scores[i + k] = rest[k];
  }
}

template <class T>
T power_of_two(T x) {
  const hn::ScalableTag<T> d;
  return hn::GetLane(exp2(d, hn::Set(d, x)));
}

// The range is whole vectors.
template <class T>
void update_row(T* scores, KeyRange range, T& largest, T& sum, T& shrink) {
  const hn::ScalableTag<T> d;
  const Index lanes = lanes_of<T>();
  auto most = hn::Set(d, largest), other = most;
  Index i = range.begin;
  for (; i + 2 * lanes <= range.end; i += 2 * lanes) {
    most = hn::Max(hn::LoadU(d, scores + i), most);
    other = hn::Max(hn::LoadU(d, scores + i + lanes), other);
  }
  for (; i < range.end; i += lanes) most = hn::Max(hn::LoadU(d, scores + i), most);
  const T new_largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(most, other)));
  // Where all was hidden so far, any finite reference makes the powers 0.
  const auto reference = hn::Set(d, new_largest == lowest<T> ? T{0} : new_largest);
  auto a = hn::Zero(d), b = a;
  for (i = range.begin; i + 2 * lanes <= range.end; i += 2 * lanes) {
    const auto first = exp2(d, hn::Sub(hn::LoadU(d, scores + i), reference));
    const auto second = exp2(d, hn::Sub(hn::LoadU(d, scores + i + lanes), reference));
    hn::StoreU(first, d, scores + i);
    hn::StoreU(second, d, scores + i + lanes);
    a = hn::Add(a, first);
    b = hn::Add(b, second);
  }
  for (; i < range.end; i += lanes) {
    const auto power = exp2(d, hn::Sub(hn::LoadU(d, scores + i), reference));
    hn::StoreU(power, d, scores + i);
    a = hn::Add(a, power);
  }
  shrink = new_largest == largest ? T{1} : power_of_two(largest - new_largest);
  sum = sum * shrink + hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  largest = new_largest;
}

template <class T>
void update_softmax_as(const SoftmaxTask<T>& task) {
  for (Index r = 0; r < task.n_rows; ++r) {
    task.shrink[r] = 1;
    if (task.rows[r].begin >= task.rows[r].end) continue;
    update_row(task.scores + r * task.stride, task.rows[r], task.largest[r], task.sum[r],
               task.shrink[r]);
  }
}

template <std::size_t n_vectors, class T>
HWY_INLINE void mix_tile(const MixTask<T>& task, Index group, const T* HWY_RESTRICT values,
                         T* HWY_RESTRICT mixed) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const KeyRange range = task.groups[group];
  const Index columns = task.n_vectors * static_cast<Index>(lanes);
  hn::Vec<decltype(d)> sums[n_rows][n_vectors];
  for (std::size_t r = 0; r < n_rows; ++r) {
    const auto shrink = hn::Set(d, task.shrink[group * group_rows + static_cast<Index>(r)]);
    for (std::size_t v = 0; v < n_vectors; ++v) {
      sums[r][v] =
          hn::Mul(shrink, hn::Load(d, mixed + static_cast<Index>(r) * columns + v * lanes));
    }
  }
  const T* HWY_RESTRICT weights = task.weights + group * group_rows * task.stride;
  const Index stride = task.stride;
  for (Index key = range.begin; key < range.end; ++key) {
    hn::Vec<decltype(d)> row[n_vectors];
    const T* HWY_RESTRICT from = values + key * static_cast<Index>(n_vectors * lanes);
    for (std::size_t v = 0; v < n_vectors; ++v) row[v] = hn::Load(d, from + v * lanes);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const auto weight = hn::Set(d, weights[static_cast<Index>(r) * stride + key]);
      for (std::size_t v = 0; v < n_vectors; ++v) {
        sums[r][v] = hn::MulAdd(weight, row[v], sums[r][v]);
      }
    }
  }
  for (std::size_t r = 0; r < n_rows; ++r) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      hn::Store(sums[r][v], d, mixed + static_cast<Index>(r) * columns + v * lanes);
    }
  }
}

template <class T>
void mix_values_as(const MixTask<T>& task) {
  const Index lanes = lanes_of<T>();
  const Panels panels(task.n_vectors);
  const T* values = task.values;
  Index column = 0;
  for (Index panel = 0; panel < panels.n; ++panel) {
    const Index n_vectors = panels.vectors_of(panel);
    for (Index g = 0; g < task.n_groups; ++g) {
      if (task.groups[g].begin >= task.groups[g].end) continue;
      T* const mixed = task.mixed + g * group_rows * task.n_vectors * lanes + column;
      switch (n_vectors) {
        case 1:
          mix_tile<1>(task, g, values, mixed);
          break;
        case 2:
          mix_tile<2>(task, g, values, mixed);
          break;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
        case 3:
          mix_tile<3>(task, g, values, mixed);
          break;
        default:
          mix_tile<4>(task, g, values, mixed);
#else
        default:
          break;
#endif
      }
    }
    values += task.value_rows * n_vectors * lanes;
    column += n_vectors * lanes;
  }
}

template <class T>
void powers_of_two_as(const T* in, Index n, T* out) {
  for (Index i = 0; i < n; ++i) out[i] = power_of_two(in[i]);
}

void multiply_keys_float(const ScoreTask<float>& task) { multiply_keys_as(task); }
void cap_scores_float(float* scores, Index n, float factor) { cap_scores_as(scores, n, factor); }
void update_softmax_float(const SoftmaxTask<float>& task) { update_softmax_as(task); }
void mix_values_float(const MixTask<float>& task) { mix_values_as(task); }
void powers_of_two_float(const float* in, Index n, float* out) { powers_of_two_as(in, n, out); }
void multiply_keys_double(const ScoreTask<double>& task) { multiply_keys_as(task); }
void cap_scores_double(double* scores, Index n, double factor) { cap_scores_as(scores, n, factor); }
void update_softmax_double(const SoftmaxTask<double>& task) { update_softmax_as(task); }
void mix_values_double(const MixTask<double>& task) { mix_values_as(task); }
void powers_of_two_double(const double* in, Index n, double* out) { powers_of_two_as(in, n, out); }

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(multiply_keys_float);
HWY_EXPORT(multiply_keys_double);
HWY_EXPORT(cap_scores_float);
HWY_EXPORT(cap_scores_double);
HWY_EXPORT(update_softmax_float);
HWY_EXPORT(update_softmax_double);
HWY_EXPORT(mix_values_float);
HWY_EXPORT(mix_values_double);
HWY_EXPORT(powers_of_two_float);
HWY_EXPORT(powers_of_two_double);

}  // namespace

template <>
void multiply_keys(const ScoreTask<float>& task) {
  HWY_DYNAMIC_DISPATCH(multiply_keys_float)(task);
}
template <>
void cap_scores(float* scores, Index n, float factor) {
  HWY_DYNAMIC_DISPATCH(cap_scores_float)(scores, n, factor);
}
template <>
void update_softmax(const SoftmaxTask<float>& task) {
  HWY_DYNAMIC_DISPATCH(update_softmax_float)(task);
}
template <>
void mix_values(const MixTask<float>& task) {
  HWY_DYNAMIC_DISPATCH(mix_values_float)(task);
}
template <>
void powers_of_two(const float* in, Index n, float* out) {
  HWY_DYNAMIC_DISPATCH(powers_of_two_float)(in, n, out);
}

template <>
void multiply_keys(const ScoreTask<double>& task) {
  HWY_DYNAMIC_DISPATCH(multiply_keys_double)(task);
}
template <>
void cap_scores(double* scores, Index n, double factor) {
  HWY_DYNAMIC_DISPATCH(cap_scores_double)(scores, n, factor);
}
template <>
void update_softmax(const SoftmaxTask<double>& task) {
  HWY_DYNAMIC_DISPATCH(update_softmax_double)(task);
}
template <>
void mix_values(const MixTask<double>& task) {
  HWY_DYNAMIC_DISPATCH(mix_values_double)(task);
}
template <>
void powers_of_two(const double* in, Index n, double* out) {
  HWY_DYNAMIC_DISPATCH(powers_of_two_double)(in, n, out);
}

}  // namespace eckart::detail
#endif  // HWY_ONCE

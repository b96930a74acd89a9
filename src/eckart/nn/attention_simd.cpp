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
#include "eckart/nn/exp2_inl.h"
#include "eckart/nn/stored_row_inl.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr std::size_t panel_vectors = 4;
#else
constexpr std::size_t panel_vectors = 2;
#endif
static_assert(panel_vectors <= most_panel_vectors);
constexpr std::size_t n_rows = group_rows;

template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

template <class T>
Index lanes_of() {
  return static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()));
}
template <class T>
Index panel_width_as() {
  return static_cast<Index>(panel_vectors) * lanes_of<T>();
}

// Four keys of a panel: number i of key r goes to out[i * panel + r].
void interleave(const float* const* rows, Index width, Index panel, float* out) {
  Index i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  for (; i + 4 <= width; i += 4) {
    const auto a = hn::LoadU(d, rows[0] + i);
    const auto b = hn::LoadU(d, rows[1] + i);
    const auto c = hn::LoadU(d, rows[2] + i);
    const auto e = hn::LoadU(d, rows[3] + i);
    const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
    float* const to = out + i * panel;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + panel);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * panel);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * panel);
  }
#endif
  for (; i < width; ++i) {
    for (Index r = 0; r < 4; ++r) out[i * panel + r] = rows[r][i];
  }
}
void interleave(const double* const* rows, Index width, Index panel, double* out) {
  Index i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<double, 2> d;
  for (; i + 2 <= width; i += 2) {
    for (Index r = 0; r < 4; r += 2) {
      const auto a = hn::LoadU(d, rows[r] + i);
      const auto b = hn::LoadU(d, rows[r + 1] + i);
      hn::StoreU(hn::InterleaveLower(d, a, b), d, out + i * panel + r);
      hn::StoreU(hn::InterleaveUpper(d, a, b), d, out + (i + 1) * panel + r);
    }
  }
#endif
  for (; i < width; ++i) {
    for (Index r = 0; r < 4; ++r) out[i * panel + r] = rows[r][i];
  }
}

template <class T>
void pack_keys_as(const StoredRows& keys, Index first, Index n, Index width, T* buffer, T* packed) {
  const Index panel = panel_width_as<T>();
  for (Index begin = 0; begin < n; begin += panel, packed += panel * width) {
    const Index count = n - begin < panel ? n - begin : panel;
    Index r = 0;
    if (panel >= 4) {
      for (; r + 4 <= count; r += 4) {
        const T* rows[4];
        for (Index i = 0; i < 4; ++i) {
          rows[i] = row_of(keys, first + begin + r + i, width, buffer + i * width);
        }
        interleave(rows, width, panel, packed + r);
      }
    }
    for (; r < panel; ++r) {
      const T* const row = r < count ? row_of(keys, first + begin + r, width, buffer) : nullptr;
      for (Index i = 0; i < width; ++i) packed[i * panel + r] = r < count ? row[i] : T{0};
    }
  }
}

// How the vectors of a row are shared out over panels: as evenly as can be.
struct Panels {
  Index n, vectors, longer;  // the first `longer` panels have one vector more

  explicit Panels(Index n_vectors) {
    n = (n_vectors + static_cast<Index>(panel_vectors) - 1) / static_cast<Index>(panel_vectors);
    vectors = n == 0 ? 0 : n_vectors / n;
    longer = n_vectors - n * vectors;
  }
  Index vectors_of(Index panel) const { return panel < longer ? vectors + 1 : vectors; }
};

template <class T>
bool pack_values_as(const ValuePacking<T>& p) {
  const hn::ScalableTag<T> d;
  const Index lanes = lanes_of<T>();
  const Panels panels((p.width + lanes - 1) / lanes);
  auto lost = hn::Zero(d);  // NaN once a number is NaN or infinite
  T lost_tail = 0;
  for (Index row = 0; row < p.rows; ++row) {
    const T* from = row < p.n ? row_of(p.values, p.first + row, p.width, p.buffer) : nullptr;
    T* panel = p.packed;
    Index column = 0;
    for (Index i = 0; i < panels.n; ++i) {
      const Index width = panels.vectors_of(i) * lanes;
      T* const to = panel + row * width;
      panel += p.rows * width;
      for (Index k = 0; k < width; k += lanes, column += lanes) {
        if (from != nullptr && column + lanes <= p.width) {
          const auto v = hn::LoadU(d, from + column);
          lost = hn::Add(lost, hn::Sub(v, v));
          hn::StoreU(v, d, to + k);
          continue;
        }
        for (Index lane = 0; lane < lanes; ++lane) {
          const T v = from != nullptr && column + lane < p.width ? from[column + lane] : T{0};
          lost_tail += v - v;
          to[k + lane] = v;
        }
      }
    }
  }
  return hn::AllTrue(d, hn::Eq(lost, lost)) && lost_tail == lost_tail;
}

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

template <class T>
const T* stored_row_as(const StoredRows& rows, Index row, Index width, T* buffer) {
  return row_of(rows, row, width, buffer);
}

}  // namespace

// One name a type and instruction set, which the tables below list.
#define ECKART_ATTENTION_LOOPS(T, suffix)                                                     \
  Index panel_##suffix() { return panel_width_as<T>(); }                                      \
  Index vector_##suffix() { return lanes_of<T>(); }                                           \
  const T* stored_row_##suffix(const StoredRows& r, Index i, Index n, T* b) {                 \
    return stored_row_as(r, i, n, b);                                                         \
  }                                                                                           \
  void pack_keys_##suffix(const StoredRows& k, Index first, Index n, Index w, T* b, T* out) { \
    pack_keys_as(k, first, n, w, b, out);                                                     \
  }                                                                                           \
  bool pack_values_##suffix(const ValuePacking<T>& p) { return pack_values_as(p); }           \
  void multiply_keys_##suffix(const ScoreTask<T>& t) { multiply_keys_as(t); }                 \
  void cap_scores_##suffix(T* s, Index n, T factor) { cap_scores_as(s, n, factor); }          \
  void update_softmax_##suffix(const SoftmaxTask<T>& t) { update_softmax_as(t); }             \
  void mix_values_##suffix(const MixTask<T>& t) { mix_values_as(t); }                         \
  void powers_of_two_##suffix(const T* in, Index n, T* out) { powers_of_two_as(in, n, out); }
ECKART_ATTENTION_LOOPS(float, float)
ECKART_ATTENTION_LOOPS(double, double)
#undef ECKART_ATTENTION_LOOPS

}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {

#define ECKART_ATTENTION_DISPATCH(T, suffix)                                           \
  HWY_EXPORT(panel_##suffix);                                                          \
  HWY_EXPORT(vector_##suffix);                                                         \
  HWY_EXPORT(stored_row_##suffix);                                                     \
  HWY_EXPORT(pack_keys_##suffix);                                                      \
  HWY_EXPORT(pack_values_##suffix);                                                    \
  HWY_EXPORT(multiply_keys_##suffix);                                                  \
  HWY_EXPORT(cap_scores_##suffix);                                                     \
  HWY_EXPORT(update_softmax_##suffix);                                                 \
  HWY_EXPORT(mix_values_##suffix);                                                     \
  HWY_EXPORT(powers_of_two_##suffix);                                                  \
  template <>                                                                          \
  Index panel_width<T>() {                                                             \
    return HWY_DYNAMIC_DISPATCH(panel_##suffix)();                                     \
  }                                                                                    \
  template <>                                                                          \
  Index vector_width<T>() {                                                            \
    return HWY_DYNAMIC_DISPATCH(vector_##suffix)();                                    \
  }                                                                                    \
  template <>                                                                          \
  const T* stored_row(const StoredRows& rows, Index row, Index width, T* buffer) {     \
    return HWY_DYNAMIC_DISPATCH(stored_row_##suffix)(rows, row, width, buffer);        \
  }                                                                                    \
  template <>                                                                          \
  void pack_keys(const StoredRows& keys, Index first, Index n, Index width, T* buffer, \
                 T* packed) {                                                          \
    HWY_DYNAMIC_DISPATCH(pack_keys_##suffix)(keys, first, n, width, buffer, packed);   \
  }                                                                                    \
  template <>                                                                          \
  bool pack_values(const ValuePacking<T>& packing) {                                   \
    return HWY_DYNAMIC_DISPATCH(pack_values_##suffix)(packing);                        \
  }                                                                                    \
  template <>                                                                          \
  void multiply_keys(const ScoreTask<T>& task) {                                       \
    HWY_DYNAMIC_DISPATCH(multiply_keys_##suffix)(task);                                \
  }                                                                                    \
  template <>                                                                          \
  void cap_scores(T* scores, Index n, T factor) {                                      \
    HWY_DYNAMIC_DISPATCH(cap_scores_##suffix)(scores, n, factor);                      \
  }                                                                                    \
  template <>                                                                          \
  void update_softmax(const SoftmaxTask<T>& task) {                                    \
    HWY_DYNAMIC_DISPATCH(update_softmax_##suffix)(task);                               \
  }                                                                                    \
  template <>                                                                          \
  void mix_values(const MixTask<T>& task) {                                            \
    HWY_DYNAMIC_DISPATCH(mix_values_##suffix)(task);                                   \
  }                                                                                    \
  template <>                                                                          \
  void powers_of_two(const T* in, Index n, T* out) {                                   \
    HWY_DYNAMIC_DISPATCH(powers_of_two_##suffix)(in, n, out);                          \
  }
ECKART_ATTENTION_DISPATCH(float, float)
ECKART_ATTENTION_DISPATCH(double, double)
#undef ECKART_ATTENTION_DISPATCH

}  // namespace eckart::detail
#endif  // HWY_ONCE

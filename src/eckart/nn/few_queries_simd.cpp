// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
//
// Up to four queries meet a key while it is in registers, with as many keys at a time as hide the
// latency of an addition. A single query takes only two: it waits for memory, which is read fastest
// row after row (8 keys: 22 GB/s where two give 27 and a plain read 30).
#include "eckart/nn/few_queries_simd.h"

#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/nn/few_queries_simd.cpp"
// What follows highway.h is made anew for each instruction set, and must not stand before it.
// clang-format off
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "eckart/nn/stored_row_inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

constexpr Index most_rows = 4;

// Asks for the line of memory that begins at `from[i]`, where one does. Spread over the work, since
// a processor that waits for some twenty lines takes no more.
template <class Stored>
HWY_INLINE void ask_for(const Stored* from, Index i, Index width) {
  constexpr auto line = static_cast<Index>(64 / sizeof(Stored));
  if (i % line == 0 && i < width) hwy::Prefetch(from + i);
}

// Stored numbers as vectors, in their order.
template <class T, class Stored>
struct InOrder {
  static constexpr std::size_t vectors = 1;
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load_part(D d, const Stored* from, std::size_t /*part*/) {
    return load(d, from);
  }
  static HWY_INLINE void load_split(D d, const T* from, V* to) { to[0] = hn::LoadU(d, from); }
  static HWY_INLINE void store_joined(D d, const V* from, T* to) { hn::StoreU(from[0], d, to); }
};
template <class T, class Stored>
struct Widest {
  using Step = InOrder<T, Stored>;
};

#if HWY_TARGET != HWY_SCALAR
// Of bf16 two vectors at once, the numbers at even positions and those at odd ones, each with one
// instruction; what they meet is split likewise.
struct EvenAndOdd {
  static constexpr std::size_t vectors = 2;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load_part(D d, const std::uint16_t* from, std::size_t part) {
    const hn::RebindToUnsigned<D> pairs;
    const auto both = hn::BitCast(pairs, hn::LoadU(hn::Repartition<std::uint16_t, D>(), from));
    return hn::BitCast(
        d, part == 0 ? hn::ShiftLeft<16>(both) : hn::And(both, hn::Set(pairs, 0xFFFF0000u)));
  }
  static HWY_INLINE void load_split(D d, const float* from, V* to) {
    hn::LoadInterleaved2(d, from, to[0], to[1]);
  }
  static HWY_INLINE void store_joined(D d, const V* from, float* to) {
    hn::StoreInterleaved2(from[0], from[1], d, to);
  }
};
template <>
struct Widest<float, std::uint16_t> {
  using Step = EvenAndOdd;
};
#endif

// Sums of the lanes of four vectors.
template <class D, class V>
HWY_INLINE void sums_of_four(D d, V a, V b, V c, V e, float* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = hn::GetLane(a), to[1] = hn::GetLane(b), to[2] = hn::GetLane(c), to[3] = hn::GetLane(e);
  (void)d;
#else
  const hn::Repartition<double, D> pairs;  // two floats as one lane
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto ab_pairs = hn::BitCast(pairs, ab);
  const auto ce_pairs = hn::BitCast(pairs, ce);
  const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab_pairs, ce_pairs)),
                            hn::BitCast(d, hn::InterleaveUpper(pairs, ab_pairs, ce_pairs)));
  const hn::CappedTag<float, 4> four;
  HWY_ALIGN float blocks[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(sums, d, blocks);
  auto sum = hn::Load(four, blocks);
  for (std::size_t i = 4; i < hn::Lanes(d); i += 4) sum = hn::Add(sum, hn::Load(four, blocks + i));
  hn::StoreU(sum, four, to);
#endif
}
template <class D, class V>
HWY_INLINE void sums_of_four(D d, V a, V b, V c, V e, double* HWY_RESTRICT to) {
  to[0] = hn::GetLane(hn::SumOfLanes(d, a));
  to[1] = hn::GetLane(hn::SumOfLanes(d, b));
  to[2] = hn::GetLane(hn::SumOfLanes(d, c));
  to[3] = hn::GetLane(hn::SumOfLanes(d, e));
}

// Adds the products of positions [i, width), as far as whole vectors reach, and moves i there.
template <class Step, bool asks, std::size_t n_rows, std::size_t n_keys, class T, class Stored>
HWY_INLINE void add_products(const FewScores<T>& task, const T* const* queries,
                             const Stored* const* keys, const Stored* values, Index& i,
                             hn::Vec<hn::ScalableTag<T>>* sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  constexpr auto vectors = static_cast<Index>(Step::vectors);
  for (; i + vectors * lanes <= task.width; i += vectors * lanes) {
    for (std::size_t k = 0; asks && k < n_keys; ++k) {
      ask_for(values + static_cast<Index>(k) * task.values.row_stride, i, task.value_width);
    }
    for (std::size_t v = 0; v < Step::vectors; ++v) {
      hn::Vec<hn::ScalableTag<T>> numbers[n_keys];
      for (std::size_t k = 0; k < n_keys; ++k) numbers[k] = Step::load_part(d, keys[k] + i, v);
      for (std::size_t r = 0; r < n_rows; ++r) {
        const auto query = hn::LoadU(d, queries[r] + i + static_cast<Index>(v) * lanes);
        for (std::size_t k = 0; k < n_keys; ++k) {
          sums[r * n_keys + k] = hn::MulAdd(query, numbers[k], sums[r * n_keys + k]);
        }
      }
    }
  }
}

// Scores of rows [row, row + n_rows) with keys [key, key + n_keys).
template <bool asks, std::size_t n_rows, std::size_t n_keys, class T, class Stored>
HWY_INLINE void few_tile(const FewScores<T>& task, Index row, Index key) {
  const hn::ScalableTag<T> d;
  const T* queries[n_rows];
  for (std::size_t r = 0; r < n_rows; ++r) {
    queries[r] = task.queries + (row + static_cast<Index>(r)) * task.query_stride;
  }
  const Stored* keys[n_keys];
  for (std::size_t k = 0; k < n_keys; ++k) {
    keys[k] = static_cast<const Stored*>(task.keys.data) +
              (task.first + key + static_cast<Index>(k)) * task.keys.row_stride;
  }
  hn::Vec<decltype(d)> sums[n_rows * n_keys];
  for (auto& sum : sums) sum = hn::Zero(d);
  Index i = 0;
  const Stored* const values =
      static_cast<const Stored*>(task.values.data) + (task.first + key) * task.values.row_stride;
  add_products<typename Widest<T, Stored>::Step, asks, n_rows, n_keys>(task, queries, keys, values,
                                                                       i, sums);
  add_products<InOrder<T, Stored>, asks, n_rows, n_keys>(task, queries, keys, values, i, sums);
  T totals[n_rows * n_keys];
  std::size_t s = 0;
  for (; s + 4 <= n_rows * n_keys; s += 4) {
    sums_of_four(d, sums[s], sums[s + 1], sums[s + 2], sums[s + 3], totals + s);
  }
  for (; s < n_rows * n_keys; ++s) totals[s] = hn::GetLane(hn::SumOfLanes(d, sums[s]));
  for (std::size_t r = 0; r < n_rows; ++r) {
    T* const scores = task.scores + (row + static_cast<Index>(r)) * task.stride + key;
    for (std::size_t k = 0; k < n_keys; ++k) {
      T total = totals[r * n_keys + k];
      for (Index j = i; j < task.width; ++j) total += queries[r][j] * load_one<T>(keys[k] + j);
      scores[k] = total;
    }
  }
}

template <bool asks, std::size_t n_rows, std::size_t n_keys, class T, class Stored>
void few_rows(const FewScores<T>& task, Index row) {
  constexpr auto step = static_cast<Index>(n_keys);
  Index key = 0;
  for (; key + step <= task.n; key += step) {
    few_tile<asks, n_rows, n_keys, T, Stored>(task, row, key);
  }
  for (; key < task.n; ++key) few_tile<asks, n_rows, 1, T, Stored>(task, row, key);
}

template <bool asks, class T, class Stored>
void few_rows_of(const FewScores<T>& task, Index row) {
  switch (task.n_rows - row) {
    case 1:
      return few_rows<asks, 1, 2, T, Stored>(task, row);
    case 2:
      return few_rows<asks, 2, 4, T, Stored>(task, row);
    case 3:
      return few_rows<asks, 3, 4, T, Stored>(task, row);
    default:
      return few_rows<asks, 4, 3, T, Stored>(task, row);
  }
}

template <class T, class Stored>
void multiply_few_as(const FewScores<T>& task) {
  for (Index row = 0; row < task.n_rows; row += most_rows) {
    if (row == 0 && task.values.data != nullptr) {
      few_rows_of<true, T, Stored>(task, row);
    } else {
      few_rows_of<false, T, Stored>(task, row);
    }
  }
}

// Columns [column, column + strides vectors) of the mixtures of rows [row, row + n_rows).
template <class Step, bool asks, std::size_t n_rows, std::size_t n_strides, class T, class Stored>
HWY_INLINE void mix_tile(const FewMix<T>& task, Index row, Index column) {
  const hn::ScalableTag<T> d;
  const auto width = static_cast<Index>(Step::vectors * hn::Lanes(d));
  constexpr std::size_t n_vectors = n_strides * Step::vectors;
  T* const mixed = task.mixed + row * task.mixed_stride + column;
  hn::Vec<decltype(d)> sums[n_rows][n_vectors];
  for (std::size_t r = 0; r < n_rows; ++r) {
    const auto shrink = hn::Set(d, task.shrink[row + static_cast<Index>(r)]);
    const T* const from = mixed + static_cast<Index>(r) * task.mixed_stride;
    for (std::size_t s = 0; s < n_strides; ++s) {
      Step::load_split(d, from + static_cast<Index>(s) * width, sums[r] + s * Step::vectors);
    }
    for (auto& sum : sums[r]) sum = hn::Mul(shrink, sum);
  }
  const T* const weights = task.weights + row * task.stride;
  const Stored* values =
      static_cast<const Stored*>(task.values.data) + task.first * task.values.row_stride + column;
  const Stored* next =
      static_cast<const Stored*>(task.keys.data) + task.next * task.keys.row_stride;
  constexpr auto line = static_cast<Index>(64 / sizeof(Stored));
  const Index n_columns = static_cast<Index>(n_strides) * width;
  for (Index key = 0; key < task.n; ++key, values += task.values.row_stride) {
    for (Index i = column; asks && key < task.n_next && i < column + n_columns; i += line) {
      ask_for(next + key * task.keys.row_stride, i, task.key_width);
    }
    hn::Vec<decltype(d)> numbers[n_vectors];
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const Stored* const from = values + static_cast<Index>(v / Step::vectors) * width;
      numbers[v] = Step::load_part(d, from, v % Step::vectors);
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
      const auto weight = hn::Set(d, weights[static_cast<Index>(r) * task.stride + key]);
      for (std::size_t v = 0; v < n_vectors; ++v) {
        sums[r][v] = hn::MulAdd(weight, numbers[v], sums[r][v]);
      }
    }
  }
  for (std::size_t r = 0; r < n_rows; ++r) {
    T* const to = mixed + static_cast<Index>(r) * task.mixed_stride;
    for (std::size_t s = 0; s < n_strides; ++s) {
      Step::store_joined(d, sums[r] + s * Step::vectors, to + static_cast<Index>(s) * width);
    }
  }
}

template <std::size_t n_rows, std::size_t n_vectors, class T, class Stored>
void mix_rows(const FewMix<T>& task, Index row) {
  using Step = typename Widest<T, Stored>::Step;
  constexpr std::size_t n_strides = n_vectors / Step::vectors;
  const auto lanes = static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()));
  const Index one = static_cast<Index>(Step::vectors) * lanes;
  const Index step = static_cast<Index>(n_strides) * one;
  Index column = 0;
  for (; column + step <= task.width; column += step) {
    if (row == 0) {
      mix_tile<Step, true, n_rows, n_strides, T, Stored>(task, row, column);
    } else {
      mix_tile<Step, false, n_rows, n_strides, T, Stored>(task, row, column);
    }
  }
  for (; column + one <= task.width; column += one) {
    mix_tile<Step, false, n_rows, 1, T, Stored>(task, row, column);
  }
  for (; column + lanes <= task.width; column += lanes) {
    mix_tile<InOrder<T, Stored>, false, n_rows, 1, T, Stored>(task, row, column);
  }
  for (; column < task.width; ++column) {
    for (Index r = row; r < row + static_cast<Index>(n_rows); ++r) {
      const Stored* values = static_cast<const Stored*>(task.values.data) +
                             task.first * task.values.row_stride + column;
      T sum = task.shrink[r] * task.mixed[r * task.mixed_stride + column];
      for (Index key = 0; key < task.n; ++key, values += task.values.row_stride) {
        sum += task.weights[r * task.stride + key] * load_one<T>(values);
      }
      task.mixed[r * task.mixed_stride + column] = sum;
    }
  }
}

template <class T, class Stored>
void mix_few_as(const FewMix<T>& task) {
  for (Index row = 0; row < task.n_rows; row += most_rows) {
    switch (task.n_rows - row) {
      case 1:
        mix_rows<1, 8, T, Stored>(task, row);
        break;
      case 2:
        mix_rows<2, 4, T, Stored>(task, row);
        break;
      case 3:
        mix_rows<3, 2, T, Stored>(task, row);
        break;
      default:
        mix_rows<4, 2, T, Stored>(task, row);
    }
  }
}

// In place, as the keys' numbers come apart.
void split_query_float(float* query, Index n) {
  using Step = Widest<float, std::uint16_t>::Step;
  const Step::D d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  constexpr auto vectors = static_cast<Index>(Step::vectors);
  for (Index i = 0; i + vectors * lanes <= n; i += vectors * lanes) {
    Step::V split[Step::vectors];
    Step::load_split(d, query + i, split);
    for (Index v = 0; v < vectors; ++v) hn::StoreU(split[v], d, query + i + v * lanes);
  }
}

void multiply_few_float(const FewScores<float>& task) {
  if (task.keys.is_bf16) return multiply_few_as<float, std::uint16_t>(task);
  multiply_few_as<float, float>(task);
}
void multiply_few_double(const FewScores<double>& task) {
  if (task.keys.is_bf16) return multiply_few_as<double, std::uint16_t>(task);
  multiply_few_as<double, double>(task);
}
void mix_few_float(const FewMix<float>& task) {
  if (task.values.is_bf16) return mix_few_as<float, std::uint16_t>(task);
  mix_few_as<float, float>(task);
}
void mix_few_double(const FewMix<double>& task) {
  if (task.values.is_bf16) return mix_few_as<double, std::uint16_t>(task);
  mix_few_as<double, double>(task);
}

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(split_query_float);
HWY_EXPORT(multiply_few_float);
HWY_EXPORT(multiply_few_double);
HWY_EXPORT(mix_few_float);
HWY_EXPORT(mix_few_double);

}  // namespace

template <>
void split_query(float* query, Index n) {
  HWY_DYNAMIC_DISPATCH(split_query_float)(query, n);
}
template <>
void split_query(double* /*query*/, Index /*n*/) {}
template <>
void multiply_few(const FewScores<float>& task) {
  HWY_DYNAMIC_DISPATCH(multiply_few_float)(task);
}
template <>
void multiply_few(const FewScores<double>& task) {
  HWY_DYNAMIC_DISPATCH(multiply_few_double)(task);
}
template <>
void mix_few(const FewMix<float>& task) {
  HWY_DYNAMIC_DISPATCH(mix_few_float)(task);
}
template <>
void mix_few(const FewMix<double>& task) {
  HWY_DYNAMIC_DISPATCH(mix_few_double)(task);
}

}  // namespace eckart::detail
#endif  // HWY_ONCE

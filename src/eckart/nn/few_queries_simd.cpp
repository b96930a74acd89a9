// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
//
// Up to four queries meet a key while it is in registers; eight sums are under way at any time, so
// that no addition waits for the one before it.
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
constexpr Index line_bytes = 64;

// Asks for the values of some positions.
template <class Stored>
HWY_INLINE void ask_for(const Stored* from, Index bytes) {
  const auto* const at = reinterpret_cast<const std::uint8_t*>(from);
  for (Index i = 0; i < bytes; i += line_bytes) hwy::Prefetch(at + i);
}

// Scores of rows [row, row + n_rows) with keys [key, key + n_keys).
template <std::size_t n_rows, std::size_t n_keys, class T, class Stored>
HWY_INLINE void few_tile(const FewScores<T>& task, Index row, Index key) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const T* queries[n_rows];
  for (std::size_t r = 0; r < n_rows; ++r) {
    queries[r] = task.queries + (row + static_cast<Index>(r)) * task.query_stride;
  }
  const Stored* keys[n_keys];
  for (std::size_t k = 0; k < n_keys; ++k) {
    keys[k] = static_cast<const Stored*>(task.keys.data) +
              (task.first + key + static_cast<Index>(k)) * task.keys.row_stride;
  }
  hn::Vec<decltype(d)> sums[n_rows][n_keys];
  for (auto& of_row : sums) {
    for (auto& sum : of_row) sum = hn::Zero(d);
  }
  Index i = 0;
  for (; i + lanes <= task.width; i += lanes) {
    hn::Vec<decltype(d)> numbers[n_keys];
    for (std::size_t k = 0; k < n_keys; ++k) numbers[k] = load(d, keys[k] + i);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const auto query = hn::LoadU(d, queries[r] + i);
      for (std::size_t k = 0; k < n_keys; ++k) {
        sums[r][k] = hn::MulAdd(query, numbers[k], sums[r][k]);
      }
    }
  }
  for (std::size_t r = 0; r < n_rows; ++r) {
    T* const scores = task.scores + (row + static_cast<Index>(r)) * task.stride + key;
    for (std::size_t k = 0; k < n_keys; ++k) {
      T sum = hn::GetLane(hn::SumOfLanes(d, sums[r][k]));
      for (Index j = i; j < task.width; ++j) sum += queries[r][j] * load_one<T>(keys[k] + j);
      scores[k] = sum;
    }
  }
}

template <std::size_t n_rows, std::size_t n_keys, class T, class Stored>
void few_rows(const FewScores<T>& task, Index row, bool asks) {
  constexpr auto step = static_cast<Index>(n_keys);
  const auto* const values = static_cast<const Stored*>(task.values.data);
  Index key = 0;
  for (; key + step <= task.n; key += step) {
    if (asks) {
      for (Index k = 0; k < step; ++k) {
        ask_for(values + (task.first + key + k) * task.values.row_stride,
                task.value_width * static_cast<Index>(sizeof(Stored)));
      }
    }
    few_tile<n_rows, n_keys, T, Stored>(task, row, key);
  }
  for (; key < task.n; ++key) few_tile<n_rows, 1, T, Stored>(task, row, key);
}

template <class T, class Stored>
void multiply_few_as(const FewScores<T>& task) {
  for (Index row = 0; row < task.n_rows; row += most_rows) {
    const bool asks = row == 0 && task.values.data != nullptr;
    switch (task.n_rows - row) {
      case 1:
        few_rows<1, 8, T, Stored>(task, row, asks);
        break;
      case 2:
        few_rows<2, 4, T, Stored>(task, row, asks);
        break;
      case 3:
        few_rows<3, 2, T, Stored>(task, row, asks);
        break;
      default:
        few_rows<4, 2, T, Stored>(task, row, asks);
    }
  }
}

// Columns [column, column + vectors) of the mixtures of rows [row, row + n_rows).
template <bool asks, std::size_t n_rows, std::size_t n_vectors, class T, class Stored>
HWY_INLINE void mix_tile(const FewMix<T>& task, Index row, Index column) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  T* const mixed = task.mixed + row * task.mixed_stride + column;
  hn::Vec<decltype(d)> sums[n_rows][n_vectors];
  for (std::size_t r = 0; r < n_rows; ++r) {
    const auto shrink = hn::Set(d, task.shrink[row + static_cast<Index>(r)]);
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const T* const from = mixed + static_cast<Index>(r) * task.mixed_stride + v * lanes;
      sums[r][v] = hn::Mul(shrink, hn::LoadU(d, from));
    }
  }
  const T* const weights = task.weights + row * task.stride;
  const Stored* values =
      static_cast<const Stored*>(task.values.data) + task.first * task.values.row_stride + column;
  for (Index key = 0; key < task.n; ++key, values += task.values.row_stride) {
    if (asks && key < task.n_next) {
      ask_for(static_cast<const Stored*>(task.keys.data) + (task.next + key) * task.keys.row_stride,
              task.key_width * static_cast<Index>(sizeof(Stored)));
    }
    hn::Vec<decltype(d)> numbers[n_vectors];
    for (std::size_t v = 0; v < n_vectors; ++v) numbers[v] = load(d, values + v * lanes);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const auto weight = hn::Set(d, weights[static_cast<Index>(r) * task.stride + key]);
      for (std::size_t v = 0; v < n_vectors; ++v) {
        sums[r][v] = hn::MulAdd(weight, numbers[v], sums[r][v]);
      }
    }
  }
  for (std::size_t r = 0; r < n_rows; ++r) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      hn::StoreU(sums[r][v], d, mixed + static_cast<Index>(r) * task.mixed_stride + v * lanes);
    }
  }
}

template <std::size_t n_rows, std::size_t n_vectors, class T, class Stored>
void mix_rows(const FewMix<T>& task, Index row) {
  const auto lanes = static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()));
  const Index step = static_cast<Index>(n_vectors) * lanes;
  Index column = 0;
  if (row == 0 && step <= task.width) {
    mix_tile<true, n_rows, n_vectors, T, Stored>(task, row, column);
    column += step;
  }
  for (; column + step <= task.width; column += step) {
    mix_tile<false, n_rows, n_vectors, T, Stored>(task, row, column);
  }
  for (; column + lanes <= task.width; column += lanes) {
    mix_tile<false, n_rows, 1, T, Stored>(task, row, column);
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

HWY_EXPORT(multiply_few_float);
HWY_EXPORT(multiply_few_double);
HWY_EXPORT(mix_few_float);
HWY_EXPORT(mix_few_double);

}  // namespace

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

#include "eckart/linalg/pca_state.h"

#include "eckart/blas/row_products.h"
#include "eckart/blas/threads.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/finite.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Rows that are centred and multiplied at a time: enough for full speed, and few enough that the
// sums of a float product stay short.
constexpr Index block_rows = 2048;
// Rows that one thread collects before its state is merged with the others'.
constexpr Index chunk_rows = 4 * block_rows;
// Up to this many columns, chunks run side by side, as many as this memory has room for; beyond it
// each product is large enough to be shared by all threads.
constexpr Index widest_side_by_side = 2048;
constexpr Index most_side_by_side = 32;
constexpr Index bytes_side_by_side = Index{1} << 28;
// Sums of squares of floats outside of this range may have overflowed or lost digits.
constexpr float largest_sum = 1e30F;
constexpr float smallest_sum = 1e-30F;

// Rows of a block whose mean is taken for that of all, to begin with: it is off by a sixteenth of the
// deviation, where a third is too much.
constexpr Index sampled_rows = 256;

// A block of rows without its mean: y + shift is what was given, and the rest of the mean is exact.
struct Centred {
  std::vector<double> mean;
  std::vector<double> rest;  // mean of the rows of y
  bool is_finite = true;
};

// `Stride` is 1 where that is known, which makes the loops vector loops.
template <Index Stride, class T>
void add_row(const T* row, Index stride, std::vector<double>& sum) {
  if constexpr (Stride == 1) stride = 1;
  const auto d = static_cast<Index>(sum.size());
  double* const to = sum.data();
  for (Index j = 0; j < d; ++j) to[j] += static_cast<double>(row[j * stride]);
}

// y := x - shift, and `sum` grows by y. Near the shift, the difference is exact.
template <Index Stride, class T, class C>
void subtract(const T* row, Index stride, const std::vector<C>& shift, C* y,
              std::vector<double>& sum) {
  if constexpr (Stride == 1) stride = 1;
  const auto d = static_cast<Index>(shift.size());
  const C* const from = shift.data();
  double* const to = sum.data();
  // Two loops, which the compiler makes vector loops of.
  for (Index j = 0; j < d; ++j) y[j] = static_cast<C>(row[j * stride]) - from[j];
  for (Index j = 0; j < d; ++j) to[j] += static_cast<double>(y[j]);
}

// The mean of every `step`-th row is what is subtracted: with step 1 that of all, which takes one
// more pass over them.
template <Index Stride, class T, class C>
Centred centre(TensorView<const T> x, C* y, Index step) {
  const Index n = x.size(0);
  const Index d = x.size(1);
  const Index stride = x.strides()[1];
  Centred centred;
  centred.mean.assign(static_cast<std::size_t>(d), 0);
  centred.rest.assign(static_cast<std::size_t>(d), 0);
  std::vector<C> shift(static_cast<std::size_t>(d));
  for (Index i = 0; i < n; i += step) {
    add_row<Stride>(x.data() + i * x.strides()[0], stride, centred.mean);
  }
  const auto n_sampled = static_cast<double>((n + step - 1) / step);
  for (std::size_t j = 0; j < shift.size(); ++j) {
    shift[j] = static_cast<C>(centred.mean[j] / n_sampled);
  }
  for (Index i = 0; i < n; ++i) {
    subtract<Stride>(x.data() + i * x.strides()[0], stride, shift, y + i * d, centred.rest);
  }
  for (std::size_t j = 0; j < shift.size(); ++j) {
    centred.rest[j] /= static_cast<double>(n);
    centred.mean[j] = static_cast<double>(shift[j]) + centred.rest[j];
    centred.is_finite = centred.is_finite && std::isfinite(centred.mean[j]);
  }
  return centred;
}

// Whether what is left of the means is small beside the deviations: its square would take digits of
// their products.
template <class C>
bool is_near_mean(const Centred& centred, Index n, const Tensor<C>& product) {
  const Index d = product.size(0);
  for (Index j = 0; j < d; ++j) {
    const double rest = centred.rest[static_cast<std::size_t>(j)];
    const double squares = static_cast<double>(product.data()[j * d + j]);
    if (static_cast<double>(n) * rest * rest > 0.1 * squares) return false;
  }
  return true;
}

// Whether no product of floats over- or underflowed. Other elements are at most as large as those
// of the diagonal (Cauchy and Schwarz).
bool is_safe(const Tensor<float>& y, Index n, const Tensor<float>& product) {
  const Index d = product.size(0);
  for (Index j = 0; j < d; ++j) {
    const float sum = product.data()[j * d + j];
    if (!(sum <= largest_sum)) return false;
    if (sum >= smallest_sum) continue;
    for (Index i = 0; i < n; ++i) {
      if (y.data()[i * d + j] != 0) return false;  // the column is not constant
    }
  }
  return true;
}

// What one thread needs beside its state.
template <class C>
struct Scratch {
  Scratch(Index rows, Index d)
      : y(Tensor<C>::uninitialized({rows, d})), product(Tensor<C>::uninitialized({d, d})) {}
  Tensor<C> y;
  Tensor<C> product;
};

PcaState empty_state(Index d) { return {0, Tensor<double>({d}), Tensor<double>({d, d})}; }

// The lower triangle of: state.scatter += scatter - n rest rest^T + n_a n_b / (n_a + n_b) g g^T, g
// the difference of the means; and the mean of both.
template <class C>
void merge_lower(PcaState& state, Index n, const std::vector<double>& mean,
                 const std::vector<double>& rest, const C* scatter) {
  const Index d = state.mean.count();
  const auto n_a = static_cast<double>(state.n_samples);
  const auto n_b = static_cast<double>(n);
  const double between = n_a * (n_b / (n_a + n_b));
  std::vector<double> gap(static_cast<std::size_t>(d));
  for (Index j = 0; j < d; ++j) {
    const auto at = static_cast<std::size_t>(j);
    gap[at] = mean[at] - state.mean.data()[j];
  }
  parallel_for(d, 128, [&](Index begin, Index end) {
    const double* const g = gap.data();
    const double* const r = rest.data();
    for (Index i = begin; i < end; ++i) {
      double* const to = state.scatter.data() + i * d;
      const C* const from = scatter + i * d;
      const double g_i = between * g[i];
      const double r_i = n_b * r[i];
      for (Index j = 0; j <= i; ++j) {
        to[j] += static_cast<double>(from[j]) + (g_i * g[j] - r_i * r[j]);
      }
    }
  });
  for (Index j = 0; j < d; ++j) {
    state.mean.data()[j] += gap[static_cast<std::size_t>(j)] * (n_b / (n_a + n_b));
  }
  state.n_samples += n;
}

// Adds a block of rows; false when it has a NaN or an infinity.
template <class T, class C>
bool add_block(TensorView<const T> x, Scratch<C>& scratch, PcaState& state) {
  const Index n = x.size(0);
  const Index d = x.size(1);
  Centred centred;
  for (const Index step : {std::max<Index>(1, n / sampled_rows), Index{1}}) {
    centred = x.strides()[1] == 1 ? centre<1, T, C>(x, scratch.y.data(), step)
                                  : centre<0, T, C>(x, scratch.y.data(), step);
    if (!centred.is_finite && step > 1) continue;
    if (!centred.is_finite) return false;
    blas::gram_lower(n, d, scratch.y.data(), scratch.product.data());
    if (step == 1 || is_near_mean(centred, n, scratch.product)) break;
  }
  if constexpr (std::is_same_v<C, float>) {
    if (!is_safe(scratch.y, n, scratch.product)) {
      Scratch<double> wide(n, d);
      return add_block<T, double>(x, wide, state);
    }
  }
  merge_lower(state, n, centred.mean, centred.rest, scratch.product.data());
  return true;
}

template <class T, class C>
bool add_chunk(TensorView<const T> x, PcaState& state) {
  const Index n = x.size(0);
  Scratch<C> scratch(std::min(n, block_rows), x.size(1));
  for (Index row = 0; row < n; row += block_rows) {
    const Index end = std::min(row + block_rows, n);
    if (!add_block<T, C>(x.slice(0, {row, end, 1}), scratch, state)) return false;
  }
  return true;
}

std::vector<double> elements_of(const Tensor<double>& vector) {
  return {vector.data(), vector.data() + vector.count()};
}

void add_lower(PcaState& state, const PcaState& other) {
  const std::vector<double> no_rest(static_cast<std::size_t>(other.mean.count()), 0.0);
  merge_lower(state, other.n_samples, elements_of(other.mean), no_rest, other.scatter.data());
}

void mirror(Tensor<double>& matrix) {
  const Index d = matrix.size(0);
  parallel_for(d, 64, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      for (Index j = i + 1; j < d; ++j) matrix.data()[i * d + j] = matrix.data()[j * d + i];
    }
  });
}

Index chunks_at_once(Index d) {
  if (d > widest_side_by_side) return 1;
  const Index state_bytes = std::max<Index>(d * d * Index{sizeof(double)}, 1);
  return std::clamp<Index>(bytes_side_by_side / state_bytes, 1, most_side_by_side);
}

// The chunks' states, so many at a time as the width allows, merged in the rows' order.
template <class T, class C>
PcaState collected(TensorView<const T> x, bool& is_finite) {
  const Index n = x.size(0);
  const Index d = x.size(1);
  const Index n_chunks = (n + chunk_rows - 1) / chunk_rows;
  const Index at_once = chunks_at_once(d);
  PcaState state = empty_state(d);
  for (Index first = 0; first < n_chunks && is_finite; first += at_once) {
    const Index count = std::min(at_once, n_chunks - first);
    std::vector<PcaState> states(static_cast<std::size_t>(count));
    std::vector<char> finite(static_cast<std::size_t>(count), 0);
    parallel_for(count, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index row = (first + i) * chunk_rows;
        PcaState& one = states[static_cast<std::size_t>(i)];
        one = empty_state(d);
        finite[static_cast<std::size_t>(i)] = static_cast<char>(
            add_chunk<T, C>(x.slice(0, {row, std::min(row + chunk_rows, n), 1}), one));
      }
    });
    for (std::size_t i = 0; i < states.size(); ++i) {
      is_finite = is_finite && finite[i] != 0;
      add_lower(state, states[i]);
    }
  }
  mirror(state.scatter);
  return state;
}

}  // namespace

template <class T>
PcaState pca_state(TensorView<const T> x, PcaProducts products) {
  if (x.rank() != 2) {
    throw_shape_error("pca: x is " + to_string(x.shape()) +
                      ", but it must be a matrix with a row for each sample");
  }
  bool is_finite = true;
  PcaState state;
  blas::with_own_threads([&] {
    state = std::is_same_v<T, float> && products == PcaProducts::in_float
                ? collected<T, float>(x, is_finite)
                : collected<T, double>(x, is_finite);
  });
  if (!is_finite) {
    check_finite("pca", "x", x);
    throw_argument_error("pca: the columns of x are so large that their sums overflow",
                         "divide x by its largest element");
  }
  if (x.shape().has_names() && !x.shape().name(1).empty()) {
    state.mean = std::move(state.mean).named({x.shape().name(1)});
  }
  return state;
}

PcaState merged(PcaState a, const PcaState& b) {
  if (a.n_samples == 0) return b;
  if (b.n_samples == 0) return a;
  if (a.mean.count() != b.mean.count()) {
    throw_shape_error("pca: one state is of rows of " + std::to_string(a.mean.count()) +
                      " columns and the other of " + std::to_string(b.mean.count()) +
                      ", but both must have the same number");
  }
  add_lower(a, b);
  mirror(a.scatter);
  return a;
}

template PcaState pca_state(TensorView<const float>, PcaProducts);
template PcaState pca_state(TensorView<const double>, PcaProducts);

}  // namespace eckart

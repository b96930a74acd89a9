#include "eckart/linalg/top_k_scores.h"

#include "eckart/blas/row_products.h"
#include "eckart/linalg/sums_simd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

namespace eckart::detail {
namespace {

constexpr Index sampled_items = 1024;

// The error of a sum of d products in any order is at most this times the sum of their absolute
// values; the further operations on a score are counted as sixteen more.
template <class T>
T gamma(Index d) {
  const double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const double terms = static_cast<double>(d + 16) * u;
  return terms >= 0.5 ? std::numeric_limits<T>::infinity() : static_cast<T>(terms / (1 - terms));
}

// Squares below this have lost digits; above the inverse they may have overflowed.
template <class T>
constexpr T least_square = std::is_same_v<T, float> ? T(1e-30) : T(1e-280);
// What the squares of d elements may have lost by underflow is below d times this.
template <class T>
constexpr T underflow = std::numeric_limits<T>::min();

// Lengths between which rounding to bf16 loses digits alone: nothing vanishes or overflows.
constexpr double least_moderate = 1e-20;
bool is_moderate(double square) { return square >= least_moderate && square <= 1 / least_moderate; }

// A product of vectors rounded to bf16 is off by at most |dq| |x| + |q + dq| |dx|, by Cauchy and
// Schwarz. Errors of queries count on this share |dx| / |x|, which is the usual one; where an item's
// is more, its weight makes up for it.
constexpr double usual_rounding = 0.0018;

// Rounds the queries to bf16 and adds what that costs, and the rounding of the items, to their errors.
void round_queries(Block<float>& block) {
  const Index n = block.queries.size(0), d = block.queries.size(1);
  if (block.streamed || d == 0 || !blas::has_bf16_tiles()) return;
  blas::TileRows rounded(n, d, blas::TileRows::Side::left);
  rounded.pack(block.queries.data(), n, d);
  for (Index i = 0; i < n; ++i) {
    const float* const row = block.queries.data() + i * d;
    const double square = dot_run(row, row, static_cast<std::size_t>(d));
    if (!is_moderate(square)) return;
    const double change =
        std::sqrt(static_cast<double>(rounded.rounding()[static_cast<std::size_t>(i)]));
    // A thousandth covers the rounding of these sums.
    block.errors[static_cast<std::size_t>(i)] +=
        static_cast<float>(1.001 * (change + (std::sqrt(square) + change) * usual_rounding));
  }
  block.rounded.emplace(std::move(rounded));
}
void round_queries(Block<double>&) {}

}  // namespace

template <class T>
std::vector<T> middle_of(TensorView<const T> items) {
  const Index n = items.size(0);
  const Index d = items.size(1);
  const Index step = std::max<Index>(1, n / sampled_items);
  std::vector<double> sum(static_cast<std::size_t>(d), 0);
  Index count = 0;
  for (Index i = 0; i < n; i += step, ++count) {
    const T* const row = items.data() + i * items.strides()[0];
    for (Index j = 0; j < d; ++j) {
      sum[static_cast<std::size_t>(j)] += static_cast<double>(row[j * items.strides()[1]]);
    }
  }
  std::vector<T> middle(static_cast<std::size_t>(d));
  for (std::size_t j = 0; j < middle.size(); ++j) {
    const T mean = static_cast<T>(sum[j] / static_cast<double>(std::max<Index>(count, 1)));
    middle[j] = std::isfinite(mean) ? mean : T{0};
  }
  return middle;
}

template <class T>
Block<T> block_of(TensorView<const T> queries, const std::vector<T>& shift, Metric metric,
                  bool streamed) {
  const Index d = queries.size(1);
  Block<T> block;
  block.metric = metric;
  block.streamed = streamed;
  block.queries = Tensor<T>(queries.shape().has_names() ? queries.named({"", ""}) : queries);
  block.shift = shift;
  const T unit = gamma<T>(d);
  for (Index i = 0; i < queries.size(0); ++i) {
    T* const row = block.queries.data() + i * d;
    double squares = 0;
    for (Index j = 0; j < d; ++j) {
      if (!shift.empty()) row[j] -= shift[static_cast<std::size_t>(j)];
      squares += static_cast<double>(row[j]) * static_cast<double>(row[j]);
    }
    // Twice the least float covers the underflow of single products.
    const T norm = static_cast<T>(std::sqrt(squares) * (1 + 1e-6));
    block.errors.push_back(unit * norm + 2 * underflow<T>);
  }
  round_queries(block);
  return block;
}

template <class T>
TileScores<T>::TileScores(const Block<T>& block, Index most_items)
    : block_(block),
      capacity_((most_items + 15) / 16 * 16),
      scores_(Tensor<T>::uninitialized({(block.queries.size(0) + 15) / 16 * 16, capacity_})) {
  if (block.rounded) {
    rounded_.emplace(most_items, block.queries.size(1), blas::TileRows::Side::right);
  }
  for (std::vector<T>* const list :
       {&squares_, &lower_factor_, &upper_factor_, &lower_term_, &upper_term_, &weight_}) {
    list->assign(static_cast<std::size_t>(most_items), T{0});
  }
}

template <class T>
Rows<T> TileScores<T>::rows_of(TensorView<const T> items) {
  const Index n = items.size(0);
  const Index d = items.size(1);
  if (block_.shift.empty() && (items.strides()[1] == 1 || d <= 1) && items.strides()[0] >= d) {
    return {items.data(), n, d, items.strides()[0]};
  }
  if (copied_.rank() != 2) copied_ = Tensor<T>::uninitialized({capacity_, d});
  for (Index i = 0; i < n; ++i) {
    const T* const from = items.data() + i * items.strides()[0];
    T* const to = copied_.data() + i * d;
    for (Index j = 0; j < d; ++j) {
      to[j] = from[j * items.strides()[1]];
      if (!block_.shift.empty()) to[j] -= block_.shift[static_cast<std::size_t>(j)];
    }
  }
  return {copied_.data(), n, d, d};
}

template <class T>
void TileScores<T>::score(TensorView<const T> items) {
  const Rows<T> rows = rows_of(items);
  n_ = rows.n;
  const Index m = block_.queries.size(0);
  const T* const queries = block_.queries.data();
  if (block_.streamed && block_.metric == Metric::l2) {
    for (Index q = 0; q < m; ++q) {
      row_distances(rows, queries + q * rows.d, scores_.data() + q * capacity_);
    }
  } else if (block_.streamed) {
    for (Index q = 0; q < m; ++q) {
      row_dots(rows, queries + q * rows.d, scores_.data() + q * capacity_,
               q == 0 ? squares_.data() : nullptr);
    }
  } else {
    for (Index i = 0; i < rows.n; ++i) {
      const T* const row = rows.data + i * rows.stride;
      row_dots({row, 1, rows.d, rows.stride}, row, squares_.data() + i, nullptr);
    }
    multiply(rows);
  }
  fill_bounds(rows.n);
}

template <class T>
void TileScores<T>::multiply(const Rows<T>& rows) {
  if constexpr (std::is_same_v<T, float>) {
    const auto moderate = [](float square) { return is_moderate(static_cast<double>(square)); };
    is_rounded_ = rounded_ && std::all_of(squares_.begin(), squares_.begin() + rows.n, moderate);
    if (is_rounded_) {
      rounded_->pack(rows.data, rows.n, rows.stride);
      blas::multiply_rows(*block_.rounded, *rounded_, scores_.data(), capacity_);
      return;
    }
  }
  blas::multiply_rows<T>({block_.queries.size(0), rows.n, rows.d, block_.queries.data(), rows.d,
                          rows.data, rows.stride, scores_.data(), capacity_});
}

// How many times the usual share an item was changed by rounding, at least 1.
template <class T>
T TileScores<T>::excess_rounding(std::size_t item, T norm) const {
  if (!is_rounded_) return 1;
  const double change = std::sqrt(static_cast<double>(rounded_->rounding()[item]));
  return static_cast<T>(
      std::max(1.0, 1.001 * change / (static_cast<double>(norm) * usual_rounding)));
}

template <class T>
void TileScores<T>::fill_bounds(Index n) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const Index d = block_.queries.size(1);
  const T unit = gamma<T>(d);
  // The computed length has an error of its own: as large as the product's, or a small part of it.
  const T cosine_weight = rounded_ ? 1 + 2 * unit / T(usual_rounding) : T{2};
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const T square = squares_[i];
    const T norm = std::sqrt(square * (1 + unit) + static_cast<T>(d) * underflow<T>);
    lower_factor_[i] = upper_factor_[i] = 1;
    lower_term_[i] = upper_term_[i] = 0;
    const T excess = excess_rounding(i, norm);
    weight_[i] = norm * excess;
    if (block_.metric == Metric::l2 && block_.streamed) {
      // The score is the square of the distance itself, with an error relative to it.
      lower_factor_[i] = -(1 + unit);
      upper_factor_[i] = -(1 - unit);
      lower_term_[i] = -static_cast<T>(d) * underflow<T>;
      upper_term_[i] = static_cast<T>(d) * underflow<T>;
      weight_[i] = 0;
    } else if (block_.metric == Metric::l2) {
      // (|q|^2 - |q - x|^2) / 2 = q x - |x|^2 / 2.
      upper_term_[i] = unit * norm * norm - square / 2;
      lower_term_[i] = -(unit * norm * norm) - square / 2;
    } else if (block_.metric == Metric::cosine) {
      const bool is_safe = square >= least_square<T> && square <= 1 / least_square<T>;
      lower_factor_[i] = upper_factor_[i] = is_safe ? 1 / std::sqrt(square) : T{0};
      weight_[i] = is_safe ? cosine_weight * excess : T{0};
      lower_term_[i] = is_safe ? T{0} : -infinity;
      upper_term_[i] = is_safe ? T{0} : infinity;
    }
  }
}

template <class T>
UpperBounds<T> TileScores<T>::upper_bounds(Index query) const {
  return {scores_.data() + query * capacity_,
          upper_factor_.data(),
          upper_term_.data(),
          weight_.data(),
          block_.errors[static_cast<std::size_t>(query)],
          n_};
}

template <class T>
T TileScores<T>::upper(Index query, Index item) const {
  const auto i = static_cast<std::size_t>(item);
  return scores_.data()[query * capacity_ + item] * upper_factor_[i] + upper_term_[i] +
         block_.errors[static_cast<std::size_t>(query)] * weight_[i];
}

template <class T>
T TileScores<T>::lower(Index query, Index item) const {
  const auto i = static_cast<std::size_t>(item);
  return scores_.data()[query * capacity_ + item] * lower_factor_[i] + lower_term_[i] -
         block_.errors[static_cast<std::size_t>(query)] * weight_[i];
}

#define ECKART_INSTANTIATE(T)                                                           \
  template std::vector<T> middle_of(TensorView<const T>);                               \
  template Block<T> block_of(TensorView<const T>, const std::vector<T>&, Metric, bool); \
  template class TileScores<T>;
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart::detail

#include "eckart/linalg/matrix_statistics.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace eckart {
namespace {

// Elements of a block of rows: a buffer that stays in a core's own cache.
constexpr Index block_elements = Index{1} << 15;
// Each piece sums columns of its own; more pieces than this cost more than they share out.
constexpr Index max_pieces = 64;
// Squares of entries between these neither overflow nor vanish, however many are added.
constexpr double largest_square_root = 1e140;
constexpr double smallest_square_root = 1e-140;

template <class T>
using BitsOf = std::conditional_t<std::is_same_v<T, float>, std::int32_t, std::int64_t>;

template <class T>
constexpr BitsOf<T> infinity_bits = std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::infinity());

// Without the sign, larger values have larger bits, and infinity and NaN have the largest.
template <class T>
BitsOf<T> magnitude_bits(T x) {
  return std::bit_cast<BitsOf<T>>(x) & std::numeric_limits<BitsOf<T>>::max();
}

// The loops that all elements pass through. Lanes are summed apart and in one order, so that wider
// registers change the speed and not the result.
struct RowSums {
  double squares = 0;
  std::int64_t largest_bits = 0;
};

template <class T>
[[gnu::always_inline]] inline RowSums sum_row(const T* row, Index n, double scale,
                                              double* columns) {
  constexpr Index lanes = 8;
  BitsOf<T> largest = 0;
  for (Index i = 0; i < n; ++i) largest = std::max(largest, magnitude_bits(row[i]));
  if (largest >= infinity_bits<T>) return {0, largest};
  double sums[lanes] = {};
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (Index lane = 0; lane < lanes; ++lane) {
      const double x = static_cast<double>(row[i + lane]) * scale;
      const double square = x * x;
      columns[i + lane] += square;
      sums[lane] += square;
    }
  }
  for (; i < n; ++i) {
    const double x = static_cast<double>(row[i]) * scale;
    columns[i] += x * x;
    sums[0] += x * x;
  }
  const double sum =
      ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  return {sum, largest};
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2")]] RowSums sum_row_avx2(const T* row, Index n, double scale, double* columns) {
  return sum_row(row, n, scale, columns);
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

// Adds the squares of a row to the columns' sums; nothing where an element is not finite.
template <class T>
RowSums add_squares(const T* row, Index n, double scale, double* columns) {
#if defined(__x86_64__)
  if (has_avx2()) return sum_row_avx2(row, n, scale, columns);
#endif
  return sum_row(row, n, scale, columns);
}

// The sums of some consecutive rows.
struct Piece {
  std::vector<double> columns;
  double largest = 0;
  std::optional<MatrixPosition> largest_at;
  Index n_nan = 0;
  Index n_infinite = 0;
  std::optional<MatrixPosition> first_nan;
  std::optional<MatrixPosition> first_infinite;
};

template <class T>
void note_largest(const T* row, Index n, Index at, Piece& piece) {
  for (Index column = 0; column < n; ++column) {
    const double magnitude = std::abs(static_cast<double>(row[column]));
    if (!std::isfinite(magnitude)) continue;
    if (magnitude <= piece.largest && piece.largest_at) continue;
    piece.largest = magnitude;
    piece.largest_at = {at, column};
  }
}

// Counts what is no number in a row and writes the row without it to `finite`.
template <class T>
void note_not_finite(const T* row, Index n, Index at, Piece& piece, std::vector<T>& finite) {
  finite.assign(row, row + n);
  for (Index column = 0; column < n; ++column) {
    T& x = finite[static_cast<std::size_t>(column)];
    if (std::isnan(x)) {
      if (piece.n_nan++ == 0) piece.first_nan = {at, column};
      x = T{0};
    } else if (std::isinf(x)) {
      if (piece.n_infinite++ == 0) piece.first_infinite = {at, column};
      x = T{0};
    }
  }
}

// A power of two that brings `largest` near 1 (subnormals as near as a double's exponent lets it).
double scale_for(double largest) {
  return std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000));
}

bool is_squarable(double largest) {
  return largest == 0 || (largest >= smallest_square_root && largest <= largest_square_root);
}

// The norm of a row whose squares are beyond the range of a double.
template <class T>
double scaled_norm(const T* row, Index n, double largest) {
  const double scale = scale_for(largest);
  double sum = 0;
  for (Index i = 0; i < n; ++i) {
    const double x = static_cast<double>(row[i]) * scale;
    sum += x * x;
  }
  return std::sqrt(sum) / scale;
}

// One row: its sums into the piece, its norm returned. Columns are summed in units of 1 / scale.
template <class T>
double add_row(const T* row, Index n, Index at, double scale, Piece& piece) {
  const T* numbers = row;
  RowSums sums = add_squares(row, n, scale, piece.columns.data());
  std::vector<T> finite;
  if (sums.largest_bits >= infinity_bits<T>) {
    note_not_finite(row, n, at, piece, finite);
    numbers = finite.data();
    sums = add_squares(numbers, n, scale, piece.columns.data());
  }
  const auto largest =
      static_cast<double>(std::bit_cast<T>(static_cast<BitsOf<T>>(sums.largest_bits)));
  if (largest > piece.largest || !piece.largest_at) note_largest(row, n, at, piece);
  return is_squarable(largest * scale) ? std::sqrt(sums.squares) / scale
                                       : scaled_norm(numbers, n, largest);
}

// The square root of a sum of squares of numbers that may be of any size.
double norm_of(const Tensor<double>& norms) {
  double largest = 0;
  for (Index i = 0; i < norms.count(); ++i) largest = std::max(largest, norms.data()[i]);
  if (largest == 0) return 0;
  const double scale = scale_for(largest);
  double sum = 0;
  for (Index i = 0; i < norms.count(); ++i) {
    sum += norms.data()[i] * scale * (norms.data()[i] * scale);
  }
  return std::sqrt(sum) / scale;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double find_outliers(const Tensor<double>& norms, std::vector<Index>& outliers) {
  if (norms.count() == 0) return 0;
  std::vector<double> values(norms.data(), norms.data() + norms.count());
  const double median = median_of(values);
  for (double& value : values) value = std::abs(value - median);
  const double threshold = median + std::max(6 * 1.4826 * median_of(values), median / 100);
  for (Index i = 0; i < norms.count(); ++i) {
    if (norms.data()[i] > threshold) outliers.push_back(i);
  }
  return threshold;
}

void merge(const Piece& piece, MatrixStatistics& result) {
  result.n_nan += piece.n_nan;
  result.n_infinite += piece.n_infinite;
  if (!result.first_nan) result.first_nan = piece.first_nan;
  if (!result.first_infinite) result.first_infinite = piece.first_infinite;
  if (!piece.largest_at) return;
  if (!result.largest_at || piece.largest > result.largest) {
    result.largest = piece.largest;
    result.largest_at = piece.largest_at;
  }
}

void finish_columns(const std::vector<Piece>& pieces, double scale, Tensor<double>& norms) {
  parallel_for(norms.count(), 1024, [&](Index begin, Index end) {
    for (Index column = begin; column < end; ++column) {
      double sum = 0;
      for (const Piece& piece : pieces) sum += piece.columns[static_cast<std::size_t>(column)];
      norms.data()[column] = std::sqrt(sum) / scale;
    }
  });
}

// Some consecutive rows, `stride` elements apart.
template <class T>
struct Rows {
  const T* data;
  Index stride;
};
// Rows of a matrix where they lie, or written to the buffer where they don't lie like that.
template <class T>
using RowFinder = std::function<Rows<T>(Index first, Index count, std::vector<T>& buffer)>;

template <class T>
MatrixStatistics one_pass(const Shape& shape, const RowFinder<T>& find, double scale) {
  const Index m = shape.size(0), n = shape.size(1);
  MatrixStatistics result{.shape = shape,
                          .largest_at = {},
                          .row_norms = Tensor<double>({m}),
                          .column_norms = Tensor<double>({n}),
                          .outlier_rows = {},
                          .outlier_columns = {},
                          .first_nan = {},
                          .first_infinite = {}};
  if (shape.count() == 0) return result;
  const Index block = std::max<Index>(1, block_elements / n);
  const Index piece_rows = std::max((m + max_pieces - 1) / max_pieces, block);
  std::vector<Piece> pieces(static_cast<std::size_t>((m + piece_rows - 1) / piece_rows));
  parallel_for(m, piece_rows, [&](Index begin, Index end) {
    Piece& piece = pieces[static_cast<std::size_t>(begin / piece_rows)];
    piece.columns.assign(static_cast<std::size_t>(n), 0.0);
    std::vector<T> buffer;
    for (Index first = begin; first < end; first += block) {
      const Index count = std::min(block, end - first);
      const Rows<T> rows = find(first, count, buffer);
      for (Index i = 0; i < count; ++i) {
        result.row_norms.data()[first + i] =
            add_row(rows.data + i * rows.stride, n, first + i, scale, piece);
      }
    }
  });
  for (const Piece& piece : pieces) merge(piece, result);
  finish_columns(pieces, scale, result.column_norms);
  return result;
}

void swap_sides(MatrixStatistics& statistics, const Shape& shape) {
  statistics.shape = shape;
  std::swap(statistics.row_norms, statistics.column_norms);
  std::swap(statistics.row_threshold, statistics.column_threshold);
  std::swap(statistics.outlier_rows, statistics.outlier_columns);
  for (auto* position :
       {&statistics.largest_at, &statistics.first_nan, &statistics.first_infinite}) {
    if (*position) *position = {(*position)->column, (*position)->row};
  }
}

template <class T>
MatrixStatistics statistics_of(const Shape& shape, const RowFinder<T>& find) {
  MatrixStatistics result = one_pass(shape, find, 1);
  if (!is_squarable(result.largest)) result = one_pass(shape, find, scale_for(result.largest));
  result.frobenius_norm = norm_of(result.row_norms);
  result.row_threshold = find_outliers(result.row_norms, result.outlier_rows);
  result.column_threshold = find_outliers(result.column_norms, result.outlier_columns);
  return result;
}

}  // namespace

template <class T>
MatrixStatistics streamed_matrix_statistics(const Shape& shape, const RowReader<T>& read) {
  check_matrix("matrix_statistics", "a", shape);
  const Index n = shape.size(1);
  return statistics_of<T>(shape, [&](Index first, Index count, std::vector<T>& buffer) {
    buffer.resize(static_cast<std::size_t>(count * n));
    read(first, count, buffer.data());
    return Rows<T>{buffer.data(), n};
  });
}

template <class T>
MatrixStatistics matrix_statistics(TensorView<const T> a) {
  check_matrix("matrix_statistics", "a", a.shape());
  if (a.strides()[0] == 1 && a.strides()[1] != 1) {
    // Rows of the transpose are what lies together. Positions are then its first ones.
    MatrixStatistics result = matrix_statistics(a.transpose());
    swap_sides(result, a.shape());
    return result;
  }
  return statistics_of<T>(a.shape(), [&](Index first, Index count, std::vector<T>& buffer) {
    const Index stride = a.strides()[0], n = a.size(1);
    if (a.strides()[1] == 1) return Rows<T>{a.data() + first * stride, stride};
    buffer.clear();
    for (Index row = first; row < first + count; ++row) {
      for (Index column = 0; column < n; ++column) buffer.push_back(a(row, column));
    }
    return Rows<T>{buffer.data(), n};
  });
}

template MatrixStatistics streamed_matrix_statistics(const Shape&, const RowReader<float>&);
template MatrixStatistics streamed_matrix_statistics(const Shape&, const RowReader<double>&);
template MatrixStatistics matrix_statistics(TensorView<const float>);
template MatrixStatistics matrix_statistics(TensorView<const double>);

}  // namespace eckart
